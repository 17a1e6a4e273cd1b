"""Failed attempts to connect as dots over time, below a chart of exchanges, which tells nothing of
them. Texts with roles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import padded, plural
from kafkascope.tui.screens.charts import MARGIN
from kafkascope.tui.screens.sheet import Spans

REFUSED: Final = "refused"
UNREACHABLE: Final = "unreachable"
LOOKS: Final = {UNREACHABLE: ("○", "?", "not answered"), REFUSED: ("●", "!", "refused")}
"""State of an attempt -> sign, role, word; of several at one place the last one shows."""


class FailedConnects(NamedTuple):
    """Attempts to connect that failed."""

    whom: str
    """The other side: `to 10.0.1.3:9092`."""
    times: dict[str, list[int]]
    """State -> when each attempt began."""
    reach: tuple[int, int] | None
    """First and last time of all attempts that failed in the capture, whoever they were from, so
    that charts of two lines compare."""

    def lane(self, span: tuple[int, int], width: int) -> Spans:
        """Return a line with a dot wherever an attempt began."""
        first, last = span
        step = max(1, -(-(last - first + 1) // max(1, width)))
        cells = [(" ", "")] * width
        for state, (sign, role, _) in LOOKS.items():
            for time_ns in self.times.get(state, ()):
                cells[max(0, min(width - 1, (time_ns - first) // step))] = sign, role
        line: Spans = [(f"{padded('failed', MARGIN - 2, right=True)} │", "dim")]
        for look, run in groupby(cells):
            line.append((look[0] * len(list(run)), look[1]))
        return line

    def legend(self) -> Spans:
        """Return the meaning of the dots."""
        out: Spans = [(" " * MARGIN, "")]
        for state, (sign, role, text) in LOOKS.items():
            count = len(self.times.get(state, ()))
            if count:
                noun = plural(count, "connect")
                out += [(sign, role), (f" {noun} {self.whom} {text}   ", "dim")]
        return out


def failed(rows: Sequence[Line]) -> list[Line]:
    """Return the lines of attempts that came to no connection."""
    return [line for line in rows if line["state"] in LOOKS and line["opened"] is not None]


def to_broker(connects: Sequence[Line], line: Line) -> FailedConnects:
    """Return the attempts to reach the broker of a connection, from anybody."""
    broker = line["broker_address"]
    mine = [each for each in connects if each["broker_address"] == broker]
    return _of(f"to {broker}", mine, connects)


def of_client(connects: Sequence[Line], rows: Sequence[Line], client: Any) -> FailedConnects:
    """Return the attempts from the hosts of a client, to anybody: they tell no client id."""
    hosts = {_host(each) for each in rows if client in (each["client_id"], _host(each))}
    mine = [each for each in connects if _host(each) in hosts]
    return _of(f"of {client}", mine, connects)


def _of(whom: str, mine: Sequence[Line], connects: Sequence[Line]) -> FailedConnects:
    times: dict[str, list[int]] = {}
    for each in mine:
        times.setdefault(each["state"], []).append(each["opened"])
    every = [each["opened"] for each in connects]
    return FailedConnects(whom, times, (min(every), max(every)) if every else None)


def _host(line: Line) -> str:
    return host_of(line["client_address"])
