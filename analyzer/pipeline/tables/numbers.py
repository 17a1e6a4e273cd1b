"""Numbers that are known at the end, and their placeholders until then.

A place holds the first packet of an exchange, and the offset in it; or the first packet of a
connection. It differs from any number in messages or counters, so that it is found wherever
statistics keep it. The number of an exchange is its rank by place: nothing else decides it, so that
tasks with some of the connections need not communicate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

EXCHANGE: Final = 1 << 62
CONNECTION: Final = 3 << 61
# Of the offset in the file of the first byte: packets are smaller by far. Those of a packet may
# begin after a multiple of this size and end before it, so the offset itself gives their order.
OFFSET_BITS: Final = 25
BODIES: Final = ("request_json", "response_json")
IN_RECORDS: Final = '"schema":"record/1","exchange":%d,'
"""What precedes a number in a body; inside a text its quotes would be escaped."""


def exchange_place(packet: int, at: int) -> int:
    """Return the place of the exchange whose first byte came with a packet, at an offset of the
    file."""
    return EXCHANGE + (max(packet, 0) << OFFSET_BITS) + (at & (1 << OFFSET_BITS) - 1)


def connection_place(packet: int) -> int:
    """Return the provisional number of the connection that begins with a packet."""
    return CONNECTION + packet


def in_order(places: Any, offsets: Any) -> Any:
    """Return the places of exchanges in their order; `offsets`: the whole ones in the file."""
    import numpy as np

    return places[np.lexsort((offsets, places >> OFFSET_BITS))]


class Ranks:
    """Numbers of places."""

    def __init__(self, table: Any) -> None:
        """`table`: an array of int64, ascending places and their numbers; of a file, too."""
        import numpy as np

        self._find = np.searchsorted
        self.table = table
        self._places, self._ranks = table

    def of(self, values: Any) -> Any:
        if not len(self._places):
            return values
        out = values.copy()
        found = self._find(self._places[:-1], values)  # not after the last
        known = self._places[found] == values
        out[known] = self._ranks[found[known]]
        return out

    def one(self, place: int) -> int:
        """Return the number of one place; another number stays."""
        at = int(self._find(self._places, place))
        if at < len(self._places) and self._places[at] == place:
            return int(self._ranks[at])
        return place


def ranks_of(places: Any, numbers: Any) -> Ranks:
    import numpy as np

    ascending = np.argsort(places, kind="stable")
    return Ranks(np.stack([places[ascending], numbers[ascending]]))


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
    if kind is int and abs(value) >= EXCHANGE:
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
