"""Names in a filter that no exchange has, which is why it matches nothing, and numbers of none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.bind import And, Test
from kafkascope.analyzer.reading.limits import LIMITS
from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.bind import Bound

KINDS: Final = {"topic": "topic", "group": "group", "client": "client", "user": "user"}
"""Field -> what it names. Other fields have values that nobody mistypes for another one's."""


def named(bound: Bound | None) -> list[Test]:
    """Return the comparisons with one name that every matching exchange has to pass."""
    terms = bound.terms if isinstance(bound, And) else (bound,)
    return [
        each
        for each in terms
        if isinstance(each, Test)
        and each.field.name in KINDS
        and (each.scope, each.relation) == ("any", "==")
    ]


def absent(tests: Iterable[Test], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a sentence for each name that no row has, with the names that there are."""
    wanted = {each.field.name: each for each in tests}
    known: dict[str, dict[str, None]] = {name: {} for name in wanted}
    for row in rows:
        for name, test in wanted.items():
            values = test.field.get(row) if test.field.get is not None else ()
            if test.value in values or len(known[name]) < LIMITS.compared_names:
                known[name].update(dict.fromkeys(values))
    for name, test in wanted.items():
        if test.value not in known[name]:
            kind = KINDS[name]
            there = listed(test.value, known[name])
            yield f"there is no {kind} {quoted(test.value)} in this capture" + (
                f"; {kind}s: {there}" if there else f", which has no {kind}s"
            )


def listed(name: str, known: Iterable[str]) -> str:
    """Return known names in a line, the most like `name` first."""
    names = list(dict.fromkeys(known))

    def likeness(other: str) -> float:
        return -SequenceMatcher(None, name.lower(), other.lower()).ratio()

    ranked = sorted(names[: LIMITS.compared_names], key=likeness)[: LIMITS.listed_names]
    more = len(names) - len(ranked)
    return ", ".join(map(safe, ranked)) + (f", and {more:,} more" if more else "")


def quoted(name: str) -> str:
    return f'"{safe(name)}"'
