"""Holds exchanges until their responses are acknowledged: until then TCP may send these again,
which belongs to what is told of the exchange (`stages`). State without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.exchanges.stages import LONGEST
from kafkascope.kernel.pairs import acknowledged

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.pairs import Item
    from kafkascope.analyzer.model import Exchange


class Unacknowledged:
    """The exchanges of some connections that wait."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Item, Any, int, int, int]] = []

    @property
    def items(self) -> list[Item]:
        """What waits."""
        return [each[0] for each in self._waiting]

    def passed(self, items: list[Item], now_ns: int) -> list[Item]:
        """Take exchanges; return those that need not wait. `now_ns`: time of the last packet."""
        out: list[Item] = []
        if before := self._waiting:
            self._waiting = []
            for each in before:
                item, path, direction, end, last_ns = each
                if path.covers(direction, end) or now_ns - last_ns > LONGEST:
                    out.append(item)
                else:
                    self._waiting.append(each)
        return out + acknowledged(items, self._waiting, _place_of)

    def rest(self) -> list[Item]:
        """Return all that waits: no packets will come."""
        items, self._waiting = self.items, []
        return items


def _place_of(exchange: Exchange) -> tuple[Any, int, int] | None:
    if exchange.response is None:
        return None
    path, response = exchange.connection.path, exchange.response.spot
    return path, 1 - exchange.client_end, response.last_ns
