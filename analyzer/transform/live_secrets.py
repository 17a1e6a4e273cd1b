"""Packets of a live capture, after the secrets that open their TLS.

A reader such as Wireshark looks for the secrets of a connection when it sees the handshake, and
does not come back. Programs write them a moment after the packets went over the wire, and the key
log is looked at now and then: so packets are held for a while before they are written. Time is
given; no I/O but that of the sink.
"""

from __future__ import annotations

from collections import deque
from io import BytesIO
from itertools import takewhile
from typing import Final

from kafkascope.analyzer.transform.limits import LIMITS
from kafkascope.captures.formats.records import Block
from kafkascope.captures.formats.write import PcapngWriter, Sink, secrets_block
from kafkascope.captures.model import Connection
from kafkascope.captures.tls.keys.epoch import Epoch, key_log_lines
from kafkascope.captures.tls.keys.keylog import KeyLog

# Seconds for which packets are held: several looks at the key log.
HELD: Final = 1.0


class SecretsRecording:
    """Writes a pcapng while packets come. Before the packets of a connection stand its secrets, and
    those of no other."""

    def __init__(self, sink: Sink, log: KeyLog) -> None:
        """`log` may grow; `sink` gets whole blocks."""
        self._sink = sink
        self._log = log
        self._blocks = BytesIO()
        """Made of the packets that came last."""
        self._writer = PcapngWriter(self._blocks)
        self._interfaces = 0
        self._held: deque[tuple[float, bytes]] = deque()
        """With the time when they came, oldest first."""
        self._size = 0
        self._recent: dict[bytes, tuple[float, Epoch, set[bytes]]] = {}
        """Handshakes that may get more secrets while their packets are held, by client random: when
        they were opened, the oldest first, and the lines that were written."""
        self._now = 0.0

    def opened(self, connection: Connection, epoch: Epoch) -> None:
        """Take note of a handshake whose secrets are known; for `KeySources.opened`."""
        before = self._recent.pop(epoch.client_random, None)
        self._recent[epoch.client_random] = self._now, epoch, before[2] if before else set()

    def block(self, block: Block, now: float) -> None:
        """Take packets that came `now`, in seconds, and write those that were held long enough."""
        self._now = now
        for known in block.format.interfaces[self._interfaces :]:
            self._writer.interface(known.name, link_type=known.link_type, comment=known.comment)
            self._interfaces += 1
        if not self._size:
            # The head of the file waits for nothing: readers want to see it.
            self._take(self._blocks_so_far())
        for packet in block.packets():
            self._writer.packet(
                packet.data, packet.time_ns, interface=packet.interface, length=packet.length
            )
        if data := self._blocks_so_far():
            self._held.append((now, data))
            self._size += len(data)
        self._release(now)

    def finish(self) -> None:
        """Write all that is held."""
        self._release(None)

    def _blocks_so_far(self) -> bytes:
        data = self._blocks.getvalue()
        self._blocks.seek(0)
        self._blocks.truncate()
        return data

    def _release(self, now: float | None) -> None:
        """Write what was held long enough; all of it without a time."""
        secrets = False
        while self._held and (
            now is None or self._held[0][0] + HELD <= now or self._size > LIMITS.held_bytes
        ):
            if not secrets:
                secrets = True
                self._secrets()
            _, data = self._held.popleft()
            self._size -= len(data)
            self._take(data)
        if secrets and now is not None:
            old = takewhile(lambda each: each[1][0] <= now - 2 * HELD, self._recent.items())
            for random in [random for random, _ in old]:
                del self._recent[random]

    def _secrets(self) -> None:
        found = []
        for _, epoch, written in self._recent.values():
            lines = key_log_lines(epoch, self._log).splitlines(keepends=True)
            found += [line for line in lines if line not in written]
            written.update(lines)
        if found:
            self._take(secrets_block(b"".join(found)))

    def _take(self, data: bytes) -> None:
        if data:
            self._sink.write(data)
