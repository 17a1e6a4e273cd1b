"""Traffic on both sides of a limit, made by hand to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from tests.analyzer.findings.judging import found
from tests.kit.wire import MS, SECOND, START, Wire, request, response


class Side(NamedTuple):
    """What decides at a limit."""

    make: Callable[[int], bool]
    """Makes traffic of some size, and says whether it was told."""
    calm: int
    """The last size that is not told, or is told more mildly."""
    told: int
    """The first one that is; smaller than `calm` where less is worse."""


def least(make: Callable[[int], bool], told: int) -> Side:
    """Told from a size on."""
    return Side(make, told - 1, told)


def most(make: Callable[[int], bool], told: int) -> Side:
    """Told up to a size."""
    return Side(make, told + 1, told)


def seconds(time_ns: int) -> Fraction:
    """For builders that take seconds."""
    return Fraction(time_ns, SECOND)


def severity(wires: Iterable[Wire], rule: str) -> str | None:
    finding = found(wires, rule).get(rule)
    return finding.severity if finding is not None else None


def at(wire: Wire, after_ns: int) -> Wire:
    """The wire, whose next packet is sent so long after the beginning."""
    wire.time_ns = START + after_ns - MS
    return wire


def ask(wire: Wire, number: int, begin_ns: int, end_ns: int, **fields: Any) -> None:
    """A Metadata request that is answered at the end."""
    named = f"app-{wire.connection.number}"
    at(wire, begin_ns).client(request("Metadata", 8, number, named))
    at(wire, end_ns).broker(response("Metadata", 8, number, **fields))


def commit(wire: Wire, number: int, offset: int) -> None:
    """A commit of t-0 by a member of group g."""
    row = {"partition_index": 0, "committed_offset": offset}
    asked = {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": 1}
    asked["topics"] = [{"name": "t", "partitions": [row]}]
    done = [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 0}]}]
    wire.exchange("OffsetCommit", 8, number, {"topics": done}, **asked)


def wire_of(number: int) -> Wire:
    """A connection of a port of its own."""
    wire = Wire(number=number)
    wire.connection.a = wire.connection.a._replace(port=50_000 + number)
    return wire
