"""Part of a capture as a capture of its own: chosen exchanges, composed anew as TCP conversations.

Composed and not copied, because packets do not end where messages do: so the streams are complete,
with handshakes and no holes, and secrets are hidden. Times of first and last bytes stay.
Connections without an exchange that show why there is none (refused, TLS, HTTP, ...) are included
with their first bytes, without contents.

Two steps, for endless inputs do not fit into memory: `Cutting.add` notes where the bytes of an
exchange are, `Cutting.write` reads them again in the order of time. `cut_rewrites` rewrites them,
`cut_packets` makes the packets. Sans-I/O, apart from the `Read` and `Sink` that it is given.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from typing import Final, NamedTuple

from kafkascope.analyzer.conversation.tampering import BETWEEN, comment_of
from kafkascope.analyzer.exchanges.columns import Frames, Kept, Overflow, Read, packed_frames
from kafkascope.analyzer.model import Exchange, Frame
from kafkascope.analyzer.transform.cut_packets import (
    ENDS,
    FRAMES,
    INDEX_BITS,
    OPENS,
    REPEATS,
    Packets,
)
from kafkascope.analyzer.transform.cut_rewrites import OPAQUE, TOKEN, Masked
from kafkascope.analyzer.transform.limits import LIMITS, TransformLimits
from kafkascope.analyzer.transform.other_traffic import (
    Head,
    OtherTraffic,
    Wanted,
    handshake_failed,
    is_closed,
)
from kafkascope.captures.build import MSS
from kafkascope.captures.formats.write import Sink
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.model import Closed, Connection, Resolved, StreamEvent
from kafkascope.captures.packets.tcp import ACK, FIN, RST, SYN
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT

HANDSHAKE: Final = BASE + CONNECT

# Frames whose order is made a list at a time.
MANY: Final = 10_000

NOTE: Final = struct.Struct("<qIBqIih")
"""Fields of a frame: time, index of the connection, side (these sort it, with the position in its
stream: requests of one packet have one time), offset, number of the exchange, API key, version."""


class _End(NamedTuple):
    direction: int | None
    how: str
    time_ns: int


class Cutting:
    """Chosen exchanges of a capture on their way to another one."""

    def __init__(
        self,
        plaintext: Callable[[], Kept] | None = None,
        *,
        decrypt: bool = False,
        limits: TransformLimits = LIMITS,
    ) -> None:
        """`plaintext` makes the store of bytes that came out of TLS; None for memory. `decrypt`:
        of TLS only that is written which was decrypted, and handshakes that failed."""
        self.limits = limits
        self._decrypt = decrypt
        self.frames = Frames(Overflow(), plaintext=plaintext)
        self.places = array("q")
        """Their addresses."""
        self.noted = bytearray()
        """What is known of them: a `NOTE` each."""
        self.connections: list[Connection] = []
        self.directions = array("B")
        """Direction of the requests, by connection."""
        self._index: dict[int, int] = {}
        self._ends: dict[int, tuple[_End, ...]] = {}
        """How connections ended, by their number."""
        self.last = array("q")
        """Time of the last byte, twice for each connection, for its sides: ends come after it."""
        self.short: dict[tuple[int, int], int] = {}
        """Bytes that its frames lack, likewise."""
        self.seen: Counter[int] = Counter()
        """Exchanges by number of the connection, chosen or not."""
        self.added = array("I")
        """Chosen ones by index of the connection."""
        self.frame_counts = array("I")
        """Their frames, likewise."""
        self.beyond = 0
        """Exchanges that were left out because their connections are too many."""
        self.heads: dict[int, list[Head]] = {}
        """First bytes in other protocols, by index of the connection."""
        self.others = OtherTraffic(limits)
        self.clients: set[str] = set()
        """Addresses of the clients of what was chosen."""
        self._greetings: dict[int, Exchange] = {}
        """Handshakes with ZooKeeper that were not chosen, by number of the connection."""
        self._greeted = -1
        """The last connection of which one was forgotten."""
        self.without_greeting = 0
        """Connections to ZooKeeper of which it was needed."""
        self._deeds: dict[int, str] = {}
        """Effects of rules of our proxy, by exchange."""
        self._names: dict[str, set[str]] = {}
        """Host names, and the addresses that they stand for."""
        self.ports: set[int] = set()
        """Those of brokers."""
        self.unread = 0
        """Connections that were left out because their TLS cannot be read."""
        self.exchanges = 0
        self.left_out = 0
        """Exchanges of which a frame could not be written (see `Masked.frame`)."""
        self.resent = 0
        """Segments that came again on connections of which only a part was chosen."""

    def event(self, event: StreamEvent) -> None:
        """Take note of how connections begin and end; for `OpenInput.listener`."""
        # Of connections that are never written, a scan has millions.
        if isinstance(event, Closed) and (
            event.connection.used or self.others.knows(event.connection)
        ):
            self.ended(event.connection.number, event.direction, event.how, event.time_ns)
        self.others.event(event)

    def named(self, event: Resolved) -> None:
        """Note the addresses of a host name; for `OpenInput.named`."""
        if event.name in self._names or len(self._names) < CAPTURE_LIMITS.resolved_names:
            known = self._names.setdefault(event.name, set())
            known.update(event.hosts[: max(0, self.limits.host_addresses - len(known))])

    def names(self) -> Iterator[Resolved]:
        """Yield the names of hosts whose connections are written; names of others would leak what
        is left out."""
        places = {end.host for each in self.connections for end in each.ends()}
        for name, hosts in self._names.items():
            if here := tuple(sorted(hosts & places)):
                yield Resolved(name, here, "block")

    def exchange(self, exchange: Exchange) -> None:
        """Take note that a connection is Kafka's; for `OpenInput.listener`."""
        self.seen[exchange.connection.number] += 1
        if exchange.api_key == HANDSHAKE:
            self._greetings[exchange.connection.number] = exchange
            if len(self._greetings) > self.limits.handshakes:
                forgotten = next(iter(self._greetings))
                self._greeted = max(self._greeted, forgotten)
                del self._greetings[forgotten]
        self.others.exchange(exchange)

    def ended(self, number: int, direction: int | None, how: str, time_ns: int) -> None:
        """The same of one that is known by its number."""
        if how in ("fin", "rst"):
            self._ends[number] = (*self.ends(number), _End(direction, how, time_ns))

    def ends(self, number: int) -> tuple[_End, ...]:
        """Return how a connection ended, by its number."""
        return self._ends.get(number, ())

    def add(self, exchange: Exchange) -> None:
        """Choose an exchange."""
        self.clients.add(exchange.client.host)
        if self.others.choose(exchange):
            return
        number = exchange.connection.number
        if len(self.connections) >= self.limits.connections and number not in self._index:
            self.beyond += 1
            return
        self.exchanges += 1
        if exchange.zookeeper is None:
            self.ports.add(exchange.broker.port)
        greeting = self._greetings.pop(number, None)
        if greeting is not None and greeting.number != exchange.number:
            # Nothing else shows the protocol of the connection, or its session.
            self._take(greeting)
        elif exchange.zookeeper is not None and number <= self._greeted:
            known = number in self._index or exchange.api_key == HANDSHAKE
            self.without_greeting += not known
        self._take(exchange)

    def _take(self, exchange: Exchange) -> None:
        if exchange.notes and (deeds := comment_of(exchange.notes)):
            self._deeds[exchange.number] = deeds
        key = exchange.api_key
        if key is None:
            key = TOKEN if exchange.api else OPAQUE
        version = exchange.api_version or 0
        client = exchange.client_end
        connection = self._connection(exchange.connection, client)
        self.added[connection] += 1
        for side, message in enumerate((exchange.request, exchange.response)):
            if message is not None:
                frame = message.frame
                if exchange.connection.decrypted:
                    frame = self.frames.decrypted(frame)
                self._note(frame, side, key, version, exchange.number, connection)

    def _note(
        self, frame: Frame, side: int, key: int, version: int, number: int, connection: int
    ) -> None:
        self.places.extend(self.frames.extend([packed_frames([frame])]))
        at = 2 * connection + side
        self.last[at] = max(frame.last_ns, self.last[at])
        self.frame_counts[connection] += 1
        if frame.cut and frame.cut != "end":
            place = (connection, side)
            short = frame.size - len(frame.payload)
            self.short[place] = self.short.get(place, 0) + short
        order = (frame.first_ns, connection, side, frame.offset)
        self.noted += NOTE.pack(*order, number, key, version)

    def _connection(self, connection: Connection, client: int) -> int:
        found = self._index.get(connection.number)
        if found is None:
            found = self._index[connection.number] = len(self.connections)
            self.connections.append(connection)
            self.directions.append(client)
            self.last.extend((0, 0))
            self.added.append(0)
            self.frame_counts.append(0)
        return found

    def add_others(
        self,
        expected: Callable[[Connection], bool] = lambda _: False,
        wanted: Wanted = lambda *_: False,
    ) -> int:
        """Choose connections without an exchange, when all exchanges are chosen: those whose rows
        were, and `wanted` ones where Kafka is `expected`. How many they are."""
        count = 0
        for beginning in self.others.kept(expected, wanted):
            kafka = beginning.client is not None
            if kafka and beginning.connection.number not in self._index:
                continue
            heads, connection = beginning.heads, beginning.connection
            if self._decrypt and connection.tls is not None and not handshake_failed(connection):
                if is_closed(connection):
                    self.unread += 1
                    continue
                heads = []
            if (
                len(self.connections) >= self.limits.connections
                and connection.number not in self._index
            ):
                self.others.beyond += 1
                continue
            index = self._connection(connection, beginning.client or 0)
            self.heads[index] = heads
            count += not kafka
        return count

    def write(
        self,
        sink: Sink,
        read: Read,
        *,
        rewrite: Masked | None = None,
        comments: Mapping[int, str] | None = None,
        mss: int = MSS,
    ) -> None:
        """Write a pcapng. `comments`, by exchange number, stand at the first packet of a request
        (of a response without one). `NotKept` when bytes cannot be read again."""
        rewrite = rewrite or Masked()
        found = dict(comments or {})
        for number, own in self._deeds.items():
            deeds = rewrite.deeds(own)
            # In front: readers keep the first words of a comment.
            found[number] = f"{deeds}{BETWEEN}{found[number]}" if number in found else deeds
        _Writing(self, sink, read, rewrite, found, mss).run()


class _Writing:
    def __init__(
        self,
        cutting: Cutting,
        sink: Sink,
        read: Read,
        rewrite: Masked,
        comments: dict[int, str],
        mss: int,
    ) -> None:
        self._cut = cutting
        endpoint, comment = rewrite.endpoint, rewrite.comment
        self._left = array("I", cutting.frame_counts)
        """Frames that are still to come, by connection."""
        self._resent = 0
        self._packets = Packets(
            sink, cutting.connections, mss, endpoint, comment, lambda index: self._left[index] > 0
        )
        self._read = read
        self._rewrite = rewrite
        self._comments = comments
        self._last = array("q", bytes(8 * len(cutting.last)))
        """Time of the last byte, twice for each connection, for its directions: streams do not go
        back."""
        self._dropped: set[int] = set()
        """Exchanges whose request was left out."""

    def run(self) -> None:
        cut, packets = self._cut, self._packets
        packets.order(FRAMES)
        begins = ((time_ns, 0, index) for time_ns, index in self._begins())
        frames = ((self._note_of(number)[0], 1, number) for number in self._in_order())
        for time_ns, is_frame, number in merge(begins, frames):
            if is_frame:
                packets.flush(time_ns)
                self._put(number)
            else:
                self._begin(time_ns, number)
        packets.flush()
        packets.names(self._rewrite.names(cut.names()))
        cut.left_out = len(self._dropped)

    def _begins(self) -> Iterator[tuple[int, int]]:
        cut = self._cut
        times = array("q")
        for index, connection in enumerate(cut.connections):
            heads = [head.time_ns for head in cut.heads.get(index, ())]
            ends = [end.time_ns for end in cut.ends(connection.number)]
            times.append(min([connection.first_ns, *heads, *ends]))
        for index in sorted(range(len(times)), key=times.__getitem__):
            yield times[index], index

    def _begin(self, time_ns: int, index: int) -> None:
        packets = self._packets
        packets.flush(time_ns)
        frames = packets.order(index << INDEX_BITS)
        self._open(index)
        self._close(index)
        self._put_heads(index)
        packets.order(frames)

    def _note_of(self, number: int) -> tuple[int, ...]:
        return NOTE.unpack_from(self._cut.noted, number * NOTE.size)

    def _in_order(self) -> Iterator[int]:
        import numpy as np

        names = ("time", "owner", "side", "offset", "number", "key", "version")
        forms = ("<i8", "<u4", "u1", "<i8", "<u4", "<i4", "<i2")
        noted = np.frombuffer(self._cut.noted, list(zip(names, forms, strict=True)))
        found = np.lexsort([noted[name] for name in reversed(names[:4])])
        for at in range(0, len(found), MANY):
            yield from found[at : at + MANY].tolist()

    def _open(self, index: int) -> None:
        connection = self._cut.connections[index]
        if not connection.handshake:
            return
        start, rtt = connection.first_ns, connection.handshake_ns or 0
        ends = self._cut.ends(connection.number)
        back = connection.packets[1] - connection.duplicates[1]
        refused = any(end.direction == 1 and end.how == "rst" for end in ends)
        answered = connection.used or (back > 0 and not refused)
        push = self._packets.push
        if connection.packets[0]:
            push(start, index, 0, SYN, rank=OPENS)
        if answered:
            path = connection.path
            # Where packets were captured stays, so that all stages do.
            answer_ns = start + (rtt // 2 if path.trip1 < 0 else max(0, rtt - path.trip1))
            if 0 <= path.trip0 < answer_ns - start:
                push(answer_ns - path.trip0, index, 0, SYN, rank=OPENS, again=True)
            push(answer_ns, index, 1, SYN | ACK, rank=OPENS)
        if connection.used:
            push(start + rtt, index, 0, rank=OPENS)
        elif not answered and not ends and connection.last_ns > start:
            # Of SYNs that nobody answered the first and the last have a time.
            push(connection.last_ns, index, 0, SYN, rank=OPENS, again=True)

    def _close(self, index: int) -> None:
        cut, push = self._cut, self._packets.push
        connection, client = cut.connections[index], cut.directions[index]
        ends = [each for each in cut.ends(connection.number) if each.direction is not None]
        last = [cut.last[2 * index + (way ^ client)] for way in (0, 1)]
        over = min((each.time_ns for each in ends), default=connection.last_ns)
        for way in (0, 1):
            missing = connection.gap_bytes[way] - cut.short.get((index, way ^ client), 0)
            if missing > 0 and last[way]:
                push(max(over, last[way]), index, way, missing=missing, rank=REPEATS)
            again = connection.retransmissions[way]
            is_whole = cut.seen[connection.number] == cut.added[index]
            if again and not (last[way] and is_whole):
                cut.resent += again
                continue
            written = min(again, cut.limits.retransmitted_segments - self._resent)
            self._resent += written
            cut.resent += again - written
            again = written
            # When they came nobody kept: on a connection that went dead requests until its end, all
            # others at once, or they would delay an exchange.
            until = over if way == client and last[way] > last[1 - way] else last[way]
            for number in range(1, again + 1):
                time_ns = last[way] + max(0, until - last[way]) * number // again
                push(time_ns, index, way, again=True, rank=REPEATS)
        if connection.used and not ends and connection.last_ns > max(last):
            push(connection.last_ns, index, client, rank=REPEATS)
        for end in ends:
            assert end.direction is not None
            flags = (FIN if end.how == "fin" else RST) | ACK
            time_ns = max(end.time_ns, last[end.direction])
            push(time_ns, index, end.direction, flags, rank=ENDS)

    def _put_heads(self, index: int) -> None:
        """First bytes in another protocol, in the packets they came in."""
        heads, mss = self._cut.heads.get(index, []), self._packets.mss
        for way in (0, 1):
            mine = [head for head in heads if head.direction == way]
            data = self._rewrite.other(b"".join(head.data for head in mine))
            at = 0
            for head in mine:
                for start in range(at, at + len(head.data), mss):
                    part = data[start : min(start + mss, at + len(head.data))]
                    self._packets.push(head.time_ns, index, way, payload=part)
                at += len(head.data)

    def _put(self, number: int) -> None:
        """Cut a frame into segments: the first at its first time, the others at its last."""
        cut = self._cut
        _, index, side, _, exchange, key, version = self._note_of(number)
        self._left[index] -= 1
        if exchange in self._dropped:
            self._packets.forget(index)
            return
        (frame,) = cut.frames.get(cut.places, number, 1, self._read)
        payload = self._rewrite.frame(frame.payload, side, key, version)
        if payload is None:
            self._dropped.add(exchange)
            self._packets.forget(index)
            return
        # What the sender never sent before its connection ended is missing in no capture.
        lost = frame.size - len(frame.payload)
        data = (len(payload) + lost).to_bytes(4, "big") + payload
        direction = cut.directions[index] ^ side
        place = 2 * index + direction
        first = max(frame.first_ns, self._last[place])
        last = max(frame.last_ns, first)
        self._last[place] = last
        comment = self._comments.pop(exchange, "")
        at = 0
        while at < len(data):
            size = self._packets.mss
            if not at and last > first and frame.parts:
                # Two times take two packets.
                size = min(size, frame.parts[0].size, len(data) - 1)
            part = data[at : at + max(size, 1)]
            self._packets.push(
                last if at else first,
                index,
                direction,
                payload=part,
                short=lost if at + len(part) == len(data) and frame.cut != "end" else 0,
                comment="" if at else comment,
            )
            at += len(part)
