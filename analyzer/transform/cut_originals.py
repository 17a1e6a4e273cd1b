"""Chosen connections of a capture as they were captured, with the secrets that open their TLS.

Part of a TLS stream cannot be read, so connections are whole; what is not encrypted is not changed
either. Two steps, as in `cut`: `Originals.add` notes connections and the handshakes of their
secrets, `Originals.write` looks these up in the key log and reads the packets again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kafkascope.analyzer.conversation.tampering import BETWEEN, comment_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.transform.other_traffic import (
    OtherTraffic,
    Wanted,
    is_closed,
    is_row_of_other,
)
from kafkascope.captures.formats.write import PcapngWriter, Sink
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Connection, StreamEvent
from kafkascope.captures.streams.streams import packets_of
from kafkascope.captures.tls.keys.epoch import Epoch, key_log_lines
from kafkascope.captures.tls.keys.keylog import KeyLog

# Secrets in a block: readers pass over very large ones.
BLOCK_BYTES: Final = 1 << 20


class Originals:
    """Chosen connections of a capture on their way to another one."""

    def __init__(self, comments: Mapping[int, str] | None = None) -> None:
        """`comments`, by exchange number, stand at the first packet of a request (of a response
        without one)."""
        self.others = OtherTraffic()
        self.chosen: dict[int, Connection] = {}
        """By number."""
        self.clients: set[str] = set()
        """Addresses of the clients of what was chosen."""
        self.ports: set[int] = set()
        """Those of brokers that spoke TLS."""
        self.exchanges = 0
        """In the chosen connections, once all of the capture was read."""
        self.asked = 0
        """Those of them that were chosen."""
        self._comments = {} if comments is None else comments
        self._told: dict[int, str] = {}
        """Comments by number of the packet."""
        self._seen: Counter[int] = Counter()
        """Exchanges by number of the connection, chosen or not."""
        self._epochs: defaultdict[int, dict[Epoch, None]] = defaultdict(dict)
        """The handshakes of a connection, by its number."""
        self.secrets = 0
        """Connections of which the secrets were written."""
        self.plain = 0
        """Connections with exchanges that are not encrypted."""
        self.closed = 0
        """Connections with TLS that nobody can read, once they were written."""

    def event(self, event: StreamEvent) -> None:
        """Take note of connections without an exchange; for `OpenInput.listener`."""
        self.others.event(event)

    def exchange(self, exchange: Exchange) -> None:
        """Take note that a connection is Kafka's; for `OpenInput.listener`."""
        self._seen[exchange.connection.number] += not is_row_of_other(exchange)
        self.others.exchange(exchange)

    def opened(self, connection: Connection, epoch: Epoch) -> None:
        """Take note of a handshake whose secrets are known; for `KeySources.opened`."""
        self._epochs[connection.number][epoch] = None

    def add(self, exchange: Exchange) -> None:
        """Choose the connection of an exchange."""
        self.clients.add(exchange.client.host)
        if self.others.choose(exchange):
            return
        self.asked += 1
        self.chosen[exchange.connection.number] = exchange.connection
        if exchange.connection.decrypted:
            self.ports.add(exchange.broker.port)
        message = exchange.request or exchange.response
        texts = (comment_of(exchange.notes), self._comments.get(exchange.number, ""))
        if message is not None and any(texts):
            packet = message.frame.parts[0].packet
            self._told[packet] = BETWEEN.join(filter(None, (self._told.get(packet), *texts)))

    def add_others(
        self,
        expected: Callable[[Connection], bool] = lambda _: False,
        wanted: Wanted = lambda *_: False,
    ) -> int:
        """Choose connections without an exchange, when all exchanges are chosen: see
        `OtherTraffic.kept`. How many they are."""
        count = 0
        for beginning in self.others.kept(expected, wanted):
            if beginning.client is None:
                self.chosen[beginning.connection.number] = beginning.connection
                count += 1
        self.exchanges = sum(self._seen[number] for number in self.chosen)
        return count

    def write(self, sink: Sink, source: Source, log: KeyLog | None) -> None:
        """Write a pcapng: secrets, then packets. `NotKept` when these cannot be read again."""
        writer = PcapngWriter(sink)
        for block in _blocks(self._secrets(log)):
            writer.secrets(block)
        interfaces: dict[tuple[int, int], int] = {}
        with source.again() as again:
            first = {connection.first_packet for connection in self.chosen.values()}
            for packet in packets_of(again, first):
                place = (packet.file, packet.interface)
                if place not in interfaces:
                    known = again.formats[packet.file].interfaces[packet.interface]
                    name = known.name or f"cut{len(interfaces)}"
                    interfaces[place] = writer.interface(
                        name, link_type=packet.link_type, comment=known.comment
                    )
                writer.packet(
                    packet.data,
                    packet.time_ns,
                    interface=interfaces[place],
                    length=packet.length,
                    comment=self._told.get(packet.number, ""),
                )

    def _secrets(self, log: KeyLog | None) -> Iterator[bytes]:
        for number, connection in sorted(self.chosen.items()):
            tls = connection.tls
            if tls is None or log is None or tls.error == "bad-secret":
                lines = []
            else:
                lines = [key_log_lines(epoch, log) for epoch in self._epochs[number]]
            self.secrets += any(lines)
            self.plain += tls is None and self._seen[number] > 0
            self.closed += is_closed(connection) or (connection.decrypted and not all(lines))
            yield from lines


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    block = bytearray()
    for each in lines:
        if block and len(block) + len(each) > BLOCK_BYTES:
            yield bytes(block)
            block.clear()
        block += each
    if block:
        yield bytes(block)
