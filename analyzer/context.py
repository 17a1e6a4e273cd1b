"""What the conversations of one session share: numbers, topic names, brokers that were found."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from analyzer.detect import KAFKA_PORTS
from analyzer.nodes import NodeAddresses
from analyzer.phases import STATEFUL
from analyzer.topics import TopicNames

if TYPE_CHECKING:
    from analyzer.model import Frame
    from captures.model import Connection, Endpoint

_PLACE: Final = struct.Struct(">Q")


class Context:
    """State of a session that crosses connections. No I/O."""

    def __init__(self, decode_as: Iterable[int] = (), *, bodies: bool = True) -> None:
        self.numbers = 0
        """The last number given to an exchange."""
        self.names = TopicNames()
        self.nodes = NodeAddresses()
        self.decode_as = frozenset(decode_as)
        """Ports that the user says are Kafka's."""
        self.bodies = bodies
        """Whether bodies are decoded at once; without, only headers and what the state needs."""
        self.stateful = STATEFUL
        """Keys of the APIs whose bodies the state needs."""
        self.brokers: set[Endpoint] = set()
        """Endpoints that answered as Kafka in this session."""
        self.fingerprints: list[bytes] = []
        """Of the input files, by their index: what makes exchange ids stable."""
        self.opaque: Counter[str] = Counter()
        """Connections that are not Kafka's, by what they look like."""
        self.skipped_bytes = 0
        """Bytes of Kafka connections in which no frame was found."""

    def next_number(self) -> int:
        """The number of the next exchange."""
        self.numbers += 1
        return self.numbers

    def is_broker(self, endpoint: Endpoint) -> bool:
        """Whether Kafka is to be expected there."""
        port = endpoint.port
        return port in KAFKA_PORTS or port in self.decode_as or endpoint in self.brokers

    def identify(self, connection: Connection, direction: int, frame: Frame) -> str:
        """The exchange id: 16 hexadecimal digits, equal for equal input."""
        part = frame.parts[0]
        if 0 <= part.file < len(self.fingerprints):
            key, place = self.fingerprints[part.file], _PLACE.pack(part.at)
        else:
            key = b""
            text = f"{connection.a} {connection.b} {connection.number} {direction} {frame.offset}"
            place = text.encode()
        return blake2b(place, digest_size=8, key=key).hexdigest()
