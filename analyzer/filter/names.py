"""Saved filters in filters: `@slow` stands for one wherever a condition may stand; `@slow = latency
> 1s` saves one, `@slow =` deletes it. They are stored by `filter.saved`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.lexer import MAX_LENGTH

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.completion import Completion

NAME: Final = re.compile(r"@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
KEEP: Final = re.compile(r"\s*@([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*=(?!=)\s*(.*)", re.DOTALL)
BEGUN: Final = re.compile(r"(?:^|(?<=[\s(!&|]))@([A-Za-z0-9_.-]*)$")
QUOTED: Final = re.compile(r'r"[^"]*"|"(?:[^"\\]|\\.)*"')
WANTS_VALUE: Final = re.compile(r"(?:[=<>~{,]|(?<![\w.])(?:eq|ne|gt|lt|ge|le|contains|matches))$")
"""Matches before the value of a comparison, which is no name even if it begins with `@`."""
DEEP: Final = 8
"""Limit of names nested in saved filters."""


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
    return _Speller(saved, text, why).spelled(text, 0)


class _Speller:
    def __init__(self, saved: Mapping[str, str], whole: str, why: str) -> None:
        self.saved, self.whole, self.why = saved, whole, why
        self.known: dict[str, str] = {}

    def spelled(self, text: str, depth: int) -> str:
        out: list[str] = []
        at = 0
        for found in _names(text):
            name = found[1]
            if depth == DEEP:
                reason = f'"@{name}" refers to itself'
                raise FilterError(reason, self.whole, 0, len(self.whole))
            if name not in self.known:
                self.known[name] = self.spelled(self._text(name), depth + 1)
            out += [text[at : found.start()], f"({self.known[name]})"]
            at = found.end()
            if sum(map(len, out)) > MAX_LENGTH:
                reason = f"more than {MAX_LENGTH} characters after its names are expanded"
                raise FilterError(reason, self.whole, 0, len(self.whole))
        out.append(text[at:])
        return "".join(out)

    def _text(self, name: str) -> str:
        if name in self.saved:
            return self.saved[name]
        from difflib import get_close_matches

        near = get_close_matches(name, list(self.saved), n=1)
        usual = "save one in the terminal UI: @NAME = FILTER"
        hint = f"did you mean @{near[0]}?" if near else self.why or usual
        place = max(0, self.whole.find(f"@{name}"))
        raise FilterError(f'no saved filter "@{name}"', self.whole, place, len(name) + 1, hint)


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
