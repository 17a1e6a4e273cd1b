"""Hostile captures that follow from the declarations: each array of each message made long, each
message sent often with all its values changing, and with all of them but one."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from kafkascope.dissectors import layout
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import APIS, layout_of
from tests.explosion.turns import Turn
from tests.kit.wire import request, response

Path = tuple[str, ...]
BITS: Final = {"b": 7, "h": 15, "i": 31, "q": 63, "H": 16, "I": 32}
LEFT: Final = ("error_code", "throttle_time_ms")
"""Numbers that stay 0: with an error most of a body says nothing."""
NUMBERS: Final = frozenset(
    {
        *("partition", "partition_index", "index", "producer_id", "producer_epoch"),
        *("generation_id", "member_epoch", "node_id", "broker_id"),
    }
)
"""Fields with numbers that name something."""
RECORDS: Final = encode_batch([Record(0, 1, b"k", b"v", ())])


def arrays(wire: layout.Wire, path: Path = ()) -> Iterator[Path]:
    """The paths of all arrays below a wire kind."""
    match wire:
        case layout.StructWire():
            for slot in (*wire.slots, *wire.tags):
                yield from arrays(slot.wire, (*path, slot.name))
        case layout.ArrayWire():
            yield path
            yield from arrays(wire.element, path)


def names(wire: layout.Wire) -> Iterator[str]:
    """The fields below a wire kind that name something."""
    match wire:
        case layout.StructWire():
            for slot in (*wire.slots, *wire.tags):
                if (
                    isinstance(slot.wire, layout.StringWire | layout.UuidWire)
                    or slot.name in NUMBERS
                ):
                    yield slot.name
                yield from names(slot.wire)
        case layout.ArrayWire():
            yield from names(wire.element)


def made(
    wire: layout.Wire,
    number: int,
    path: Path = (),
    long: Path = (),
    count: int = 1,
    still: str = "",
) -> Any:
    """A value with this number in it; the array `long` has `count` elements, others have one. A
    field with the name `still` has the same value with all numbers."""
    name = path[-1] if path else ""
    if still and name == still and not isinstance(wire, layout.StructWire):
        number = 1
    match wire:
        case layout.NumberWire() if name in LEFT:
            return 0
        case layout.NumberWire() if wire.code == "d":
            return float(number)
        case layout.NumberWire():
            return number & (1 << BITS[wire.code]) - 1
        case layout.BoolWire():
            return True
        case layout.UuidWire():
            return number.to_bytes(16, "big")
        case layout.StringWire():
            return f"{name}-{number}"
        case layout.BytesWire() if wire.records:
            return RECORDS
        case layout.BytesWire():
            return f"{name}-{number}".encode()
        case layout.ArrayWire():
            numbers = range(number, number + (count if path == long else 1))
            return [made(wire.element, each, path, long, count, still) for each in numbers]
        case layout.StructWire():
            return {
                slot.name: made(slot.wire, number, (*path, slot.name), long, count, still)
                for slot in (*wire.slots, *wire.tags)
            }


def exchanged(
    api: str,
    version: int,
    correlation: int,
    number: int,
    side: str = "",
    long: Path = (),
    n: int = 1,
    still: str = "",
) -> list[Turn]:
    """An exchange with this number everywhere but in `still`; the array `long` of a side has n
    elements."""
    bodies = {
        each: made(
            layout_of(f"{api}{each}", version).body,
            number,
            long=long if each == side else (),
            count=n,
            still=still,
        )
        for each in ("Request", "Response")
    }
    return [
        (0, request(api, version, correlation, **bodies["Request"])),
        (1, response(api, version, correlation, **bodies["Response"])),
    ]


def long_array(api: str, version: int, side: str, *path: str) -> Callable[[int], list[Turn]]:
    """Return what makes an exchange of which one array has n elements, all different."""
    return lambda n: exchanged(api, version, 1, 1, side, path, n)


def long_arrays(key: int, version: int, n: int) -> Iterator[list[Turn]]:
    """A connection for each array of an API's request and response: n elements, all different."""
    api = APIS[key].name
    for side in ("Request", "Response"):
        for path in dict.fromkeys(arrays(layout_of(f"{api}{side}", version).body)):
            yield exchanged(api, version, 1, 1, side, path, n)


def often(key: int, version: int, n: int, still: str = "") -> Iterator[list[Turn]]:
    """One connection with n exchanges of an API, every value of each another one, but for those of
    the fields `still`."""
    api = APIS[key].name
    yield [
        turn for number in range(n) for turn in exchanged(api, version, number, number, still=still)
    ]
