"""Holds exchanges until their responses are acknowledged: until then TCP may send these again,
which belongs to what is told of an exchange. State without I/O. Compiled by mypyc; the same source
runs without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mypy_extensions import i64

from kafkascope.kernel.pairs import Pair
from kafkascope.kernel.path import SENT_AGAIN_NS, Path


class Unacknowledged:
    """The exchanges of some connections that wait."""

    def __init__(self, place_of: Callable[[Any], tuple[Path, int, int] | None]) -> None:
        """`place_of` returns, for what is no pair, the path, the direction of the response and the
        time of its last byte; None where there is no response."""
        self._place_of = place_of
        self._waiting: list[tuple[Any, Path, int, int, int]] = []
        """(exchange, path, direction and sequence number of the response, time of its last
        byte)"""

    @property
    def items(self) -> list[Any]:
        """What waits."""
        return [each[0] for each in self._waiting]

    def passed(self, items: list[Any], now_ns: int) -> list[Any]:
        """Take exchanges; return those that need not wait. `now_ns`: time of the last packet."""
        out: list[Any] = []
        before = self._waiting
        self._waiting = []
        for each in before:
            if each[1].covers(each[2], each[3]) or now_ns - each[4] > SENT_AGAIN_NS:
                out.append(each[0])
            else:
                self._waiting.append(each)
        for item in items:
            path: Path
            direction: i64
            last_ns: i64
            if isinstance(item, Pair):
                path, direction = item.reader.path, 1 - item.reader.direction
                last_ns = item.response_last_ns
            else:
                found = self._place_of(item)
                if found is None:
                    out.append(item)
                    continue
                path, direction, last_ns = found
            # All was acknowledged after its last byte: so nothing of it is sent again.
            settled_ns = path.settled1 if direction == 1 else path.settled0
            end: i64 = -1
            if last_ns >= settled_ns:
                end = path.unacknowledged(direction)
            if end < 0:
                out.append(item)
            else:
                self._waiting.append((item, path, direction, end, last_ns))
        return out

    def rest(self) -> list[Any]:
        """Return all that waits: no packets will come."""
        items = self.items
        self._waiting = []
        return items
