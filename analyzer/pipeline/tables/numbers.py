"""Numbers that are known at the end, and what stands for them until then.

A place says where the first byte of an exchange is, or the first packet of a connection. It differs
from any number in messages or counters, so that it is found wherever statistics keep it. A turn
takes the place of a number in rows of exchanges: turns are in the order in which one process gives
numbers, by the packet that showed the first byte. `LATE` marks those that came with a deadline,
which is between two packets of other connections: `moments.Order` puts them where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

EXCHANGE: Final = 1 << 62
CONNECTION: Final = 3 << 61
FILE_BITS: Final = 17
OFFSET_BITS: Final = 44
MAX_FILES: Final = 1 << FILE_BITS
"""Limit of files per batch."""
_END: Final = EXCHANGE + (1 << FILE_BITS + OFFSET_BITS)
COUNT_BITS: Final = 25
"""Exchanges that begin in one packet, or with it: held bytes (32 MB) and frames of 4 bytes."""
LATE: Final = 1 << COUNT_BITS - 1
PACKET_BITS: Final = 36
BODIES: Final = ("request_json", "response_json")
IN_RECORDS: Final = '"schema":"record/1","exchange":%d,'
"""What precedes a number in a body; inside a text its quotes would be escaped."""
LAST_PACKET: Final = (1 << PACKET_BITS) - 1
"""In place of a packet: behind all of them."""


def exchange_place(file: int, at: int) -> int:
    """Return the place of the exchange whose first byte is at an offset of a file."""
    return EXCHANGE + (max(file, 0) << OFFSET_BITS) + min(max(at, 0), (1 << OFFSET_BITS) - 1)


def turn(packet: int, count: int) -> int:
    """Return the turn of the exchange that is shown by a packet, `count` of those before it."""
    return EXCHANGE + (packet << COUNT_BITS) + count


def connection_place(packet: int) -> int:
    """Return the provisional number of the connection that begins with a packet."""
    return CONNECTION + packet


def is_place(value: int) -> bool:
    """Return whether a number may be a place."""
    return EXCHANGE <= value < _END or value >= CONNECTION


def places_in(value: Any) -> Iterator[int]:
    """Yield all places in the state of a statistic; they may be negated."""
    if isinstance(value, list):
        for each in value:
            yield from places_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from places_in(each)
    elif isinstance(value, int) and is_place(abs(value)):
        yield abs(value)


def ranked(value: Any, rank: Callable[[int], int]) -> Any:
    """Return the state with places replaced by ranks."""
    kind = type(value)
    if kind is list:
        # Most of a state is numbers and texts in lists: of these only places need a call.
        return [
            each
            if (of := type(each)) is str or (of is int and -EXCHANGE < each < EXCHANGE)
            else ranked(each, rank)
            for each in value
        ]
    if kind is dict:
        return {key: ranked(each, rank) for key, each in value.items()}
    if kind is int and is_place(abs(value)):
        return rank(value) if value > 0 else -rank(-value)
    return value


def numbered(batch: pa.RecordBatch, numbers: pa.Array) -> pa.RecordBatch:
    """Return exchanges with other numbers, also in the records of their bodies."""
    import pyarrow as pa

    index = batch.schema.get_field_index("number")
    old = batch.column(index)
    for name in BODIES:
        at = batch.schema.get_field_index(name)
        if at < 0 or batch.column(at).null_count == batch.num_rows:
            continue
        texts = [
            text if text is None else text.replace(IN_RECORDS % mine, IN_RECORDS % number)
            for text, mine, number in zip(
                batch.column(at).to_pylist(), old.to_pylist(), numbers.to_pylist(), strict=True
            )
        ]
        batch = batch.set_column(at, batch.schema.field(at), pa.array(texts, pa.string()))
    return batch.set_column(index, batch.schema.field(index), numbers)
