"""Filters with names: `@slow` stands for one, `@slow = latency > 1s` in the filter box keeps one,
`@slow =` forgets it. They live in a file beside the settings, one a line, for people to edit:

    # ~/.config/kafkascope/filters.toml
    slow = "latency > 1s and not wait"
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analyzer.filter_errors import FilterError
from tui.config import config_path

if TYPE_CHECKING:
    from analyzer.filter_completion import Completion

NAME: Final = re.compile(r"@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
KEEP: Final = re.compile(r"\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*=(?!=)\s*(.*)", re.DOTALL)
BEGUN: Final = re.compile(r"(?:^|(?<=[\s(!]))@([A-Za-z0-9_.-]*)$")
QUOTED: Final = re.compile(r'r"[^"]*"|"(?:[^"\\]|\\.)*"')
DEEP: Final = 8
"""Names in filters of names."""


def saved_path() -> Path:
    """Where they are."""
    return config_path().with_name("filters.toml")


def read_saved(path: Path | None = None) -> tuple[dict[str, str], str]:
    """(name -> filter, why some are missing). Never fails."""
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
    return good, f"{path}: no names with a filter in quotes: {bad}" if bad else ""


def write_saved(saved: Mapping[str, str], path: Path | None = None) -> None:
    """All of them. `OSError`."""
    path = path or saved_path()
    lines = [f"{json.dumps(name)} = {_toml(text)}\n" for name, text in sorted(saved.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=path.name, delete=False
    ) as file:
        file.write("".join(lines))
    Path(file.name).replace(path)


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def wants_keeping(text: str) -> tuple[str, str] | None:
    """(name, filter) of `@name = filter`; the filter is empty where it is to be forgotten."""
    found = KEEP.fullmatch(text)
    return (found[1], found[2].strip()) if found else None


def spelled_out(text: str, saved: Mapping[str, str]) -> str:
    """A filter without names; `FilterError` where one is not known."""
    if "@" not in text:
        return text
    return _spelled(text, saved, text, 0)


def _spelled(text: str, saved: Mapping[str, str], whole: str, depth: int) -> str:
    out: list[str] = []
    at = 0
    for found in _names(text):
        name = found[1]
        if name not in saved:
            place = whole.find(f"@{name}")
            near = get_close_matches(name, list(saved), n=1)
            hint = f"did you mean @{near[0]}?" if near else "@NAME = FILTER keeps one"
            reason = f'no saved filter "@{name}"'
            raise FilterError(reason, whole, max(0, place), len(name) + 1, hint)
        if depth == DEEP:
            raise FilterError(f'"@{name}" goes round in circles', whole, 0, len(whole))
        inner = _spelled(saved[name], saved, whole, depth + 1)
        out += [text[at : found.start()], f"({inner})"]
        at = found.end()
    out.append(text[at:])
    return "".join(out)


def _names(text: str) -> Iterator[re.Match[str]]:
    """Names of filters: neither in quotes nor in words such as billing@10.0.0.7."""
    quotes = [found.span() for found in QUOTED.finditer(text)]
    for found in NAME.finditer(text):
        begin = found.start()
        first = not begin or text[begin - 1].isspace() or text[begin - 1] in "(!"
        if first and not any(start < begin < end for start, end in quotes):
            yield found


def names_at(text: str, cursor: int, saved: Mapping[str, str]) -> Completion | None:
    """The names that may stand at the cursor; None where none is begun."""
    from analyzer.filter_completion import Completion, Item

    begun = BEGUN.search(text[:cursor])
    if begun is None:
        return None
    items = tuple(
        Item(f"@{name}", "word", what)
        for name, what in sorted(saved.items())
        if name.startswith(begun[1])
    )
    return Completion(begun.start(1) - 1, cursor, items, None, True)


def without_names(text: str) -> str:
    """As long as before, strings in the place of names: for a parser that knows none."""
    chars = list(text)
    for found in _names(text):
        chars[found.start() : found.end()] = f'"{found[1][1:]}"'
    return "".join(chars)
