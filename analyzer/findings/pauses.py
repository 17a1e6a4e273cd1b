"""Times in which a broker answered nobody, found from the requests that waited meanwhile.

When an answer came is kept in slots of a twentieth of a second for each broker: little enough for
days, and the same in whatever order exchanges come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.statistics.merging.events import Event
from kafkascope.analyzer.statistics.merging.measures import Measures, bits, measured

SLOT: Final = 50_000_000
MINUTE: Final = 60_000_000_000
GIVEN_UP: Final = "given up"
"""The kind of the event of a request whose connection its client closed."""
LONGEST: Final = 2_400
"""Slots that are looked at in each direction: two minutes."""


@measured
class Answers(Measures):
    """The slots of one minute in which a broker answered."""

    slots: int = bits()

    def at(self, time_ns: int) -> None:
        """Take note of an answer."""
        self.slots |= 1 << (time_ns % MINUTE // SLOT)


class Waiting(NamedTuple):
    """A request that waited long, answered or given up."""

    who: tuple[Any, Any]
    """Client id and host."""
    event: Event
    end_ns: int


@dataclass(slots=True)
class Pause:
    """A time without any answer of one broker."""

    broker: str
    begin_ns: int
    end_ns: int
    requests: list[Waiting] = field(default_factory=list)


def pauses(
    broker: str, waiting: Iterable[Waiting], answers: Callable[[int], int | None]
) -> list[Pause]:
    """Return those with requests of several connections. `answers`: the slots of a minute with an
    answer; None where that is not known."""
    found: list[Pause] = []
    for each in sorted(waiting, key=lambda each: (each.event.time_ns, each.event.number)):
        for pause in found[-3:]:
            if _belongs(each, pause):
                pause.requests.append(each)
                break
        else:
            silence = _silence(each.event.time_ns, each.end_ns, answers)
            if silence is not None and silence[1] - silence[0] >= limit("slow.excess"):
                found.append(Pause(broker, *silence, [each]))
    return [
        pause
        for pause in found
        if len({tuple(each.event.about["connection"]) for each in pause.requests}) > 1
    ]


def together(found: Iterable[Pause]) -> list[list[Pause]]:
    """Merge pauses of several brokers that ended at the same time: they are one trouble."""
    groups: list[list[Pause]] = []
    for pause in sorted(found, key=lambda pause: (pause.end_ns, pause.broker)):
        if groups and abs(groups[-1][-1].end_ns - pause.end_ns) <= limit("pause.flood"):
            groups[-1].append(pause)
        else:
            groups.append([pause])
    return groups


def _belongs(each: Waiting, pause: Pause) -> bool:
    """Return whether a request waited for the end of a pause: it was answered in the flood behind
    it, or was given up before."""
    if each.event.time_ns >= pause.end_ns or each.end_ns <= pause.begin_ns:
        return False
    late = each.end_ns - pause.end_ns
    least = limit("pause.flood")
    share = (pause.end_ns - pause.begin_ns) * limit("pause.flood-share") // 100
    given_up = each.event.kind == GIVEN_UP
    return -least <= late <= max(least, share) or (given_up and late < 0)


def _silence(
    begin_ns: int, end_ns: int, answers: Callable[[int], int | None]
) -> tuple[int, int] | None:
    """Return the time from the last answer before a request gave up or was answered to the next
    one; it begins with the request at the earliest."""

    def answered(slot: int) -> bool:
        minute, place = divmod(slot, MINUTE // SLOT)
        slots = answers(minute)
        return slots is None or bool(slots >> place & 1)

    first, last = begin_ns // SLOT, end_ns // SLOT
    after = next((slot for slot in range(last, last + LONGEST) if answered(slot)), None)
    if after is None:
        return None
    # An answer of the same flood may stand in the slot before.
    end = after - 1 if answered(after - 1) else after
    before = next(
        (slot for slot in range(end - 1, max(first, end - LONGEST) - 1, -1) if answered(slot)), None
    )
    begin = begin_ns if before is None or before == first else (before + 1) * SLOT
    stop = end_ns if after == last else after * SLOT
    return begin, stop
