"""Connections with so much of the traffic that all workers follow them, and take turns: each tells
the exchanges that begin in its turns, and of the others reads what the state of the connection
needs. State without I/O."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Final, NoReturn

from kafkascope.analyzer.conversation.context import MOST_ENCRYPTED
from kafkascope.analyzer.conversation.conversation import Passed
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.exchanges.internal import FETCH, learn_from_log
from kafkascope.analyzer.pipeline.tables.numbers import EXCHANGE
from kafkascope.analyzer.pool.messages import Alone, Now
from kafkascope.captures.model import Chunk, Connection, StreamEvent

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.model import Exchange
    from kafkascope.captures.statistics import Statistics
    from kafkascope.captures.streams.shares import Share

Placed = tuple[int, int, "Exchange"]
"""Moment, turn (see `BlockReport.turns`), exchange."""

NOTHING: Final[list[Placed]] = []

ODD: Final = 1
"""Bit of the numbers of exchanges that others tell."""


class Numbers:
    """Gives the provisional numbers of a worker's exchanges, one after the other: even ones to
    those that it tells."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self.given = 0

    def next(self, packet: int) -> int:
        """Return the next number."""
        self._now.told.taken.append(self._now.moment)
        self.given += 1
        return EXCHANGE + 2 * self.given - 2

    def back(self, number: int) -> int | None:
        """Refuse to take a number back: others may have got the next ones."""
        raise Alone


class _Order:
    """The order of what common connections bring at one moment, which all workers see alike."""

    def __init__(self) -> None:
        self.moment = 0
        """The last one."""
        self._count = 0
        """How many came before at that moment."""

    def turn(self, moment: int) -> int:
        """Return the turn of the next one (see `BlockReport.turns`); 0 for the first that a packet
        brings. Raises `Alone` where it comes late."""
        if moment < self.moment:
            raise Alone
        self._count = self._count + 1 if moment == self.moment else 0
        self.moment = moment
        return 2 * self._count + 1 if self._count or not moment & 1 else 0


class _InTurn:
    """Gives numbers to the exchanges of common connections, odd ones to those that others tell."""

    def __init__(self, numbers: Numbers, now: Now, share: Share) -> None:
        self._numbers = numbers
        self._now = now
        self._others = share.is_others
        self._order = _Order()
        self.run = 0
        """First packet of the run that is looked at; 0: there is none."""

    def next(self, packet: int) -> int:
        """Return the next number."""
        now, numbers = self._now, self._numbers
        moment = now.moment
        if self.run:
            # What wakes one worker ends its runs, and not those of others.
            moment = 2 * max(packet, self.run) + 1
            if not packet:
                moment = max(moment, self._order.moment)
        turn = self._order.turn(moment)
        others = self._others(packet)
        told = now.told
        if turn and not others:
            told.ranks[len(told.taken)] = turn
        told.taken.append(0 if others else moment)
        numbers.given += 1
        return EXCHANGE + 2 * numbers.given - 2 + others

    def back(self, number: int) -> int | None:
        """Refuse to take a number back."""
        raise Alone

    def passing(self, number: int | None, packet: int) -> bool:
        """See `Context.passing`."""
        return self._others(packet) if number is None else bool(number & ODD)


class Followed:
    """The common connections, as one worker follows them."""

    def __init__(self, context: Context, numbers: Numbers, now: Now, share: Share) -> None:
        """`context`: that of the worker's own connections, which learns with it."""
        self._share = share
        self._now = now
        self._context = own = copy(context)
        own.opaque, own.encrypted = Counter(), deque(maxlen=MOST_ENCRYPTED)
        self._turns = turns = _InTurn(numbers, now, share)
        own.turns, own.passing, own.given_up = turns, turns.passing, _give_up
        if not share.first:
            own.http = None
        self._conversations = Conversations(own)
        self.connections: dict[int, Connection | None] = {}
        """By number; None before the first event."""
        self._order = _Order()

    def feed(self, event: StreamEvent) -> list[Placed]:
        """Return the exchanges that an event completes and that this worker tells."""
        turns, moment = self._turns, self._now.moment
        turns.run = 0
        if type(event) is Chunk and len(event.pieces) > 1:
            first, last = event.pieces[0].packet, event.pieces[-1].packet
            if moment == 2 * last + 1:
                turns.run = first
                return self._placed(self._conversations.feed(event), moment, (first, last))
        found: Sequence[Exchange | Passed] = self._conversations.feed(event)
        if not found:
            self.connections[event.connection.number] = event.connection
            return NOTHING
        if len(found) == 1 and type(found[0]) is Passed:
            self._order.turn(moment)
            return NOTHING
        return self._placed(found, moment, None)

    def _placed(
        self, found: Sequence[Exchange | Passed], moment: int, packets: tuple[int, int] | None
    ) -> list[Placed]:
        """Return those that this worker tells. `packets`: the first and the last of the run that
        completed them."""
        told: list[Placed] = []
        for exchange in found:
            if packets is not None:
                moment = 2 * _end_of(exchange, *packets) + 1
            turn = self._order.turn(moment)
            if isinstance(exchange, Passed) or exchange.number & ODD:
                continue
            if exchange.api_key == FETCH:
                learn_from_log(exchange, self._context.names)
            told.append((moment, turn, exchange))
        return told

    def finish(self) -> list[Exchange]:
        """Return the exchanges that nothing completed and that this worker tells."""
        self._turns.run = 0
        found = [each for each in self._conversations.finish() if not each.number & ODD]
        for exchange in found:
            if exchange.api_key == FETCH:
                learn_from_log(exchange, self._context.names)
        return found

    def holds(self, most: int) -> bool:
        """Return whether more than `most` bytes of memory wait for more bytes."""
        return self._context.waiting > most and self._conversations.held > most

    def sum_up(self, context: Context, statistics: Statistics) -> None:
        """Count what is counted of these connections: one worker does, and others leave it out."""
        own = self._context
        if self._share.first:
            context.skipped_bytes += own.skipped_bytes
            context.forgotten += own.forgotten
            context.opaque += own.opaque
            context.encrypted.extend(own.encrypted)
            return
        statistics.connections -= len(self.connections)
        for connection in self.connections.values():
            statistics.duplicates -= 0 if connection is None else sum(connection.duplicates)


def _give_up() -> NoReturn:
    """Refuse to give up requests: how much others hold is not known."""
    raise Alone


def _end_of(exchange: Exchange | Passed, first: int, last: int) -> int:
    """Return the packet of a run that completed an exchange; raise `Alone` where that is not
    known."""
    if isinstance(exchange, Passed):
        end = exchange.last
    else:
        sides = [each for each in (exchange.request, exchange.response) if each is not None]
        end = max(each.frame.parts[-1].packet for each in sides)
    if not first <= end <= last:
        raise Alone
    return end
