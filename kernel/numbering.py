"""Numbers of exchanges: the dense rank by origin, from 1, given while an input is read.

    told exchanges ─► Hold ─► exchanges with numbers, in the order of these
                       ▲
         watermark, origins of what has begun

Whoever reads tells two things from time to time: the first packet in which an exchange may still be
found to begin (the watermark), and the origins of those that have begun and are not told. What lies
before the watermark is known, so it can be numbered; what is numbered leaves the hold in order.
State without I/O. Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

from kafkascope.kernel.pairs import Pair

Item = TypeVar("Item")

Start: TypeAlias = tuple[int, int]
"""An `Origin`, or what is like one."""

# Exchanges that are held. A busy cluster answers some 20,000 requests within the half second for
# which a consumer's Fetch waits (`fetch.max.wait.ms`); a request that is never answered, or a
# search for frames that lasts, must not delay the others for longer.
MOST_HELD: Final = 20_000
# The same of their bytes on the wire.
MOST_BYTES: Final = 64 << 20

_START = itemgetter(0, 1)


class Hold(Generic[Item]):
    """Exchanges that wait for their number, or for those before them."""

    def __init__(
        self,
        size_of: Callable[[Item], int],
        is_complete: Callable[[Item], bool] | None = None,
        most_held: int = MOST_HELD,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`size_of`: its bytes. `is_complete`: whether nothing more may be learned about an item
        that is worth waiting for; asked until it is, but not of a pair without ids of topics."""
        self._size_of = size_of
        self._most_held, self._most_bytes = most_held, most_bytes
        self._is_complete = is_complete
        self.given = 0
        """The last number that was given."""
        self.next = 1
        """The number that leaves next."""
        self._new: list[tuple[int, int, Item | None]] = []
        """What has no number yet, with its origin."""
        self._begun: dict[Start, int] = {}
        """Numbers of what is not told yet."""
        self._ready: dict[int, Item] = {}
        """What was told, by number."""

    def __len__(self) -> int:
        return len(self._new) + len(self._ready)

    def left_behind(self) -> set[int]:
        """Return the numbers before `next` of which the exchanges are not told yet."""
        return {number for number in self._begun.values() if number < self.next}

    def add(self, exchanges: Iterable[tuple[int, int, Item]]) -> list[tuple[int, Item]]:
        """Take complete exchanges, with their origins; return those that others have left
        behind."""
        begun = self._begun
        if not begun:
            self._new += exchanges
            return []
        late: list[tuple[int, Item]] = []
        for each in exchanges:
            number = begun.pop(each[:2], 0)
            if not number:
                self._new.append(each)
            elif number < self.next:
                late.append((number, each[2]))
            else:
                self._ready[number] = each[2]
        return late

    def at_once(self, exchanges: Iterable[tuple[int, int, Item]]) -> list[tuple[int, Item]]:
        """Number exchanges as they come, in whichever order."""
        out = self.finish() if len(self) else []
        for packet, offset, item in exchanges:
            number = self._begun.pop((packet, offset), 0)
            if not number:
                number = self.given = self.given + 1
            out.append((number, item))
        self.next = self.given + 1
        return out

    def settle(self, watermark: int, begun: Iterable[Start]) -> list[tuple[int, Item]]:
        """Number what lies before the watermark; return what leaves, in order."""
        known, new = self._begun, self._new
        new += [(*each, None) for each in begun if each[0] < watermark and tuple(each) not in known]
        # Nothing that begins before the watermark is found any more: these ranks are final.
        new.sort(key=_START)
        self._number(self._before(watermark))
        out: list[tuple[int, Item]] = []
        self._leave(out)
        if len(self._ready) + len(new) > self._most_held or self._bytes() > self._most_bytes:
            self._relieve(out)
        return out

    def _before(self, watermark: int) -> int:
        new = self._new
        if not new or new[-1][0] < watermark:
            return len(new)
        return next(at for at, each in enumerate(new) if each[0] >= watermark)

    def _number(self, count: int) -> None:
        ready, begun = self._ready, self._begun
        for number, (packet, offset, item) in enumerate(self._new[:count], self.given + 1):
            if item is None:
                begun[packet, offset] = number
            else:
                ready[number] = item
        self.given += count
        del self._new[:count]

    def _leave(self, out: list[tuple[int, Item]]) -> None:
        """Let those go before which nothing is missing."""
        ready, number, is_complete = self._ready, self.next, self._is_complete
        while (item := ready.get(number)) is not None:
            if is_complete is not None and not without_ids(item) and not is_complete(item):
                break
            del ready[number]
            out.append((number, item))
            number += 1
        self.next = number

    def _bytes(self) -> int:
        size = self._size_of
        new = sum(size(item) for *_, item in self._new if item is not None)
        return new + sum(map(size, self._ready.values()))

    def _relieve(self, out: list[tuple[int, Item]]) -> None:
        """Leave the oldest behind, until no more is held than may be."""
        held, size = len(self), self._bytes()
        while held > self._most_held or size > self._most_bytes:
            if not self._ready:
                # Where an exchange was not known to begin before these, it gets a later number: a
                # request that is never answered must not hold all that follow.
                self._number(min(len(self._new), self._most_held // 8 + 1))
            item = self._ready.pop(self.next, None)
            self.next += 1
            if item is not None:
                out.append((self.next - 1, item))
                held -= 1
                size -= self._size_of(item)
        self._leave(out)

    def finish(self) -> list[tuple[int, Item]]:
        """Number and return all that is left, in order: nothing more will come."""
        self._new.sort(key=_START)
        self._number(len(self._new))
        out = sorted(self._ready.items(), key=itemgetter(0))
        self._ready.clear()
        self.next = self.given + 1
        return out


def without_ids(item: Any) -> bool:
    """Return whether it is a pair that no id of a topic is in."""
    return isinstance(item, Pair) and item.session is None and item.facts.topic_ids is None


def with_origins(items: list[Any]) -> list[tuple[int, int, Any]]:
    """Return exchanges after their origins."""
    out: list[tuple[int, int, Any]] = []
    for item in items:
        if isinstance(item, Pair):
            out.append((item.packet, item.offset, item))
        else:
            packet, offset = item.origin
            out.append((packet, offset, item))
    return out


def numbered(found: list[tuple[int, Any]]) -> list[Any]:
    """Give exchanges their numbers."""
    out: list[Any] = []
    for number, item in found:
        item.number = number
        out.append(item)
    return out
