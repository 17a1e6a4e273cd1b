"""Times in which a broker took no connections, as the table of connections tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkascope.analyzer.findings.limits import SECOND, limit
from kafkascope.analyzer.findings.view import View, closed_at
from kafkascope.analyzer.statistics.connections import FAILED
from kafkascope.analyzer.statistics.model import Line


@dataclass(slots=True)
class Outage:
    """A time in which an address that had worked took no connections."""

    begin_ns: int
    end_ns: int | None
    """When the next connection came to be; None: not before the capture ended."""
    failed: list[Line]
    """Connects that were refused or not answered."""
    ended: list[Line] = field(default_factory=list)
    """Connections that the broker ended at the beginning."""
    seen: bool = True
    """Whether the capture shows that the address had worked; else its cluster says that it is
    gone."""

    @property
    def silent(self) -> bool:
        """Whether no connect was even refused."""
        return all(line["phase"] == "no answer" for line in self.failed)


def works(line: Line) -> bool:
    """Return whether the broker answered on it."""
    return bool(line["requests"] > line["unanswered"])


def by_broker(view: View) -> dict[str, list[Line]]:
    """Group connections by the address of the broker. Of one that began before the capture and
    carries no request, nobody knows which side that is, unless others were called there."""
    found: dict[str, list[Line]] = defaultdict(list)
    middle = view.base.connections.midstream()
    odd: list[Line] = []
    for line in view.lines():
        if line["opened"] is None:
            continue
        early = line["connection"] in middle
        if early and not line["requests"]:
            odd.append(line)
        else:
            found[line["broker_address"]].append({**line, "early": early})
    for line in odd:
        ends = (line["broker_address"], line["client_address"])
        broker = next((each for each in ends if each in found), ends[0])
        found[broker].append({**line, "early": True})
    return found


def _took(line: Line) -> bool:
    """Return whether the broker took the connection."""
    # What is left of a refused connect whose SYN came before the capture is one RST.
    early = line["early"] and (line["client_bytes"] or line["broker_bytes"] or line["life"])
    return works(line) or line["handshake"] is not None or bool(early)


def outages_of(lines: list[Line], *, gone: bool) -> Iterator[Outage]:
    """Yield runs of failed connects to an address that had taken others before, in the order of
    time; or of a broker that is `gone` by what its cluster says."""
    current: Outage | None = None
    worked: list[Line] = []
    for line in lines:
        if line["phase"] in FAILED:
            if current is not None:
                current.failed.append(line)
            elif any(map(_took, worked)):
                current = Outage(line["opened"], None, [line])
            elif gone:
                current = Outage(line["opened"], None, [line], seen=False)
            continue
        if current is not None and (line["handshake"] is not None or works(line)):
            current.end_ns = line["opened"]
            yield _with_ends(current, worked)
            current = None
        worked.append(line)
    if current is not None:
        yield _with_ends(current, worked)


def _with_ends(outage: Outage, worked: list[Line]) -> Outage:
    """Return an outage with the connections that the broker ended shortly before the first failed
    connect."""
    near = limit("outage.before")
    # What it closed while others went on was no outage.
    answered_ns = max((line["answered"] or 0 for line in worked), default=0)
    outage.ended = [
        line
        for line in worked
        if line["end"].startswith("broker")
        and 0 <= outage.begin_ns - closed_at(line) <= near
        and closed_at(line) >= answered_ns - SECOND
    ]
    if outage.ended:
        outage.begin_ns = min(closed_at(line) for line in outage.ended)
    return outage
