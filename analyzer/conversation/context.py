"""State that the conversations of one session share: topic names, known brokers, limits."""

from __future__ import annotations

import struct
from collections import Counter, deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Protocol, TypeAlias

from kafkascope.analyzer.bodies.fetch_sessions import LISTED
from kafkascope.analyzer.bodies.nodes import NodeAddresses
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

# Ports on which ZooKeeper is expected where the start of a connection is not in the capture.
ZOOKEEPER_PORTS: Final = frozenset({2181})

_FILE_OFFSET: Final = struct.Struct(">Q")


class Endpoints(set[Endpoint]):
    """Endpoints that answered, up to a limit: later ones are ignored."""

    def __init__(self, most: int = LIMITS.endpoints) -> None:
        super().__init__()
        self._most: Final = most

    def add(self, endpoint: Endpoint) -> None:
        if len(self) < self._most:
            super().add(endpoint)


CrossCheck: TypeAlias = tuple[str, Endpoint | bytes]
"""A fact that another connection may supply: that an endpoint is a "broker" or a "zookeeper"
server, or which handshake gave out the id or ticket of a TLS "session"."""


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
        self.names = TopicNames(limits.topics)
        self.nodes = NodeAddresses(limits.bodies)
        self.decode_as = frozenset(decode_as)
        """Ports of Kafka that the user gave with -d."""
        self.brokers: set[Endpoint] = Endpoints(limits.endpoints)
        """Endpoints that answered as Kafka in this session."""
        self.zookeepers: set[Endpoint] = Endpoints(limits.endpoints)
        """Endpoints that answered as ZooKeeper in this session."""
        # A worker of several processes sees some of the connections. Where it judged one without
        # a fact that a connection of another worker may have supplied, its parent compares, and
        # one process reads the input again if it did (decision 0049).
        self.cross_checks: set[CrossCheck] | None = None
        """Facts that were looked up without success; None where they are not collected."""
        self.fingerprints: list[bytes] = []
        """Fingerprints of the input files, by their index: what makes exchange ids stable."""
        self.remarks: Remarks | None = None
        """Comments on packets of an input that our own proxy recorded."""
        self._hashes: dict[bytes, blake2b] = {}
        """By fingerprint, with the key already hashed: half of the work of `identify`."""
        self.opaque: Counter[str] = Counter()
        """Count of connections that are not Kafka's, by their protocol."""
        self.encrypted: deque[Connection] = deque(maxlen=limits.encrypted_connections)
        """The latest connections that begin with TLS."""
        self.keys = KeySources()
        self.frame_listener: FrameListener | None = None
        """Receives each frame as soon as it is whole, before any exchange with it; None: no
        listener, and the kernel may read."""
        self.http: HttpConsumer | None = None
        """Receives HTTP exchanges; None: connections with HTTP are only counted."""
        self.sink = PairSink()
        self.direct = False
        """Whether reassembly gives bytes to the kernel before they become events; see
        `Conversations.kernel_exchanges`."""
        # An upper bound, because exact sums would cost a walk over all connections for each event:
        # it only grows, and `Conversations` counts the memory when the bound exceeds the limit.
        self.buffered_bytes = 0
        """Upper bound of the memory of requests in flight, partial frames, and connections whose
        protocol is not known yet."""
        self.forgotten = 0
        """How often the partitions of a connection's fetch sessions, or the ends of their logs,
        were dropped to save memory."""
        self.late_responses = False
        """Whether responses to evicted requests came."""
        self.unlisted_topics = False
        """Whether a fetch session has more topics than its requests list."""
        self.truncations: set[str] = set()
        """Sentences of `left_out` of other processes, or of stored tables."""
        self.skipped_bytes = 0
        """Bytes of Kafka connections in which no frame was found."""

    def left_out(self) -> set[str]:
        """Return a sentence for each limit that was reached, and what is therefore missing."""
        sentences = set(self.truncations)
        if self.names.full:
            sentences.add("too many topics have an id: the latest are shown by id, not by name")
        if self.nodes.full:
            most = self.limits.bodies.nodes
            sentences.add(f"more than {most:,} brokers were advertised: the others are ignored")
        if max(len(self.brokers), len(self.zookeepers)) >= self.limits.endpoints:
            sentences.add(
                f"more than {self.limits.endpoints:,} endpoints answered: connections to others "
                "are judged by their own bytes alone"
            )
        if self.forgotten:
            sentences.add(
                "too many partitions are fetched: the oldest state was dropped, so partitions and "
                "waits of some later Fetch requests are unknown"
            )
        if self.late_responses:
            sentences.add(
                "too many requests were in flight, on one connection or on all: the oldest were "
                "evicted, and responses to them are left out"
            )
        if self.unlisted_topics:
            sentences.add(
                f"fetch sessions have more than {LISTED:,} topics: requests that do not name them "
                "are found by the first ones"
            )
        return sentences

    def not_kafka(self, reason: str, connection: Connection) -> None:
        if reason.startswith(TLS):
            self.encrypted.append(connection)
        full = len(self.opaque) >= self.limits.protocols
        if full and reason not in self.opaque and reason != GIVEN_UP:
            reason = UNKNOWN
        self.opaque[reason] += 1

    def is_broker(self, endpoint: Endpoint, *, final: bool = True) -> bool:
        """Return whether Kafka is expected at an endpoint. `final`: the connection is judged by the
        result; otherwise this is called again for it, and no cross check is noted."""
        return self.is_broker_port(endpoint.port) or self._is_known(endpoint, self.brokers, final)

    def _is_known(self, endpoint: Endpoint, servers: set[Endpoint], final: bool = True) -> bool:
        if endpoint in servers:
            return True
        if final and self.cross_checks is not None:
            kind = "zookeeper" if servers is self.zookeepers else "broker"
            self.cross_checks.add((kind, endpoint))
        return False

    def is_broker_port(self, port: int) -> bool:
        """Return whether Kafka is expected at a port without any other evidence."""
        return port in KAFKA_PORTS or port in self.decode_as

    def is_zookeeper(self, endpoint: Endpoint) -> bool:
        return endpoint.port in ZOOKEEPER_PORTS or self._is_known(endpoint, self.zookeepers)

    def expects(self, connection: Connection) -> bool:
        """Return whether Kafka or ZooKeeper is expected at an end of a connection, also by the
        addresses that brokers advertised. Of those only ports are compared: they are names, and
        packets have addresses."""
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
        """Return a hash that is keyed with the fingerprint of a file; None where there is none, as
        for live input."""
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
        """Return the exchange id of a frame at `offset` of its stream, whose first byte is at
        offset `at` of the file."""
        keyed = self.hash_of(file)
        if keyed is not None:
            digest = keyed.copy()
            digest.update(_FILE_OFFSET.pack(at))
            return digest.hexdigest()
        text = f"{connection.a} {connection.b} {connection.number} {direction} {offset}"
        return blake2b(text.encode(), digest_size=8).hexdigest()
