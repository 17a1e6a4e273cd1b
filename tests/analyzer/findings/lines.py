"""Connections made of exact packets, as a capture point sees them: with handshakes,
acknowledgements and windows, so that it is known where the time of an exchange went."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import ip_address
from operator import attrgetter
from typing import Final

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import Endpoint, StreamEvent
from kafkascope.captures.packets.tcp import ACK, PSH, SYN, Segment
from kafkascope.captures.streams.reassembly import Reassembler
from tests.analyzer.findings import judging
from tests.kit.captures import segment
from tests.kit.wire import BROKER, CLIENT, MS, START, request, response, told

MSS: Final = 1460
OPEN: Final = 60_000
"""A receive window that has room."""
TRIP: Final = MS // 10
VERSIONS: Final = {"Metadata": 8, "Produce": 7, "Heartbeat": 3, "CreateTopics": 4}


class Line:
    """One connection: side 0 is the client, side 1 the broker. No time passes between packets but
    what is said."""

    def __init__(
        self,
        port: int = CLIENT.port,
        *,
        client: str = "app",
        trip_ns: int = TRIP,
        client_trip_ns: int = TRIP,
        syns: int = 1,
        at_ns: int = 0,
    ) -> None:
        """`trip_ns`: from the capture point to the broker and back, `client_trip_ns`: to the
        client; `syns`: one each second until it is answered."""
        self.client, self.trip_ns = client, trip_ns
        self.segments: list[Segment] = []
        self.time_ns = START + at_ns
        self.next = [0, 0]
        """Sequence number that each side uses next."""
        self.got = [0, 0]
        """What has come of each side's bytes without a hole."""
        ends = CLIENT._replace(port=port), BROKER
        self._flows = _flow(*ends), _flow(*ends[::-1])
        for number in range(syns):
            self._add(0, b"", SYN, after_ns=1000 * MS if number else 0)
        self.next[0] = self.got[0] = 1
        self._add(1, b"", SYN | ACK, after_ns=trip_ns)
        self.next[1] = self.got[1] = 1
        self._add(0, b"", ACK, after_ns=client_trip_ns)

    def _add(
        self,
        side: int,
        data: bytes,
        flags: int,
        *,
        seq: int | None = None,
        after_ns: int = 0,
        window: int = OPEN,
    ) -> None:
        self.time_ns += after_ns
        seq, ack = self.next[side] if seq is None else seq, self.got[1 - side]
        made = segment(side, seq, data, flags, ack=ack, flow=self._flows[side])
        self.segments.append(made._replace(time_ns=self.time_ns, window=window, scale=0))

    def send(
        self, side: int, data: bytes, after_ns: int = 0, *, arrives: bool = True, seen: bool = True
    ) -> Line:
        """One segment. It may be lost behind the capture point, so that it does not arrive, or
        before it, so that it is not even seen."""
        if seen:
            self._add(side, data, ACK | PSH, after_ns=after_ns)
        else:
            self.time_ns += after_ns
        in_order = self.got[side] == self.next[side]
        self.next[side] += len(data)
        if arrives and seen and in_order:
            self.got[side] = self.next[side]
        return self

    def again(self, side: int, data: bytes, after_ns: int, *, newer: int = 0) -> Line:
        """What was lost, sent again when `newer` bytes were sent behind it."""
        seq = self.next[side] - newer - len(data)
        self._add(side, data, ACK | PSH, seq=seq, after_ns=after_ns)
        self.got[side] = self.next[side]
        return self

    def ack(self, side: int, after_ns: int = 0, *, window: int = OPEN) -> Line:
        """An acknowledgement of all that came, with a receive window."""
        self._add(side, b"", ACK, after_ns=after_ns, window=window)
        return self

    def stream(self, side: int, data: bytes, takes_ns: int) -> Line:
        """Full segments, each acknowledged, evenly spaced until the last one."""
        parts = [data[at : at + MSS] for at in range(0, len(data), MSS)]
        begin, gaps = self.time_ns, max(1, len(parts) - 1)
        for number, part in enumerate(parts):
            self.send(side, part, begin + takes_ns * number // gaps - self.time_ns).ack(1 - side)
        return self

    def asking(self, number: int, api: str = "Metadata", size: int = 0) -> bytes:
        """A request of this client; a Produce with so many bytes of records."""
        if api != "Produce":
            return request(api, VERSIONS[api], number, self.client)
        topics = [{"name": "t", "partition_data": [{"index": 0, "records": bytes(size)}]}]
        return request(api, VERSIONS[api], number, self.client, acks=-1, topic_data=topics)

    def ask(self, number: int, takes_ns: int = MS, api: str = "Metadata") -> Line:
        """A request and its response, which the broker takes so long for."""
        self.send(0, self.asking(number, api))
        return self.send(1, answer(number, api), self.trip_ns + takes_ns)

    def rest(self, length_ns: int) -> Line:
        self.time_ns += length_ns
        return self


def answer(number: int, api: str = "Metadata", size: int = 0, **fields: object) -> bytes:
    """A response; one to Metadata may have any size."""
    if size:
        fields["cluster_id"] = "c" * size
    return response(api, VERSIONS[api], number, **fields)


def events_of(lines: Iterable[Line]) -> list[StreamEvent]:
    """What reassembly makes of all packets."""
    packets = sorted((each for line in lines for each in line.segments), key=attrgetter("time_ns"))
    reassembler = Reassembler()
    numbered = (each._replace(packet=number) for number, each in enumerate(packets, 1))
    events = [event for each in numbered for event in reassembler.feed(each)]
    return events + reassembler.finish()


def rows_of(lines: Iterable[Line]) -> list[tuple[Row, Exchange]]:
    context = Context()
    return [(row_of(each, context.names), each) for each in told(events_of(lines), context)]


def found(lines: Iterable[Line], *rules: str) -> dict[str, Finding]:
    """Rule -> finding, of these rules."""
    return {each.name: each for each in judging.every(events_of(lines), *rules)}


def severity(lines: Iterable[Line], rule: str) -> str | None:
    finding = found(lines, rule).get(rule)
    return finding.severity if finding is not None else None


def _flow(source: Endpoint, target: Endpoint) -> bytes:
    hosts = ip_address(source.host).packed + ip_address(target.host).packed
    return hosts + struct.pack(">HH", source.port, target.port)
