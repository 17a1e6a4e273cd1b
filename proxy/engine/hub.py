"""What all connections of a proxy share: policies, counters, and the interfaces to recording, rules
and memory.

A connection asks its hub and nothing else. No I/O here; the server fills the interfaces in.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kafkascope.analyzer.text import safe
from kafkascope.analyzer.topics import TopicNames
from kafkascope.proxy.engine.metrics import Metrics

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.captures.model import Endpoint
    from kafkascope.proxy.engine.arena import Arena
    from kafkascope.proxy.engine.held import HeldFrames
    from kafkascope.proxy.engine.memory import Memory
    from kafkascope.proxy.relay.endpoints import Endpoints
    from kafkascope.proxy.relay.versions import Versions
    from kafkascope.proxy.rules.decoded import DecodedRecords
    from kafkascope.proxy.rules.rules import Chain

_log = logging.getLogger("kafkascope.proxy")

MAX_NOTICES: Final = 10_000
"""That are not said again; the oldest ones may be."""
KEPT_NOTICES: Final = 100
LONGEST_NOTICE: Final = 2_000
"""Letters; names that peers say may be of any length."""


class Tap(Protocol):
    """Records the bytes of a connection. Whoever keeps the data must copy it."""

    def client(self, side: int, data: bytes | memoryview, now_ns: int, comment: str = "") -> None:
        """Record bytes of the client's leg, from that side."""

    def broker(self, side: int, data: bytes, now_ns: int, comment: str = "") -> None:
        """Record a frame of the broker's leg, from that side, where it differs from the
        client's."""

    def end(self, side: int | None, how: str, now_ns: int) -> None:
        """Record that a side of the client's leg ended; None: the connection is over."""


class Recording(Protocol):
    """Makes taps."""

    def tap(self, number: int, client: Endpoint, broker: Endpoint, now_ns: int) -> Tap | None:
        """The tap of a new connection."""


class Hub:
    """Shared by all connections."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.names = TopicNames()
        self.chain: Chain | None = None
        self.endpoints: Endpoints | None = None
        """None where clients come to us whatever address they know (transparent, SOCKS)."""
        self.versions: Versions | None = None
        """None where versions pass as brokers offer them."""
        self.recording: Recording | None = None
        self.arena: Arena | None = None
        """The memory that sockets are read into."""
        self.held: HeldFrames | None = None
        self.memory: Memory | None = None
        self.records: DecodedRecords | None = None
        """What decodes keys and values for rules."""
        self.payloads: Callable[[], Payloads | None] = lambda: None
        """Returns what decodes and encodes keys and values in the event loop; None while no schema
        is known."""
        self.with_secrets = False
        """Recordings keep secrets."""
        self.numbers = itertools.count(1)
        self.notices: deque[tuple[int, str]] = deque(maxlen=KEPT_NOTICES)
        """What was said last, with times."""
        self.said = 0
        """How many notices there were."""
        self.watchers: set[Callable[[], None]] = set()
        """Called when rules, held frames or notices change."""
        self._said: dict[str, None] = {}

    def changed(self) -> None:
        """Call the watchers."""
        for watcher in self.watchers:
            watcher()

    def once(self, key: str, sentence: str) -> None:
        """Log a sentence the first time that it is true."""
        key = key[:LONGEST_NOTICE]
        if key not in self._said:
            if len(self._said) >= MAX_NOTICES:
                self._said.pop(next(iter(self._said)))
            self._said[key] = None
            self.say(sentence)

    def say(self, sentence: str) -> None:
        """Log a sentence, and show it in the UI."""
        if len(sentence) > LONGEST_NOTICE:
            sentence = f"{sentence[:LONGEST_NOTICE]}..."
        sentence = safe(sentence)  # names that brokers and clients say
        self.notices.append((time.time_ns(), sentence))
        self.said += 1
        _log.warning("%s", sentence)
        self.changed()
