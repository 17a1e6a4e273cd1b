"""TCP reassembly: segments in, `StreamEvent`s out. State without I/O; time arrives with the
packets.

Rules
- Bytes come out once and in order. Where two segments disagree about a byte, the first one wins.
- Cause comes before effect: bytes whose sender had acknowledged more than we have seen of the other
  direction wait for it. So an answer never overtakes its question, however the capture mixed them
  up.
- A hole is given up (`Gap`) once the other side acknowledged what is missing and the capture had
  `GRACE_NS` and `GRACE_PACKETS` to bring it; without such an ACK after `PATIENCE_NS`; or by the
  limits.
- A connection without SYN starts with whatever is lowest among its first segments (of `GRACE_NS`),
so
  the order of these does not matter.
"""

from __future__ import annotations

import gc
from typing import Final, Literal, Self

from kafkascope.captures.model import Closed
from kafkascope.captures.packets.fragments import Fragments
from kafkascope.captures.packets.tcp import ACK, FIN, MASK, QUIET_MASK, RST, SYN, Segment, distance
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.streams.copies import Copies
from kafkascope.captures.streams.deadlines import NEVER, Deadlines
from kafkascope.captures.streams.delivery import (
    Out,
    Reason,
    begin_midstream,
    complete_handshake,
    deliver_segment,
    deliver_waiting,
    must_wait,
    tell_closed,
    tell_gap,
    tell_opened,
)
from kafkascope.captures.streams.half import ITEM_OVERHEAD, Half
from kafkascope.captures.streams.tracks import (
    NEAR_BYTES,
    Comment,
    Track,
    find_starts,
    fits_syn,
    is_new_life,
    is_settled,
    settle_with,
    start_at_syn,
    track_of,
)

GRACE_NS: Final = 100_000_000
"""Captures swap packets within one batch of a driver (well below 1 ms); a fast retransmission takes
a round trip. 100 ms is beyond both and still feels live."""
GRACE_PACKETS: Final = 16
"""On a quiet line time alone says little: the missing packet may be the next one in the file."""
PATIENCE_NS: Final = 2_000_000_000
"""Without an ACK the sender will send again: its timeout starts at 200 ms to 1 s and doubles."""
HALF_BYTES: Final = 32 << 20
"""Held per direction: above the receive windows in use (Linux: 6 MB, tuned hosts 16 to 32 MB)."""
TOTAL_BYTES: Final = 256 << 20
"""Held in all: eight such directions at once, and a bound for hostile captures."""
MAX_CONNECTIONS: Final = 32_768
"""Tracked at once, about 2 KB each; beyond it those that were silent longest are closed as idle."""


class Reassembler(Resumable):
    """Feed it every TCP segment of a capture, in its order; then `finish`."""

    STATE = ("copies", "packets", "connections", "duplicates", "held", "_evicted")

    def __init__(self, comment_of: Comment | None = None) -> None:
        """`comment_of(file, interface)` tells the comment of a pcapng interface."""
        self.flows: dict[bytes, Half] = {}
        """Both flows of each connection; the bulk path looks its directions up here."""
        self.copies = Copies()
        self.deadlines = Deadlines()
        self.fragments = Fragments()
        self.packets = 0
        """Number of the last packet that was fed."""
        self.connections = 0
        """Connections seen."""
        self.duplicates = 0
        """Exact copies among the segments."""
        self._comment_of = comment_of
        self.held = 0
        """Bytes of memory in all that waits."""
        self._evicted = 0
        """Connections that were forgotten since Python was asked to look for cycles."""

    def feed(self, segment: Segment) -> Out:
        """Take the next segment; what it caused."""
        mark = (segment.copy, segment.time_ns, segment.interface)
        number = max(self.packets + 1, segment.packet)
        return self.feed_marked(segment, self.copies.seen(mark, number))

    def feed_marked(self, segment: Segment, copy: bool) -> Out:
        """The same for a segment that `copies` has looked at."""
        out: Out = []
        self.packets = max(self.packets + 1, segment.packet)
        if segment.time_ns >= self.deadlines.wake_ns:
            self.check(segment.time_ns, out)
        half = self.flows.get(segment.flow)
        if half is None:
            half = self._open(segment, out)
        elif (
            half.calm
            and segment.seq == half.next
            and segment.flags & QUIET_MASK == ACK
            and not copy
            and len(segment.payload) == segment.length
        ):
            # The bulk path recognises this same case for many packets at once: see `captures.scan`.
            expected = half.other.next
            if expected is None or not 0 < (segment.ack - expected) & MASK < 1 << 30:
                half.acknowledge(segment.ack)
                if segment.length:
                    deliver_segment(half, segment, out)
                following = segment.seq + segment.length & MASK
                half.passed(1, segment.length, segment.time_ns, following)
                return out
        self._unusual(half, segment, copy, out)
        return out

    def check(self, time_ns: int, out: Out) -> None:
        """Look at the holes whose time has come.

        Only deadlines and the connection's own packets decide what follows, not the packet that the
        time came with: a connection alone gives the same events as within its capture.
        """
        early: list[Half] = []
        waiting: set[Track] = set()
        while (half := self.deadlines.due(time_ns)) is not None:
            track, now_ns = half.track, half.deadline_ns
            if track.settling is not None:
                self._settle(track, now_ns, out)
            elif half.trouble_ns is None or not half.missing():
                half.trouble_ns = None
            elif track in waiting or self.packets < half.trouble_at + GRACE_PACKETS:
                # Its other direction waits with it, or packets of others would decide which of the
                # two is given up first.
                early.append(half)
                waiting.add(track)
            elif half.owed() or now_ns >= half.trouble_ns + PATIENCE_NS:
                self._give_up(half, "lost", now_ns, out)
                self._after(track, now_ns, out)
            else:
                self.deadlines.set(half, half.trouble_ns + PATIENCE_NS)
        # Those of the last few packets: all others had their chance.
        for half in early:
            self.deadlines.set(half, half.deadline_ns)

    def finish(self) -> Out:
        """The capture is over: give up all holes, deliver what waits, close what is open."""
        out: Out = []
        self.packets += GRACE_PACKETS
        self.check(NEVER, out)
        for track in self._tracks():
            self._close(track, "end", track.connection.last_ns, out)
        self.flows.clear()
        self.deadlines = Deadlines()
        return out

    def dump(self) -> Dump:
        """The state; not of `fragments`, which whoever feeds segments of elsewhere has."""
        tracks = {half.connection.number: half.track for half in self.flows.values()}
        return {
            **super().dump(),
            "tracks": [track.dump() for track in tracks.values()],
            "deadlines": [[h.connection.number, h.direction] for h in self.deadlines.waiting()],
        }

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        super().load(state)
        tracks = {}
        for each in state["tracks"]:
            connection, (first, second) = each["connection"], each["halves"]
            track = Track(connection, first["flow"], second["flow"]).load(each)
            tracks[connection.number] = track
            # Of two directions with one flow, that of a "land" packet, one is never used.
            self.flows |= {h.flow: h for h in track.halves if h.other.other is h}
        self.deadlines.wait([tracks[number].halves[at] for number, at in state["deadlines"]])
        return self

    # Opening and closing

    def _tracks(self) -> list[Track]:
        return [half.track for half in self.flows.values() if half.direction == 0]

    def _open(self, segment: Segment, out: Out) -> Half:
        if len(self.flows) >= 2 * MAX_CONNECTIONS:
            self._evict(out)
        track = track_of(segment, self.connections, self._comment_of)
        self.connections += 1
        for half in reversed(track.halves):
            self.flows[half.flow] = half
        if segment.flags & SYN:
            tell_opened(track, out)
        else:
            self._begin_settling(track, segment.time_ns)
        return self.flows[segment.flow]

    def _begin_settling(self, track: Track, time_ns: int) -> None:
        """Put segments aside, for it is not known where a direction starts."""
        track.settling = []
        for half in track.halves:
            half.calm = False
        self.deadlines.set(track.halves[0], time_ns + GRACE_NS)
        self.deadlines.purge(8 * MAX_CONNECTIONS)

    def _evict(self, out: Out) -> None:
        """Forget the eighth that was silent longest, those that are over first."""
        tracks = self._tracks()
        tracks.sort(key=lambda track: (not track.over, track.connection.last_ns))
        for track in tracks[: len(tracks) // 8 + 1]:
            self._close(track, "idle", track.connection.last_ns, out)
            self._forget(track)
            self._evicted += 1
        if self._evicted >= MAX_CONNECTIONS:
            # Both directions of a connection know each other. Programs of ours look for cycles
            # seldom, and a flood of SYNs made half a gigabyte of them meanwhile.
            self._evicted = 0
            del tracks, track
            gc.collect()

    def _forget(self, track: Track) -> None:
        for half in track.halves:
            self.flows.pop(half.flow, None)
            half.queued_ns = None

    def _close(
        self, track: Track, how: Literal["reuse", "idle", "end"], time_ns: int, out: Out
    ) -> None:
        """Deliver what waits, then end the connection."""
        if track.settling is not None:
            self._settle(track, time_ns, out)
        while broken := [half for half in track.halves if half.missing()]:
            half = min(broken, key=lambda half: half.trouble_at)
            self._give_up(half, "lost", time_ns, out)
            self._drain(track, out)
        for half in track.halves:
            half.calm = False
            half.trouble_ns = None
            self.held -= half.held
            half.held = 0
            half.waiting.clear()
        if not track.over:
            track.over = True
            out.append(Closed(track.connection, None, how, time_ns, track.connection.used))

    def _settle(self, track: Track, time_ns: int, out: Out) -> None:
        """Decide where the directions of a connection without SYN start; take what was put
        aside."""
        waited = track.settling or []
        starts = find_starts(track)
        track.settling = None
        self.held -= track.weight
        track.weight = 0
        tell_opened(track, out)
        for half, segment in starts:
            begin_midstream(half, segment, out)
        for segment, copy in waited:
            self._take(self.flows[segment.flow], segment, copy, time_ns, out)

    # One segment, when anything is unusual

    def _unusual(self, half: Half, segment: Segment, copy: bool, out: Out) -> None:
        syn = segment.flags & SYN
        if (syn and not fits_syn(half, segment)) or is_new_life(half, segment):
            self._close(half.track, "reuse", segment.time_ns, out)
            self._forget(half.track)
            half = self._open(segment, out)
        track = half.track
        track.packet = self.packets
        self._count(half, segment, copy)
        if track.settling is None and half.next is None and segment.length and not syn:
            self._begin_settling(track, segment.time_ns)
        if track.settling is None:
            self._take(half, segment, copy, segment.time_ns, out)
        else:
            self.held += settle_with(track, half, segment, copy)
            if is_settled(track):
                self._settle(track, segment.time_ns, out)
        self._limit_total(segment.time_ns, out)

    def _count(self, half: Half, segment: Segment, copy: bool) -> None:
        connection, direction = half.connection, half.direction
        connection.last_ns = max(connection.last_ns, segment.time_ns)
        connection.packets[direction] += 1
        connection.bytes[direction] += len(segment.payload)
        if copy:
            self.duplicates += 1
            connection.duplicates[direction] += 1

    def _take(self, half: Half, segment: Segment, copy: bool, now_ns: int, out: Out) -> None:
        """Take a segment of a connection that has settled."""
        flags, seq = segment.flags, segment.seq
        if flags & SYN:
            if half.next is None or not half.connection.handshake:
                start_at_syn(half, segment)
            seq = seq + 1 & MASK  # the SYN takes a number; data may follow it (RFC 7413)
        elif flags & ACK:
            complete_handshake(half, segment)
        if flags & ACK and (half.next is None or abs(distance(half.next, seq)) < NEAR_BYTES):
            half.acknowledge(segment.ack)
        if half.next is not None:
            self._place(half, seq, segment, copy)
        if flags & RST and half.reset_ns is None:
            half.reset_ns = segment.time_ns
        self._drain(half.track, out)
        self._limit_half(half, now_ns, out)
        self._after(half.track, now_ns, out)

    def _place(self, half: Half, seq: int, segment: Segment, copy: bool) -> None:
        """Put the payload where it belongs and count what kind of segment it was."""
        connection, direction = half.connection, half.direction
        length = segment.length
        assert half.next is not None
        ahead = distance(half.next, seq)
        if length <= 1 and ahead == -1 and not segment.flags & (SYN | FIN | RST):
            connection.keep_alives[direction] += not copy
            return
        if ahead < 0 and length and -ahead <= half.leap:
            # The ACK that told of a gap was wrong: the stream goes on where it was.
            half.next, half.leap, half.other.ack, ahead = seq, 0, None, 0
        start = half.offset + ahead
        end = start + length
        if segment.flags & FIN and half.fin is None and 0 <= end - half.offset < NEAR_BYTES:
            half.fin = (end, segment.time_ns)
        if half.closed and half.fin is not None:
            end = min(end, half.fin[0])
        if not length or (ahead > NEAR_BYTES and not self._believe(half, seq, segment)):
            return
        late = start < half.top
        overlap = 0
        if start < half.offset:
            overlap = min(end, half.offset) - start
            start = half.offset
        if start < end:
            held = half.held
            overlap += half.keep(start, end, start - half.offset - ahead, segment)
            self.held += half.held - held
            half.top = max(half.top, end)
        if overlap and not copy:
            connection.retransmissions[direction] += 1
        elif late and not copy:
            connection.out_of_order[direction] += 1

    def _believe(self, half: Half, seq: int, segment: Segment) -> bool:
        """A segment far ahead is a damaged or foreign one unless a second one follows it there."""
        stray = half.stray
        half.stray = seq + segment.length & MASK
        return stray is not None and 0 <= distance(stray, seq) < NEAR_BYTES

    # Delivery

    def _drain(self, track: Track, out: Out) -> None:
        """Deliver all that can be delivered, in both directions."""
        first, second = track.halves
        while self._drain_half(first, out) | self._drain_half(second, out):
            pass

    def _drain_half(self, half: Half, out: Out) -> bool:
        """Deliver what is next and not held back by its cause; True when anything moved."""
        done = 0
        for item in half.waiting:
            if item.start != half.offset or must_wait(half, item):
                break
            deliver_waiting(half, item, out)
            done += 1
        if done:
            freed = sum(len(item.data) + ITEM_OVERHEAD for item in half.waiting[:done])
            half.held -= freed
            self.held -= freed
            del half.waiting[:done]
        return tell_closed(half, out) or done > 0

    # Holes and limits

    def _after(self, track: Track, time_ns: int, out: Out) -> None:
        """Deliver, watch the holes, and see whether the bulk path may take over again."""
        self._drain(track, out)
        quiet = not track.over
        for half in track.halves:
            self._watch(half, time_ns)
            quiet = quiet and half.trouble_ns is None and not half.waiting
        for half in track.halves:
            starting = half.direction == 0 and track.syn_ns is not None
            half.calm = quiet and half.next is not None and half.fin is None and not starting

    def _watch(self, half: Half, time_ns: int) -> None:
        """Start, move or stop the clock of a direction's hole."""
        if not half.missing():
            half.trouble_ns = None
        elif half.trouble_ns is None or half.trouble_offset != half.offset:
            half.trouble_ns = time_ns
            half.trouble_offset = half.offset
            half.trouble_at = half.track.packet
            self.deadlines.set(half, time_ns + GRACE_NS)
        elif half.deadline_ns > half.trouble_ns + GRACE_NS and half.owed():
            # It waited for a retransmission; the ACK says that none will come.
            self.deadlines.set(half, min(half.deadline_ns, time_ns + GRACE_NS))

    def _give_up(self, half: Half, reason: Reason, time_ns: int, out: Out) -> None:
        size = half.missing()
        if half.waiting:
            time_ns = half.waiting[0].segment.time_ns
        elif half.trouble_ns is not None:
            time_ns = half.trouble_ns
        tell_gap(half, size, reason, time_ns, out)
        half.leap = 0 if half.waiting else size
        half.trouble_ns = None

    def _limit_half(self, half: Half, time_ns: int, out: Out) -> None:
        while half.held > HALF_BYTES:
            guilty = half if half.missing() else half.other
            if not guilty.missing():
                return
            self._give_up(guilty, "limit", time_ns, out)
            self._drain(half.track, out)

    def _limit_total(self, time_ns: int, out: Out) -> None:
        if self.held <= TOTAL_BYTES:
            return
        idle = []
        while self.held > TOTAL_BYTES * 3 // 4 and (half := self.deadlines.first()):
            track = half.track
            if track.settling is not None:
                self._settle(track, time_ns, out)
            elif not half.missing():
                half.trouble_ns = None
            elif half.held or half.other.held:
                self._give_up(half, "limit", time_ns, out)
                self._after(track, time_ns, out)
            else:
                idle.append(half)
        for half in idle:
            self.deadlines.set(half, half.deadline_ns)
