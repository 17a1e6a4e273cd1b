"""Traffic of a shop made by hand: clients that produce, fetch and commit, each on a connection."""

from collections.abc import Collection
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.journeys.joins import Joins
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from kafkascope.analyzer.statistics.journeys.model import Journey
from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Chunk, StreamEvent
from tests.kit.batches import batch
from tests.kit.wire import CLIENT, MS, START, Wire, request, response, told

TRANSACTIONAL, CONTROL = 16, 32
SESSION = 77
Pair = tuple[Row, Exchange]


def records(
    count: int, base: int = 0, producer: tuple[int, int, int] = (-1, -1, -1), bits: int = 0
) -> bytes:
    pairs: list[Any] = [(f"k{number}".encode(), b"v") for number in range(count)]
    return batch(pairs, base_offset=base, producer=producer, attributes=bits)


def marker(base: int, producer: int, *, commit: bool) -> bytes:
    key = b"\0\0\0" + (b"\1" if commit else b"\0")
    bits = TRANSACTIONAL | CONTROL
    return batch(
        [(key, b"\0\0\0\0\0\0")], base_offset=base, producer=(producer, 0, -1), attributes=bits
    )


class Shop:
    """Exchanges in the order in which they are made, each two milliseconds long: the request comes
    a millisecond after the response before."""

    def __init__(self) -> None:
        self._wires: dict[str, Wire] = {}
        self._number = 0
        self._time_ns = START

    def exchange(
        self,
        client_id: str,
        api: str,
        version: int,
        asked: Any,
        answer: Any = None,
        port: int = 9092,
    ) -> Self:
        """Add a request with its response; without an answer there is none."""
        self._number += 1
        wire = self._wires.get(f"{client_id} {port}")
        if wire is None:
            wire = self._wires[f"{client_id} {port}"] = Wire(port=port, number=len(self._wires))
        wire.time_ns = self._time_ns
        wire.packet = self._number * 10
        wire.client(request(api, version, self._number, client_id, **asked))
        if answer is not None:
            wire.broker(response(api, version, self._number, **answer))
        self._time_ns = wire.time_ns
        return self

    def later(self, ms: int) -> Self:
        self._time_ns += ms * MS
        return self

    def produce(
        self,
        client_id: str,
        base: int,
        blob: bytes,
        *,
        error: int = 0,
        acks: int = -1,
        version: int = 3,
        topic: str = "t",
        answered: bool = True,
        port: int = 9092,
    ) -> Self:
        topics = [{"name": topic, "partition_data": [{"index": 0, "records": blob}]}]
        parts = [{"index": 0, "error_code": error, "base_offset": base, "log_append_time_ms": -1}]
        answer = {"responses": [{"name": topic, "partition_responses": parts}]}
        asked = {"acks": acks, "topic_data": topics, "transactional_id": None}
        if version < 3:
            del asked["transactional_id"]
        return self.exchange(
            client_id, "Produce", version, asked, answer if answered else None, port
        )

    def fetch(
        self,
        client_id: str,
        offset: int | None,
        blob: bytes,
        *,
        replica: int = -1,
        isolation: int = 0,
        aborted: list[dict[str, Any]] | None = None,
        high: int = 1 << 30,
        stable: int = 1 << 30,
        topic: str = "t",
        port: int = 9092,
        epoch: int = -1,
    ) -> Self:
        """`epoch`: of a fetch session; -1: there is none."""
        asked = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": offset}
        asked |= {"log_start_offset": -1, "partition_max_bytes": 1 << 20}
        topics = [] if offset is None else [{"topic": topic, "partitions": [asked]}]
        part = {
            "partition_index": 0,
            "error_code": 0,
            "high_watermark": high,
            "last_stable_offset": stable,
            "log_start_offset": 0,
            "aborted_transactions": aborted,
            "preferred_read_replica": -1,
            "records": blob,
        }
        ask = {"replica_id": replica, "isolation_level": isolation, "topics": topics}
        ask |= {"forgotten_topics_data": [], "rack_id": ""}
        ask |= {"session_id": SESSION if epoch > 0 else 0, "session_epoch": epoch}
        session = 0 if epoch < 0 else SESSION
        # Within a session, partitions without news are left out of the response.
        parts = [part] if blob or epoch < 0 else []
        answer = {"error_code": 0, "session_id": session}
        answer |= {"responses": [{"topic": topic, "partitions": parts}]}
        return self.exchange(client_id, "Fetch", 11, ask, answer, port)

    def commit(self, client_id: str, group: str, offset: int, *, error: int = 0) -> Self:
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        asked = {"group_id": group, "topics": [{"name": "t", "partitions": [part]}]}
        parts = [{"partition_index": 0, "error_code": error}]
        answer = {"topics": [{"name": "t", "partitions": parts}]}
        return self.exchange(client_id, "OffsetCommit", 2, asked, answer)

    def commit_in_transaction(self, client_id: str, group: str, offset: int, producer: int) -> Self:
        part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        asked = {"transactional_id": "tx", "group_id": group, "producer_id": producer}
        asked |= {"topics": [{"name": "t", "partitions": [part]}]}
        answer = {
            "topics": [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 0}]}]
        }
        return self.exchange(client_id, "TxnOffsetCommit", 0, asked, answer)

    def end(self, client_id: str, producer: int, *, commit: bool) -> Self:
        asked = {"transactional_id": "tx", "producer_id": producer, "committed": commit}
        return self.exchange(client_id, "EndTxn", 1, asked, {"error_code": 0})

    def pairs(self) -> list[Pair]:
        context = Context()
        events: list[StreamEvent] = []
        for wire in self._wires.values():
            events += wire.events
        exchanges = told(sorted(events, key=_time), context)
        return [(row_of(exchange, context.names), exchange) for exchange in exchanges]

    def capture(
        self, path: Path, ports: Collection[int], skew_ns: int = 0, *, followers: bool = False
    ) -> Path:
        """Write what a host with some ports captures, by a clock that is so much ahead: packets of
        its brokers; with `followers` also what these fetch from others."""
        packets: list[tuple[int, int, bytes]] = []
        for number, (name, wire) in enumerate(self._wires.items()):
            client, broker = CLIENT._replace(port=CLIENT.port + number), wire.connection.b
            if broker.port not in ports and not (followers and name.startswith("broker")):
                continue
            composer = Composer(client, broker)
            packets += [(START, len(packets), each) for each in composer.open()]
            for chunk in wire.events[1:]:
                assert isinstance(chunk, Chunk)
                sent = composer.send(chunk.direction, chunk.data)
                packets += [(_time(chunk), len(packets), each) for each in sent]
        with path.open("wb") as file:
            writer = PcapngWriter(file)
            writer.interface("eth0")
            for time_ns, _, packet in sorted(packets, key=itemgetter(0, 1)):
                writer.packet(packet, time_ns + skew_ns)
        return path

    def journeys(self, only: Any = None) -> Journeys:
        found = Journeys(only)
        for row, exchange in self.pairs():
            found.add(ExchangeBatch.of(row, exchange))
        return found

    def journey(self, offset: int, topic: str = "t") -> Journey:
        (one,) = self.ways(offset, topic)
        return one

    def ways(self, offset: int, topic: str = "t") -> list[Journey]:
        """Return the journeys of an offset: one of each log of the partition."""
        found = Joins(self.journeys([(0, offset)])).journeys(topic, 0, offset)
        # What is kept for one record says the same as what is kept of all.
        whole = Joins(self.journeys()).journeys(topic, 0, offset)
        for one, other in zip(found, whole, strict=True):
            assert (one.produced, one.transaction) == (other.produced, other.transaction)
            assert (one.fetched, one.hidden) == (other.fetched, other.hidden)
        return found


def _time(event: StreamEvent) -> int:
    pieces = getattr(event, "pieces", None)
    return pieces[0].time_ns if pieces else START
