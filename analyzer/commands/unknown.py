"""Names that are not in a capture: errors that list those that are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final

import click

from kafkascope.analyzer.commands.failures import USAGE
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.text import safe

MAX_LISTED: Final = 10
MAX_COMPARED: Final = 5_000
"""Names that are ranked by likeness."""


class NotInCapture(click.ClickException):
    """A name that the user gave is not in the capture."""

    exit_code = USAGE


def refuse_unknown(
    kind: str, wanted: Iterable[str], known: Sequence[str], reading: Reading
) -> None:
    """Raise an error for the first of the wanted names that is not known."""
    for name in wanted:
        if name not in known:
            # Why nothing was read, or what was damaged, explains why a name is missing.
            reading.finish()
            where = "the matching exchanges" if reading.options.selects else "this capture"
            there = f"; {kind}s: {listed(name, known)}" if known else f", nor any other {kind}"
            raise NotInCapture(f"there is no {kind} {quoted(name)} in {where}{there}")


def listed(name: str, known: Iterable[str]) -> str:
    """Return known names in a line, the most like `name` first."""
    names = list(dict.fromkeys(known))

    def likeness(other: str) -> float:
        return -SequenceMatcher(None, name.lower(), other.lower()).ratio()

    ranked = sorted(names[:MAX_COMPARED], key=likeness)[:MAX_LISTED]
    more = len(names) - len(ranked)
    return ", ".join(map(safe, ranked)) + (f", and {more:,} more" if more else "")


def quoted(name: str) -> str:
    """Return a name in quotes, escaped."""
    return f'"{safe(name)}"'


def no_exchange(numbers: str, reading: Reading, where: str = "this capture") -> str:
    """Return the sentence that there are no such exchanges. `reading` has read all."""
    total = reading.exchanges_read
    among = " among the matching ones" if reading.options.selects else ""
    there = f"; {where} has 1 to {total}" if total else ""
    return f"there is no exchange {numbers}{among}{there}"
