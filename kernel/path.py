"""What the packets of one connection tell of the path between its ends, at the capture point: round
trips, and events that delay bytes.

Most connections have no event at all, so each packet costs a few comparisons of numbers. Whoever
asks where the time of an exchange went (`analyzer/exchanges/stages.py`) looks at the events of that
time. Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

MASK: Final[i64] = 0xFFFFFFFF
HALF: Final[i64] = 1 << 31
UNKNOWN: Final[i64] = -1

# Silence inside a burst of one side that is worth an event. Schedulers and interrupt moderation
# take a few milliseconds; a delayed acknowledgement takes 40.
PAUSE: Final[i64] = 10_000_000
# A sender that waited for an acknowledgement goes on this soon after it, and the way to it.
NEAR: Final[i64] = 2_000_000
# Payload of the smallest segment that TCP fills (RFC 9293, 3.7.1).
LEAST_SEGMENT: Final[i64] = 536
# What TCP takes for a timeout while it has not measured a round trip (RFC 6298, 2.1).
UNMEASURED: Final[i64] = 1_000_000_000
# A SYN is sent again after a second at the earliest (RFC 6298, 2.1).
SYN_TIMEOUT: Final[i64] = 1_000_000_000
# A response that is not acknowledged may be sent again for so long: TCP does after 0.2, 0.6, 1.4
# and 3 s (Linux). A capture without acknowledgements must not delay what is in it for longer.
SENT_AGAIN_NS: Final = 3_000_000_000
# Events that a connection keeps, the newest: a block of a capture (1 MiB, a few thousand packets)
# has passed before its exchanges are described. 256 were too few for brokers that replicate on a
# busy machine: rows lost retransmissions that Spark, which describes them at once, kept.
MOST_EVENTS: Final[i64] = 1024
# Segments without an acknowledgement that are remembered, for round trips: 64 KB windows have 45;
# of larger ones the oldest half is forgotten.
MOST_SENT: Final[i64] = 512
# Round trips of bursts of which the shortest is believed where there is no handshake.
SAMPLES: Final[i64] = 4

# Kinds of events. Each is (kind, direction, begin, end, first and last stream offset).

# Bytes that had been seen before; `begin` is when the direction had sent last, or a round trip
# before `end` where acknowledgements of later bytes told that they were missing.
AGAIN: Final[i64] = 0
# Bytes that were missing; `begin` is when those after them came.
FILLED: Final[i64] = 1
# The side that sends in this direction announced a receive window of 0.
CLOSED: Final[i64] = 2
# The window of the other side had no room for the next segment: for longer than two round trips, or
# its acknowledgement came late. `begin` is when it would have come from a reader.
FULL: Final[i64] = 3
# A segment came when a small one before it was acknowledged.
NAGLE: Final[i64] = 4
# Nothing came after a segment that was not full.
PAUSED: Final[i64] = 5
# Nothing came after a full segment.
HELD: Final[i64] = 6
# A burst in direction 0 had another round trip than those before: `end` less `begin`.
TRIP: Final[i64] = 7

FIELDS: Final = (
    *("off", "over", "trip0", "trip1", "known_ns", "syn_ns", "syns", "answered_ns", "scale0"),
    *("scale1", "events", "latest_ns", "closed0", "closed1", "ack0", "ack1", "edge0", "edge1"),
    *("end0", "end1", "settled0", "settled1", "data0", "data1", "burst", "last", "largest0"),
    *("largest1", "room", "acked_ns", "sent", "trip_seen", "samples"),
)
"""What another process has to know of a path."""


class Path:
    """The packets of a connection, in the order of capture. Directions are those of `Connection`:
    0 from the side that connected. Times are nanoseconds, 0 where there is none."""

    def __init__(self) -> None:
        self.off: bool = False
        """Its packets were not on a wire: our proxy writes them when it reads and sends."""
        self.over: bool = False
        """Both sides ended it, there was an RST, or its packets are followed no more."""
        self.trip0: i64 = UNKNOWN
        """Nanoseconds from the capture point to the side that was connected to, and back."""
        self.trip1: i64 = UNKNOWN
        """The same to the side that connected."""
        self.known_ns: i64 = 0
        """Since when `trip0` is known, where the first answer of a handshake does not tell it."""
        self.syn_ns: i64 = 0
        self.syns: i64 = 0
        """SYNs without an answer so far: more than one where one was lost."""
        self.answered_ns: i64 = 0
        """Time of the last SYN-ACK."""
        self.scale0: i64 = UNKNOWN
        self.scale1: i64 = UNKNOWN
        """Shift of the windows that a side announces (RFC 7323)."""
        self.events: list[Any] = []
        self.latest_ns: i64 = 0
        """End of the last event; a window that is still closed has none."""
        self.closed0: i64 = 0
        self.closed1: i64 = 0
        """Since when the window of a side is 0."""
        self.ack0: i64 = UNKNOWN
        self.ack1: i64 = UNKNOWN
        """Last acknowledgement that a side sent."""
        self.edge0: i64 = UNKNOWN
        self.edge1: i64 = UNKNOWN
        """Sequence number up to which a side lets the other one send, and perhaps further where the
        shift of its windows is not known."""
        self.end0: i64 = UNKNOWN
        self.end1: i64 = UNKNOWN
        """Sequence number after the last new byte of a direction."""
        self.settled0: i64 = 0
        self.settled1: i64 = 0
        """When all bytes of a direction were acknowledged last."""
        self.data0: i64 = 0
        self.data1: i64 = 0
        """Time of the last segment with bytes in a direction."""
        self.burst: i64 = UNKNOWN
        """The direction that sent bytes last."""
        self.last: i64 = 0
        """Payload of its last segment."""
        self.largest0: i64 = 0
        self.largest1: i64 = 0
        """Largest payload in a direction."""
        self.room: i64 = UNKNOWN
        """Bytes that the burst could have gone on with."""
        self.acked_ns: i64 = 0
        """When bytes of the burst were acknowledged last."""
        self.sent: list[int] = []
        """(sequence number after it, time) of each segment of a burst in direction 0 that is not
        acknowledged. None once bytes are sent again: what their acknowledgement covers says nothing
        of the round trip (RFC 6298, 3: Karn's algorithm)."""
        self.trip_seen: i64 = UNKNOWN
        """The round trip that the last event of kind `TRIP` told."""
        self.samples: i64 = 0
        """Round trips of bursts in direction 0 that were measured without a handshake."""

    def dump(self) -> list[Any]:
        return [getattr(self, name) for name in FIELDS]

    def load(self, state: list[Any]) -> Path:
        for name, value in zip(FIELDS, state, strict=True):
            setattr(self, name, value)
        return self

    # The handshake

    def syn(self, time_ns: i64, scale: i64) -> None:
        if self.answered_ns == 0:
            self.syn_ns = time_ns
            self.syns += 1
            self.scale0 = scale

    def syn_ack(self, time_ns: i64, scale: i64) -> None:
        if self.answered_ns == 0:
            if self.ack0 >= 0:
                return  # The side that connected had another one, which was not captured.
            # Without options from both sides windows are not scaled.
            if self.syns == 0:
                self.scale0 = UNKNOWN
            elif scale < 0 or self.scale0 < 0:
                self.scale0 = scale = 0
            self.scale1 = scale
            if self.syns > 0:
                self.trip0 = time_ns - self.syn_ns
        elif self.syns > 1 and time_ns - self.syn_ns < SYN_TIMEOUT:
            # The first one answered the SYN before, whose answer was lost: its server had a timer.
            self.trip0, self.known_ns = time_ns - self.syn_ns, time_ns
        self.answered_ns = time_ns

    def established(self, time_ns: i64) -> None:
        """Take the first packet of the side that connected after the SYN-ACK."""
        if self.answered_ns > 0 and self.trip1 < 0:
            self.trip1 = time_ns - self.answered_ns

    # Packets

    def packet(
        self, direction: i64, time_ns: i64, seq: i64, length: i64, ack: i64, window: i64
    ) -> None:
        """Take a packet with ACK that brings the next bytes of its direction, or none. `window` as
        in its header; `UNKNOWN` where that was cut off."""
        before: i64 = self.ack0 if direction == 0 else self.ack1
        if before >= 0 and (ack - before) & MASK >= HALF:
            # A copy of an older packet, or one that was overtaken: newer ones said more.
            if length != 0:
                self.bytes(direction, time_ns, (seq + length) & MASK, length)
            return
        if direction == 0:
            self.established(time_ns)
            if window == 0 or self.closed0 != 0:
                self.closed0 = self.windowed(0, self.closed0, time_ns, window)
            if ack != self.ack0 and self.burst == 1:
                self.acknowledged(time_ns, ack, length)
            self.ack0 = ack
            if ack == self.end1:
                self.settled1 = time_ns
            if window > 0 and self.scale0 > 0:
                window = window << self.scale0
            if window >= 0:
                self.edge0 = (ack + window) & MASK
        else:
            if window == 0 or self.closed1 != 0:
                self.closed1 = self.windowed(1, self.closed1, time_ns, window)
            if ack != self.ack1 and self.burst == 0:
                self.acknowledged(time_ns, ack, length)
            self.ack1 = ack
            if ack == self.end0:
                self.settled0 = time_ns
            if window > 0 and self.scale1 > 0:
                window = window << self.scale1
            if window >= 0:
                self.edge1 = (ack + window) & MASK
        if length != 0:
            self.bytes(direction, time_ns, (seq + length) & MASK, length)

    def bytes(self, direction: i64, time_ns: i64, end: i64, length: i64) -> None:
        edge: i64
        if direction == 0:
            if self.burst == 0:
                self.follows(0, self.end0, self.data0, self.largest0, time_ns, end, length)
            else:
                self.burst = 0
            if length > self.largest0:
                self.largest0 = length
            self.end0 = end
            self.data0 = time_ns
            edge = self.edge1
        else:
            if self.burst == 1:
                self.follows(1, self.end1, self.data1, self.largest1, time_ns, end, length)
            else:
                self.burst = 1
                if len(self.sent) > 0:
                    self.sent = []
            if length > self.largest1:
                self.largest1 = length
            self.end1 = end
            self.data1 = time_ns
            edge = self.edge0
        self.last = length
        if edge < 0:
            self.room = UNKNOWN
        else:
            ahead: i64 = (edge - end) & MASK
            self.room = 0 if ahead >= HALF else ahead

    def follows(
        self,
        direction: i64,
        before: i64,
        data_ns: i64,
        largest: i64,
        time_ns: i64,
        end: i64,
        length: i64,
    ) -> None:
        """Take a segment after another one of its direction, without bytes of the other side
        between them."""
        if time_ns - data_ns >= PAUSE:
            self.paused(direction, data_ns, time_ns, largest, length)
        if direction != 0:
            return
        if len(self.sent) == 0:
            self.sent.append(before)
            self.sent.append(data_ns)
        self.sent.append(end)
        self.sent.append(time_ns)
        if len(self.sent) > MOST_SENT:
            del self.sent[: MOST_SENT // 2]

    def paused(self, direction: i64, begin: i64, time_ns: i64, largest: i64, length: i64) -> None:
        """Tell why a burst stood still: no room in the window, an acknowledgement that was to come,
        or nothing that could be seen: then its sender did not send."""
        at: i64 = len(self.events) - 1
        while at >= 0 and i64(self.events[at][3]) > begin:
            if i64(self.events[at][0]) == CLOSED and i64(self.events[at][1]) != direction:
                return  # The other side let it wait.
            at -= 1
        full = self.last >= LEAST_SEGMENT and self.last >= largest
        kind = HELD if full else PAUSED
        if self.room >= 0 and self.room < length:
            if self.trip0 < 0 or self.trip1 < 0:
                return
            both: i64 = self.trip0 + self.trip1
            # A receiver that reads acknowledges what fills its window as soon as it is there.
            late: i64 = self.acked_ns - begin - (self.trip0 if direction == 0 else self.trip1)
            if time_ns - begin > 2 * both + PAUSE:
                late = time_ns - begin - both
            elif late <= PAUSE:
                return
            kind, begin = FULL, time_ns - late
        elif self.acked_ns > begin:
            way: i64 = self.trip1 if direction == 0 else self.trip0
            if way < 0:
                way = UNMEASURED if full else NEAR
            if time_ns - self.acked_ns <= way + way // 4 + NEAR:
                if full:
                    return  # The congestion window let it wait, as in slow start.
                kind = NAGLE
        self.add(kind, direction, begin, time_ns, 0, 0)

    def acknowledged(self, time_ns: i64, ack: i64, length: i64) -> None:
        """Take an acknowledgement of bytes of the burst."""
        self.acked_ns = time_ns
        sent = self.sent
        if length != 0 or len(sent) == 0:
            return
        count: i64 = 0
        last: i64 = 0
        behind: i64 = 0
        while count < len(sent) and (ack - i64(sent[count])) & MASK < HALF:
            last = sent[count + 1]
            behind = (i64(sent[count]) - i64(sent[0])) & MASK
            count += 2
        if count > 0:
            del sent[:count]
        if behind >= LEAST_SEGMENT:
            # A receiver does not delay the acknowledgement of two full segments (RFC 9293,
            # 3.8.6.3); that of small ones it does.
            self.measured(time_ns, time_ns - last)

    def measured(self, time_ns: i64, trip: i64) -> None:
        """Take the round trip of a burst in direction 0."""
        usual = self.trip0
        if self.answered_ns == 0 and self.samples < SAMPLES:
            self.samples += 1
            if self.trip_seen < 0 or trip < self.trip_seen:
                self.trip_seen = trip
            if self.samples == SAMPLES:
                self.trip0, self.known_ns = self.trip_seen, time_ns
            return
        if usual < 0:
            return
        seen: i64 = usual if self.trip_seen < 0 else self.trip_seen
        less: i64 = seen if seen < trip else trip
        more: i64 = trip if seen < trip else seen
        if more - less > NEAR // 2 and more - less > less // 10:
            self.trip_seen = trip
            self.add(TRIP, 0, time_ns - trip, time_ns, 0, 0)

    def windowed(self, direction: i64, since: i64, time_ns: i64, window: i64) -> i64:
        """Take a window that is 0, or comes after such; return since when it is."""
        if window == 0:
            return since if since != 0 else time_ns
        if window > 0 and since != 0:
            self.add(CLOSED, direction, since, time_ns, 0, 0)
            return 0
        return since

    # Segments that are not the next ones

    def again(self, direction: i64, time_ns: i64, end: i64, first: i64, last: i64) -> None:
        """Take bytes that were seen before, by the sequence number after them and their stream
        offsets. Where they are acknowledged, they were sent for nothing (Wireshark: "spurious")."""
        if self.covers(direction, end):
            return
        begin: i64 = self.data0 if direction == 0 else self.data1
        top: i64 = self.end0 if direction == 0 else self.end1
        trip: i64 = self.trip0 if direction == 0 else self.trip1
        if end != top and trip >= 0 and time_ns - begin <= 2 * trip + PAUSE:
            # Later bytes came to the other side, whose acknowledgements told so: a round trip.
            # After a longer silence it was a timer.
            begin = time_ns - trip
        if direction == 0:
            self.data0 = time_ns
            self.sent = []
        else:
            self.data1 = time_ns
        self.add(AGAIN, direction, time_ns if begin == 0 else begin, time_ns, first, last)

    def filled(self, direction: i64, since_ns: i64, time_ns: i64, first: i64, last: i64) -> None:
        """Take bytes that were missing since a time."""
        if direction == 0:
            self.data0 = time_ns
            self.sent = []
        else:
            self.data1 = time_ns
        self.add(FILLED, direction, since_ns, time_ns, first, last)

    def add(self, kind: i64, direction: i64, begin: i64, end: i64, first: i64, last: i64) -> None:
        if self.off:
            return
        events = self.events
        if len(events) >= MOST_EVENTS:
            # Half of them: to drop one each time would move all others.
            del events[: MOST_EVENTS // 2]
        events.append((kind, direction, begin, end, first, last))
        if end > self.latest_ns:
            self.latest_ns = end

    # Questions

    def trip(self, direction: i64, time_ns: i64) -> i64:
        """Return the round trip from the capture point to where a direction goes, as it was known
        at a time; negative where it was not."""
        if self.known_ns > time_ns:
            return UNKNOWN
        return self.trip0 if direction == 0 else self.trip1

    def quiet(self, since_ns: i64) -> bool:
        """Return whether nothing happened since a time, so that trips are those of today."""
        return (
            self.latest_ns < since_ns
            and self.closed0 == 0
            and self.closed1 == 0
            and self.known_ns <= since_ns
        )

    def unacknowledged(self, direction: i64) -> i64:
        """Return the sequence number after the last byte of a direction, if that may be sent
        again; `UNKNOWN` if it is acknowledged, or the other side never acknowledged any."""
        ack: i64 = self.ack1 if direction == 0 else self.ack0
        end: i64 = self.end0 if direction == 0 else self.end1
        if self.off or self.over or ack < 0 or end < 0 or (ack - end) & MASK < HALF:
            return UNKNOWN
        return end

    def covers(self, direction: i64, end: i64) -> bool:
        """Return whether the bytes of a direction before a sequence number are acknowledged, or
        will not be."""
        ack: i64 = self.ack1 if direction == 0 else self.ack0
        return self.over or (ack >= 0 and (ack - end) & MASK < HALF)
