"""Names that are not in a capture: errors that list those that are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from kafkascope.analyzer.commands.failures import USAGE
from kafkascope.analyzer.reading.absent import listed, quoted
from kafkascope.analyzer.reading.reading import Reading


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
            there = f"; {kind}s: {listed(name, known)}" if known else f", which has no {kind}s"
            raise NotInCapture(f"there is no {kind} {quoted(name)} in {where}{there}")


def no_exchange(numbers: str, reading: Reading, where: str = "this capture") -> str:
    """Return the sentence that there are no such exchanges. `reading` has read all."""
    total = reading.exchanges_read
    among = " among the matching ones" if reading.options.selects else ""
    there = f"; {where} has 1 to {total}" if total else ""
    return f"there is no exchange {numbers}{among}{there}"
