"""What the conversations of one session share: topic names, brokers that were found."""

from __future__ import annotations

import struct
from collections import Counter, deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Protocol, TypeAlias

from kafkascope.analyzer.bodies.fetch_sessions import LISTED
from kafkascope.analyzer.bodies.nodes import MAX_NODES, NodeAddresses
from kafkascope.analyzer.conversation.detect import GIVEN_UP, KAFKA_PORTS, UNKNOWN
from kafkascope.analyzer.conversation.limits import LIMITS, ConversationLimits
from kafkascope.analyzer.model import Frame, HttpConsumer, Side
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.formats.remarks import Remarks
from kafkascope.captures.model import Connection, Endpoint
from kafkascope.captures.signatures import TLS
from kafkascope.captures.tls.sources import KeySources
from kafkascope.dissectors.registry import RequestHeader
from kafkascope.kernel.pairs import PairSink

ZOOKEEPER_PORTS: Final = frozenset({2181})
"""Ports on which ZooKeeper is expected where the begin of a connection is not in the capture."""


_PLACE: Final = struct.Struct(">Q")


class Endpoints(set[Endpoint]):
    """Endpoints that answered, at most so many."""

    def __init__(self, most: int = LIMITS.endpoints) -> None:
        super().__init__()
        self._most: Final = most

    def add(self, endpoint: Endpoint) -> None:
        if len(self) < self._most:
            super().add(endpoint)


Question: TypeAlias = tuple[str, Endpoint | bytes]
"""Whether an endpoint is a broker, or a ZooKeeper server; which handshake gave out a session id or
ticket of TLS."""


class FrameListener(Protocol):
    """Receiver of the frames of Kafka connections."""

    def __call__(self, side: Side, frame: Frame, header: RequestHeader | None) -> None:
        """Receive a frame; `header` of a request, None for raw SASL tokens and nonsense."""


class Context:
    """State of a session that crosses connections. No I/O."""

    def __init__(self, decode_as: Iterable[int] = (), limits: ConversationLimits = LIMITS) -> None:
        self.limits = limits
        self.exchanges = 0
        """Exchanges that got a number."""
        self.names = TopicNames()
        self.nodes = NodeAddresses()
        self.decode_as = frozenset(decode_as)
        """Ports that the user says are Kafka's."""
        self.brokers: set[Endpoint] = Endpoints(limits.endpoints)
        """Endpoints that answered as Kafka in this session."""
        self.zookeepers: set[Endpoint] = Endpoints(limits.endpoints)
        """Endpoints that answered as ZooKeeper in this session."""
        self.asked: set[Question] | None = None
        """What other connections could have told when one was judged; None: nobody wants to
        know."""
        self.fingerprints: list[bytes] = []
        """Of the input files, by their index: what makes exchange ids stable."""
        self.remarks: Remarks | None = None
        """What our own proxy said of packets, where it recorded the input."""
        self._hashes: dict[bytes, blake2b] = {}
        """By fingerprint: half of the work is the same for all exchanges of a file."""
        self.opaque: Counter[str] = Counter()
        """Connections that are not Kafka's, by what they look like."""
        self.encrypted: deque[Connection] = deque(maxlen=limits.encrypted_connections)
        """Connections that begin with TLS, the last ones."""
        self.keys = KeySources()
        self.heard: FrameListener | None = None
        """What is told of each frame as soon as it is whole, before any exchange with it."""
        self.http: HttpConsumer | None = None
        """What takes the HTTP exchanges; without one, connections with HTTP are counted only."""
        self.sink = PairSink()
        self.direct = False
        """Whether it may get bytes before they become events: see `Conversations.caught_up`."""
        self.waiting = 0
        """Memory that is held until more bytes come, at most: requests without an answer, frames
        that are not whole, connections of which nobody knows what they speak. What is over is not
        subtracted until it matters (`Conversations`)."""
        self.forgotten = 0
        """How often partitions that a connection fetches were forgotten, or where their logs
        end."""
        self.late = False
        """Whether answers came to requests that had been given up."""
        self.untold = False
        """Whether a fetch session has more topics than its requests tell."""
        self.beyond: set[str] = set()
        """What others left out for its number, who read a part: see `left_out`."""
        self.skipped_bytes = 0
        """Bytes of Kafka connections in which no frame was found."""

    def left_out(self) -> set[str]:
        """Return sentences about what was not taken note of, for there is too much of it."""
        found = set(self.beyond)
        if self.names.full:
            found.add("too many topics have an id: ids stand in place of the names that came last")
        if self.nodes.full:
            found.add(f"more than {MAX_NODES:,} brokers were advertised: the others are ignored")
        if max(len(self.brokers), len(self.zookeepers)) >= self.limits.endpoints:
            found.add(
                f"more than {self.limits.endpoints:,} endpoints answered: connections to others "
                "are judged by their own bytes alone"
            )
        if self.forgotten:
            found.add(
                "too many partitions are fetched: those of a request, and whether it waits for "
                "data, are not known behind the place where they were forgotten"
            )
        if self.late:
            found.add(
                "too many requests waited for their answers, on one connection or on all: the "
                "first were given up, and what was answered to them is left out"
            )
        if self.untold:
            found.add(
                f"fetch sessions have more than {LISTED:,} topics: requests that do not name them "
                "are found by the first ones"
            )
        return found

    def not_kafka(self, reason: str, connection: Connection) -> None:
        if reason.startswith(TLS):
            self.encrypted.append(connection)
        many = len(self.opaque) >= self.limits.protocols
        if many and reason not in self.opaque and reason != GIVEN_UP:
            reason = UNKNOWN
        self.opaque[reason] += 1

    def is_broker(self, endpoint: Endpoint, *, final: bool = True) -> bool:
        """Return whether Kafka is to be expected there. `final`: whether the connection is judged
        by the answer; else this is called again."""
        return self.is_broker_port(endpoint.port) or self._is_known(endpoint, self.brokers, final)

    def _is_known(self, endpoint: Endpoint, among: set[Endpoint], final: bool = True) -> bool:
        if endpoint in among:
            return True
        if final and self.asked is not None:
            self.asked.add(("zookeeper" if among is self.zookeepers else "broker", endpoint))
        return False

    def is_broker_port(self, port: int) -> bool:
        """Return whether Kafka is to be expected at a port, whatever was seen."""
        return port in KAFKA_PORTS or port in self.decode_as

    def is_zookeeper(self, endpoint: Endpoint) -> bool:
        return endpoint.port in ZOOKEEPER_PORTS or self._is_known(endpoint, self.zookeepers)

    def expects(self, connection: Connection) -> bool:
        """Return whether Kafka or ZooKeeper should be at an end of a connection, also by what
        brokers told of each other: names cannot be compared with addresses, so the port has to
        do."""
        if any(map(self.is_zookeeper, (connection.a, connection.b))):
            return True
        return self.nodes.has_port(connection.b.port) or any(
            map(self.is_broker, (connection.a, connection.b))
        )

    def identify(self, connection: Connection, direction: int, frame: Frame) -> str:
        """Return the exchange id: 16 hexadecimal digits, equal for equal input."""
        part = frame.parts[0]
        return self.identify_at(connection, direction, frame.offset, part.file, part.at)

    def hash_of(self, file: int) -> blake2b | None:
        """Return what hashes places in a file; None where there is no file."""
        if not 0 <= file < len(self.fingerprints):
            return None
        key = self.fingerprints[file]
        hashes = self._hashes.get(key)
        if hashes is None:
            hashes = self._hashes[key] = blake2b(digest_size=8, key=key)
        return hashes

    def identify_at(
        self, connection: Connection, direction: int, offset: int, file: int, at: int
    ) -> str:
        """Return the same for a frame that begins at an offset of its stream, and there in a
        file."""
        hashes = self.hash_of(file)
        if hashes is not None:
            found = hashes.copy()
            found.update(_PLACE.pack(at))
            return found.hexdigest()
        text = f"{connection.a} {connection.b} {connection.number} {direction} {offset}"
        return blake2b(text.encode(), digest_size=8).hexdigest()
