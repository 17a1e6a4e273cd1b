"""Completeness of a capture, by its exchanges: whether both sides and all bytes were captured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kafkascope.analyzer.conversation.detect import UNKNOWN
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.model import Exchange
from kafkascope.kernel.pairs import Pair, without_pairs

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.pairs import Item

Sender = Literal["client", "broker"]


@dataclass(slots=True)
class CapturedSides:
    """Which sides of connections were captured, by the exchanges so far."""

    sides: set[Sender] = field(default_factory=set)
    """The sides of Kafka connections of which packets were captured: a broker that resets each
    connection sends no byte."""
    holes: bool = False
    """Whether bytes of an exchange are missing."""

    def note_all(self, items: list[Item]) -> None:
        # Of pairs nothing is missing.
        for item in without_pairs(items) if len(self.sides) == 2 else items:
            self.note(item)

    def note(self, item: Item) -> None:
        known = len(self.sides) == 2
        if not isinstance(item, (Pair, Exchange)):
            return  # a line of a request log came in no packet
        if known and (type(item) is Pair or not item.undecoded):
            return
        exchange = exchange_of(item)
        if not known and not _silent(exchange):
            connection = exchange.connection
            client = exchange.client_end
            # Captures of messages alone have no packets to count.
            seen = [max(pair) for pair in zip(connection.packets, connection.bytes, strict=True)]
            if seen[client]:
                self.sides.add("client")
            if seen[1 - client]:
                self.sides.add("broker")
        self.holes = self.holes or any(each.reason == "gap" for each in exchange.undecoded)

    def add(self, other: CapturedSides) -> None:
        self.sides |= other.sides
        self.holes |= other.holes


def _silent(exchange: Exchange) -> bool:
    """Return whether an exchange says nothing about the other side: no response is due, or it is
    TLS, HTTP or another known protocol."""
    if exchange.state == "opaque":
        return exchange.reason != UNKNOWN
    return exchange.state == "no-reply"
