"""Saved filters: a file beside the settings, one named filter per line, for people to edit.

# ~/.config/kafkascope/filters.toml
slow = "latency > 1s and not wait"
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafkascope.analyzer.filter.names import NAME, spelled_out
from kafkascope.analyzer.places import config_home


def saved_path() -> Path:
    """Return the path of the file."""
    return config_home() / "filters.toml"


def read_saved(path: Path | None = None) -> tuple[dict[str, str], str]:
    """Return the filters by name, and why some are missing. Never fails."""
    import tomllib

    path = path or saved_path()
    try:
        told = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, f"{path}: {error}: no saved filters"
    good = {
        name: text
        for name, text in told.items()
        if isinstance(text, str) and NAME.fullmatch(f"@{name}")
    }
    bad = ", ".join(sorted(told.keys() - good.keys()))
    return good, f"{path}: not NAME = 'FILTER': {bad}" if bad else ""


def write_saved(saved: Mapping[str, str], path: Path | None = None) -> None:
    """Write all saved filters; raises `OSError`."""
    import json

    from kafkascope.captures.inputs.private import PrivateFile

    path = path or saved_path()
    lines = [f"{json.dumps(name)} = {_toml(text)}\n" for name, text in sorted(saved.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    with PrivateFile(path) as file:
        file.write("".join(lines).encode())


def _toml(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def spelled(text: str) -> str:
    """Return a filter with saved filters in place of their names; `FilterError` for an unknown
    name. The file is read only when the filter may contain a name."""
    return spelled_out(text, *read_saved()) if "@" in text else text
