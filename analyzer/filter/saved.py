"""Saved filters: a file beside the settings, one named filter per line, for people to edit. In
filters `@slow` inserts one as a condition, `@slow = latency > 1s` saves one, `@slow =` deletes it.

# ~/.config/kafkascope/filters.toml
slow = "latency > 1s and not wait"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.limits import LIMITS
from kafkascope.places import config_home

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.completion import Completion


def saved_path() -> Path:
    """Return the path of the file."""
    return config_home() / "filters.toml"


def read_saved(path: Path | None = None) -> tuple[dict[str, str], str]:
    """Return the filters by name, and why some are missing. Never fails."""
    import tomllib

    path = path or saved_path()
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, f"{path}: {error}: no saved filters"
    good = {
        name: text
        for name, text in table.items()
        if isinstance(text, str) and NAME.fullmatch(f"@{name}")
    }
    bad = ", ".join(sorted(table.keys() - good.keys()))
    return good, f"{path}: not NAME = 'FILTER': {bad}" if bad else ""


def write_saved(saved: Mapping[str, str], path: Path | None = None) -> None:
    """Write all saved filters; raises `OSError`."""
    import json

    from kafkascope.private import PrivateFile

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


NAME: Final = re.compile(r"@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
KEEP: Final = re.compile(r"\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*=(?!=)\s*(.*)", re.DOTALL)
BEGUN: Final = re.compile(r"(?:^|(?<=[\s(!&|]))@([A-Za-z0-9_.-]*)$")
QUOTED: Final = re.compile(r'r"[^"]*"|"(?:[^"\\]|\\.)*"')
WANTS_VALUE: Final = re.compile(r"(?:[=<>~{,]|(?<![\w.])(?:eq|ne|gt|lt|ge|le|contains|matches))$")
"""Matches before the value of a comparison, which is no name even if it begins with `@`."""
# Limit of names nested in saved filters.
DEEP: Final = 8


def wants_keeping(text: str) -> tuple[str, str] | None:
    """Return (name, filter) of `@name = filter`; the filter is empty where the name is to be
    deleted."""
    found = KEEP.fullmatch(text)
    return (found[1], found[2].strip()) if found else None


def spelled_out(text: str, saved: Mapping[str, str], why: str = "") -> str:
    """Return a filter with names expanded; `FilterError` for an unknown name, with `why` as a
    possible reason."""
    if "@" not in text:
        return text
    known: dict[str, str] = {}

    def text_of(name: str) -> str:
        if name in saved:
            return saved[name]
        from difflib import get_close_matches

        near = get_close_matches(name, list(saved), n=1)
        usual = "save one in the terminal UI: @NAME = FILTER"
        hint = f"did you mean @{near[0]}?" if near else why or usual
        place = max(0, text.find(f"@{name}"))
        raise FilterError(f'no saved filter "@{name}"', text, place, len(name) + 1, hint)

    def spelled(part: str, depth: int) -> str:
        out: list[str] = []
        at = 0
        for found in _names(part):
            name = found[1]
            if depth == DEEP:
                raise FilterError(f'"@{name}" refers to itself', text, 0, len(text))
            if name not in known:
                known[name] = spelled(text_of(name), depth + 1)
            out += [part[at : found.start()], f"({known[name]})"]
            at = found.end()
            if sum(map(len, out)) > LIMITS.filter_chars:
                reason = f"more than {LIMITS.filter_chars} characters after its names are expanded"
                raise FilterError(reason, text, 0, len(text))
        return "".join((*out, part[at:]))

    return spelled(text, 0)


def _names(text: str) -> Iterator[re.Match[str]]:
    """Yield names of filters: neither in quotes, nor in words such as billing@10.0.0.7, nor
    values."""
    quotes = [found.span() for found in QUOTED.finditer(text)]
    for found in NAME.finditer(text):
        begin = found.start()
        first = not begin or text[begin - 1].isspace() or text[begin - 1] in "(!&|"
        if not first or any(start < begin < end for start, end in quotes):
            continue
        if not WANTS_VALUE.search(text[max(0, begin - 99) : begin].rstrip()):
            yield found


def names_at(text: str, cursor: int, saved: Mapping[str, str]) -> Completion | None:
    """Return the names that may stand at the cursor; None where no name is begun."""
    from kafkascope.analyzer.filter.completion import Completion, Item

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
    """Return a filter of the same length with strings in place of names, for a parser without
    names."""
    chars = list(text)
    for found in _names(text):
        chars[found.start() : found.end()] = f'"{found[1][1:]}"'
    return "".join(chars)
