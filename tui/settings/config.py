"""Settings: keys by the id of an action, a theme, a time format; and the history: recent files and
filters. In files below the directories of XDG.

    # ~/.config/kafkascope/config.toml
    theme = "kafkascope-light"
    times = "a"
    plain = false

    [keys]
    "list.mark" = "m,ctrl+k"
    "board.sort" = "s"
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafkascope.analyzer.text import suggestion
from kafkascope.places import config_home, state_home
from kafkascope.private import PrivateFile
from kafkascope.tui.limits import LIMITS

KNOWN: Final = ("theme", "times", "plain", "keys")
FILTERS: Final = "filters.json"


@dataclass
class Config:
    """The settings, and what is wrong with them."""

    theme: str = ""
    times: str = ""
    plain: bool = False
    keys: dict[str, str] = field(default_factory=dict)
    """Id of an action -> keys, separated by commas."""
    said: list[str] = field(default_factory=list)
    """A sentence for each setting that has no effect."""


def config_path() -> Path:
    return config_home() / "config.toml"


def recent_path() -> Path:
    return state_home() / "recent.json"


def read_config(ids: Callable[[], Iterable[str]], path: Path | None = None) -> Config:
    """Read the settings; `ids` returns the ids of all actions, for which it loads all screens: it
    is called only where keys are set. Never fails: problems are listed in `said`."""
    path = path or config_path()
    found = Config()
    try:
        table = read_toml(path)
    except ValueError as error:
        found.said.append(f"{error}: nothing of it is used")
        return found
    for name, value in table.items():
        if name not in KNOWN:
            found.said.append(f'{path}: there is no setting "{name}"{suggestion(name, KNOWN)}')
        elif name == "keys":
            _keys(value, list(ids()), found, path)
        elif not isinstance(value, type(getattr(found, name))):
            wanted = "true or false" if name == "plain" else "a text"
            found.said.append(f"{path}: {name} wants {wanted}")
        else:
            setattr(found, name, value)
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of settings, empty if there is none; `ValueError` with its path."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def _keys(table: Any, ids: list[str], found: Config, path: Path) -> None:
    if not isinstance(table, dict):
        found.said.append(f"{path}: keys wants a table of ids: [keys]")
        return
    for id_, keys in _flat(table):
        if id_ not in ids:
            found.said.append(f'{path}: no action has the id "{id_}"{suggestion(id_, ids)}')
        elif not isinstance(keys, str) or not keys.strip():
            found.said.append(f"{path}: {id_} wants keys as a text, such as m,ctrl+k")
        else:
            found.keys[id_] = ",".join(part.strip() for part in keys.split(",") if part.strip())


def _flat(table: dict[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """Yield dotted names with values: `list.mark = "m"` without quotes is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


# --- history ------------------------------------------------------------------------------------


def recent(path: Path | None = None) -> list[str]:
    """Return recent files that still exist, the last one first."""
    names = _listed(path or recent_path())
    return [name for name in names if isinstance(name, str) and _exists(name)]


def _listed(path: Path) -> list[Any]:
    try:
        entries = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return entries if isinstance(entries, list) else []


def filters_of(name: str) -> list[str]:
    """Return filters that were used: those of an input first, the last one first."""
    used = _filters()
    mine = [text for place, text in used if place == name]
    return list(dict.fromkeys([*mine, *(text for _, text in used)]))


def _filters() -> list[tuple[str, str]]:
    try:
        return [(str(place), str(text)) for place, text in _listed(state_home() / FILTERS)]
    except (ValueError, TypeError):
        return []


def remember_filter(name: str, text: str) -> None:
    """Put a filter at the head of its list, if that can be written."""
    others = [entry for entry in _filters() if entry != (name, text)]
    _put(state_home() / FILTERS, [(name, text), *others][: LIMITS.recent_filters])


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def remember(names: Iterable[str], path: Path | None = None) -> None:
    """Put files at the head of their list, if that can be written."""
    path = path or recent_path()
    known = recent(path)
    new = [str(Path(name).resolve()) for name in names if name != "-" and _exists(name)]
    found = list(dict.fromkeys([*new, *known]))[: LIMITS.recent_files]
    if new and found != known:
        _put(path, found)


def _put(path: Path, found: Any) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put_json(path, found, indent=0)
    except OSError:
        pass


def put_json(path: Path, value: Any, *, indent: int, shared: bool = False) -> None:
    """Replace a file, whole or not at all; `OSError`. Only its owner may read it, unless it is
    `shared`."""
    # Names of files and comments may be any text: what UTF-8 does not know becomes JSON's escapes.
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    with PrivateFile(path, shared=shared) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
