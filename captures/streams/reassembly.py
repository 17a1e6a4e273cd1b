"""TCP reassembly: segments in, `StreamEvent`s out. State without I/O; time arrives with packets.

Rules
- Bytes are delivered once and in order. Where two segments disagree about a byte, the first wins.
- Cause comes before effect: bytes whose sender had acknowledged more than we have seen of the other
  direction wait for it. So a response never overtakes its request, however the capture mixed them.
- Missing bytes are given up, as a `Gap`, once the other side acknowledged them and the capture had
  `reorder_ns` and `reorder_packets` of `CaptureLimits` to bring them; without such an ACK after
  `gap_timeout_ns`; or by the limits.
- A connection without SYN starts with the lowest sequence number among its first segments, those of
  `reorder_ns`, so that their order does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

from kafkascope.captures.formats.remarks import OURS
from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.model import BEHIND_ALL, Closed, more
from kafkascope.captures.packets.fragments import Fragments
from kafkascope.captures.packets.tcp import ACK, FIN, MASK, RST, SYN, Segment, distance, reverse
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.streams.connection import (
    ITEM_OVERHEAD,
    NEAR_BYTES,
    NEVER,
    ConnectionState,
    Deadlines,
    keep,
)
from kafkascope.captures.streams.copies import Copies, FirstPackets
from kafkascope.captures.streams.delivery import (
    SETTLE_BYTES,
    Comment,
    Out,
    Reason,
    begin_midstream,
    complete_handshake,
    deliver_segment,
    deliver_waiting,
    emit_closed,
    emit_gap,
    emit_opened,
    find_starts,
    is_beginning,
    is_delivered,
    is_own_syn,
    is_port_reuse,
    must_wait,
    new_connection,
    on_path,
    settle_with,
    start_at_syn,
    translate,
)
from kafkascope.kernel.headers import QUIET_MASK
from kafkascope.kernel.segments import DirectionState, acknowledge, passed


class Reassembler(Resumable):
    """Reassembles all connections of a capture: `feed` it every segment in order, then `finish`."""

    STATE = ("copies", "packets", "connections", "duplicates", "held")

    def __init__(
        self,
        comment_of: Comment | None = None,
        *,
        translations: bool = False,
        limits: CaptureLimits = LIMITS,
    ) -> None:
        """`comment_of(file, interface)` returns the comment of a pcapng interface. `translations`:
        read connections once that the capture holds before and after address translation."""
        self.limits = limits
        self.flows: dict[bytes, DirectionState] = {}
        """Both directions of each connection; the bulk path looks them up here."""
        self.copies = Copies()
        self.deadlines = Deadlines()
        self.fragments = Fragments()
        self.packets = 0
        """Number of the last packet that was fed."""
        self.time_ns = 0
        """Time of the last packet whose events were made."""
        self.connections = 0
        self.duplicates = 0
        """Exact copies among the segments."""
        self._comment_of = comment_of
        self.number_of: Callable[[int], int] | None = None
        """Gives connections their numbers, by those of their first packets; None: 0, 1..."""
        self.first_packets = FirstPackets() if translations else None
        self.translated = 0
        """Connections that came with other addresses, too."""
        self.held = 0
        """Memory of all bytes that wait."""

    def feed(self, segment: Segment) -> Out:
        mark = (segment.copy, segment.time_ns, segment.interface)
        number = max(self.packets + 1, segment.packet)
        return self.feed_marked(segment, self.copies.seen(mark, number))

    def feed_marked(self, segment: Segment, copy: bool) -> Out:
        """Take a segment; `copies` has decided whether it is a `copy`."""
        out: Out = []
        self.packets = max(self.packets + 1, segment.packet)
        if segment.time_ns >= self.deadlines.wake_ns:
            self.check(segment.time_ns, out)
        direction = self.flows.get(segment.flow)
        if direction is None:
            direction = self._open(segment, out)
        elif (
            direction.in_order
            and segment.seq == direction.next
            and segment.flags & QUIET_MASK == ACK
            and not copy
            and len(segment.payload) == segment.length
        ):
            # The bulk path recognises this same case for many packets at once: see `scan`.
            expected = direction.other.next
            if expected is None or not 0 < (segment.ack - expected) & MASK < 1 << 30:
                acknowledge(direction, segment.ack)
                on_path(direction, segment)
                if segment.length:
                    deliver_segment(direction, segment, out)
                following = segment.seq + segment.length & MASK
                passed(direction, 1, segment.length, segment.time_ns, following)
                return out
        self._feed_out_of_order(direction, segment, copy, out)
        return out

    def check(self, time_ns: int, out: Out) -> None:
        """Look at the gaps whose deadline has come.

        Only deadlines and the connection's own packets decide what follows, not the packet that the
        time came with: a connection alone gives the same events as within its capture.
        """
        early: list[DirectionState] = []
        waiting: set[ConnectionState] = set()
        while (direction := self.deadlines.due(time_ns)) is not None:
            state, now_ns = direction.state, direction.deadline_ns
            if state.settling is not None:
                self._settle(state, now_ns, out)
            elif direction.gap_since_ns is None or not direction.gap_size():
                direction.gap_since_ns = None
            elif (
                state in waiting
                or self.packets < direction.gap_since_packet + self.limits.reorder_packets
            ):
                # Its other direction waits with it, or packets of others would decide which of the
                # two is given up first.
                early.append(direction)
                waiting.add(state)
            elif (
                direction.acked_unseen()
                or now_ns >= direction.gap_since_ns + self.limits.gap_timeout_ns
            ):
                self._give_up(direction, "lost", now_ns, out)
                self._update(state, now_ns, out)
            else:
                self.deadlines.set(direction, direction.gap_since_ns + self.limits.gap_timeout_ns)
        # Those of the last few packets: all others had their chance.
        for direction in early:
            self.deadlines.set(direction, direction.deadline_ns)

    @property
    def first_waiting(self) -> int:
        """Number of the first packet of which bytes wait; `BEHIND_ALL` where none do."""
        first = BEHIND_ALL
        for direction in self.deadlines.waiting() if self.held else ():
            state = direction.state
            for each in state.directions:
                first = min([first, *(item.segment.packet for item in each.waiting)])
            if state.settling:
                first = min([first, *(segment.packet for segment, _ in state.settling)])
        return first

    def finish(self, end_ns: int | None = None) -> Out:
        """End the capture: give up all gaps, deliver what waits, close what is open. `end_ns`: the
        time of its last packet, which may be of no connection."""
        return self.give_up() + self.close(end_ns)

    def give_up(self) -> Out:
        """Give up all gaps, as no packets will come."""
        out: Out = []
        self.packets += self.limits.reorder_packets
        self.check(NEVER, out)
        return out

    def close(self, end_ns: int | None = None) -> Out:
        """Close what is open, in the order in which it was opened."""
        out: Out = []
        for state in self._states():
            self._close(state, "end", state.connection.last_ns, out, end_ns)
        self.flows.clear()
        self.deadlines = Deadlines()
        return out

    def end(self, over: Callable[[ConnectionState], bool], end_ns: int) -> Out:
        """End connections of which no packet will come, as `finish` ends all, and forget them."""
        ended = {state for state in self._states() if over(state)}
        waiting = self.deadlines.waiting()
        self.deadlines = Deadlines()
        self.deadlines.wait([each for each in waiting if each.state in ended])
        out = self.give_up()
        self.packets -= self.limits.reorder_packets
        for state in self._states():
            if state in ended:
                self._close(state, "end", state.connection.last_ns, out, end_ns)
                self._forget(state)
        self.deadlines = Deadlines()
        self.deadlines.wait([each for each in waiting if each.state not in ended])
        return out

    def dump(self) -> Dump:
        """Return the state, but of `fragments`: those stay where packets are read."""
        states = {each.connection.number: each.state for each in self.flows.values()}
        waiting = self.deadlines.waiting()
        return {
            **super().dump(),
            "states": [state.dump() for state in states.values()],
            "deadlines": [[each.connection.number, each.number] for each in waiting],
        }

    def load(self, state: Dump) -> Self:
        super().load(state)
        loaded = {}
        for each in state["states"]:
            connection, (first, second) = each["connection"], each["directions"]
            one = ConnectionState(connection, first["flow"], second["flow"]).load(each)
            loaded[connection.number] = one.directions
            # Of two directions with one flow, that of a "land" packet, one is never used.
            self.flows |= {side.flow: side for side in one.directions if side.other.other is side}
        self.deadlines.wait([loaded[number][at] for number, at in state["deadlines"]])
        return self

    # Opening and closing

    def _states(self) -> list[ConnectionState]:
        flows = self.flows.items()
        return [each.state for flow, each in flows if each.number == 0 and each.flow == flow]

    def _twin(self, segment: Segment) -> DirectionState | None:
        """Return the direction whose packets come with these addresses, too: see `copies`."""
        if self.first_packets is None:
            return None
        twin = self.first_packets.twin(segment)
        direction = None if twin is None else self.flows.get(twin.flow)
        if twin is None or direction is None or direction.other is direction:
            return None
        state = direction.state
        if state.packet != twin.packet or not is_beginning(state):
            return None  # it has gone on since: a response comes after both requests
        self.translated += state.copies is None
        translate(state, direction, segment.flow)
        self.flows[segment.flow] = direction
        self.flows[reverse(segment.flow)] = direction.other
        return direction

    def _open(self, segment: Segment, out: Out) -> DirectionState:
        """Return the direction of the first packet of a flow: of a new connection, or of one that
        came with other addresses before."""
        if (twin := self._twin(segment)) is not None:
            return twin
        if len(self.flows) >= 2 * self.limits.connections:
            self._evict(out)
        number = self.connections
        if self.number_of is not None:
            number = self.number_of(segment.packet)
        state = new_connection(segment, number, self._comment_of)
        self.connections += 1
        for direction in reversed(state.directions):
            self.flows[direction.flow] = direction
        if segment.flags & SYN:
            emit_opened(state, out)
        else:
            self._begin_settling(state, segment.time_ns)
        return self.flows[segment.flow]

    def _begin_settling(self, state: ConnectionState, time_ns: int) -> None:
        """Put segments aside from now on: it is not known where a direction starts."""
        state.settling = []
        for direction in state.directions:
            direction.in_order = False
        self.deadlines.set(state.directions[0], time_ns + self.limits.reorder_ns)
        self.deadlines.purge(8 * self.limits.connections)

    def _evict(self, out: Out) -> None:
        """Forget an eighth of the connections, closed ones first, then the longest silent."""
        states = self._states()
        states.sort(key=lambda state: (not state.over, state.connection.last_ns))
        # Not one at a time: all were sorted, which a scan would make us do for each of its SYNs.
        for state in states[: len(states) // 8 + 1]:
            self._close(state, "idle", state.connection.last_ns, out)
            self._forget(state)

    def _forget(self, state: ConnectionState) -> None:
        for flow in state.flows:
            self.flows.pop(flow, None)
        for direction in state.directions:
            self.flows.pop(direction.flow, None)
            direction.queued_ns = None
            # Circles are left to the garbage collector, which our programs run seldom: a flood of
            # SYNs made half a gigabyte of them meanwhile.
            del direction.other
        state.directions.clear()

    def _close(
        self,
        state: ConnectionState,
        how: Literal["reuse", "idle", "end"],
        time_ns: int,
        out: Out,
        end_ns: int | None = None,
    ) -> None:
        """Deliver what waits, then end the connection; at `end_ns` if that is later."""
        if state.settling is not None:
            self._settle(state, time_ns, out)
        while broken := [direction for direction in state.directions if direction.gap_size()]:
            direction = min(broken, key=lambda direction: direction.gap_since_packet)
            self._give_up(direction, "lost", time_ns, out)
            self._drain(state, out)
        for direction in state.directions:
            direction.in_order = False
            direction.gap_since_ns = None
            self.held -= direction.held
            direction.held = 0
            direction.waiting.clear()
        state.connection.path.over = True
        if not state.over:
            state.over = True
            end_ns = max(end_ns or time_ns, time_ns)
            out.append(Closed(state.connection, None, how, end_ns, state.connection.used))

    def _settle(self, state: ConnectionState, time_ns: int, out: Out) -> None:
        """Decide where the directions of a connection without SYN start, and take the segments that
        were put aside."""
        waited = state.settling or []
        starts = find_starts(state)
        state.settling = None
        self.held -= state.settling_bytes
        state.settling_bytes = 0
        emit_opened(state, out)
        for direction, segment in starts:
            begin_midstream(direction, segment, out)
        for segment, copy in waited:
            direction = self.flows[segment.flow]
            if not copy and state.copies is None:
                on_path(direction, segment)
            self._take(direction, segment, copy, time_ns, out)

    # One segment that is not plainly the next one

    def _feed_out_of_order(
        self, direction: DirectionState, segment: Segment, copy: bool, out: Out
    ) -> None:
        syn = segment.flags & SYN
        if (syn and not is_own_syn(direction, segment)) or is_port_reuse(direction, segment):
            self._close(direction.state, "reuse", segment.time_ns, out)
            self._forget(direction.state)
            direction = self._open(segment, out)
        state = direction.state
        state.packet = self.packets
        if self.first_packets is not None and (syn or state.settling is not None):
            self.first_packets.add(segment)
        own = not copy and segment.flow == direction.flow
        if state.copies is not None:
            copy = copy or state.copies.seen(direction.number, segment)
        if segment.flow != direction.flow:
            copy = copy or is_delivered(direction, segment)
            segment = segment._replace(flow=direction.flow)
        self._count(direction, segment, copy)
        if state.settling is None and direction.next is None and segment.length and not syn:
            self._begin_settling(state, segment.time_ns)
        if state.settling is None:
            if own:
                on_path(direction, segment, copy)
            self._take(direction, segment, copy, segment.time_ns, out)
        else:
            self.held += settle_with(state, direction, segment, copy)
            started = all(each.next is not None for each in state.directions)
            if started or state.settling_bytes > SETTLE_BYTES:
                self._settle(state, segment.time_ns, out)
        self._limit_total(segment.time_ns, out)

    def _count(self, direction: DirectionState, segment: Segment, copy: bool) -> None:
        connection, number = direction.connection, direction.number
        connection.last_ns = max(connection.last_ns, segment.time_ns)
        connection.packets[number] += 1
        if not copy or direction.state.copies is None:
            connection.bytes[number] += len(segment.payload)
        self.duplicates += copy
        if copy:
            connection.duplicates = more(connection.duplicates, number)

    def _take(
        self, direction: DirectionState, segment: Segment, copy: bool, now_ns: int, out: Out
    ) -> None:
        """Take a segment of a connection that has settled."""
        flags, seq = segment.flags, segment.seq
        if flags & SYN:
            if direction.next is None or not direction.connection.handshake:
                start_at_syn(direction, segment)
            seq = seq + 1 & MASK  # the SYN takes a number; data may follow it (RFC 7413)
        elif flags & ACK:
            complete_handshake(direction, segment)
        if flags & ACK and (
            direction.next is None or abs(distance(direction.next, seq)) < NEAR_BYTES
        ):
            acknowledge(direction, segment.ack)
        if direction.next is not None:
            self._place(direction, seq, segment, copy)
        if flags & RST and direction.reset_ns is None:
            direction.reset_ns = segment.time_ns
        if direction.held > self.limits.direction_bytes:
            self._drain(direction.state, out)
            self._limit_direction(direction, now_ns, out)
        self._update(direction.state, now_ns, out)

    def _place(self, direction: DirectionState, seq: int, segment: Segment, copy: bool) -> None:
        """Put the payload where it belongs and count what kind of segment it was."""
        connection, number = direction.connection, direction.number
        length = segment.length
        assert direction.next is not None
        ahead = distance(direction.next, seq)
        # A keep-alive: the number before the next one, with no byte or one of garbage (RFC 9293,
        # 3.8.4).
        if length <= 1 and ahead == -1 and not segment.flags & (SYN | FIN | RST):
            if not copy:
                connection.keep_alives = more(connection.keep_alives, number)
            return
        if ahead < 0 and length and -ahead <= direction.acked_gap:
            # The ACK that revealed a gap was wrong: the stream continues where it was.
            direction.next, direction.acked_gap, direction.other.ack, ahead = seq, 0, None, 0
        start = direction.offset + ahead
        end = start + length
        if (
            segment.flags & FIN
            and direction.fin is None
            and 0 <= end - direction.offset < NEAR_BYTES
        ):
            direction.fin = (end, segment.time_ns)
        if direction.closed and direction.fin is not None:
            end = min(end, direction.fin[0])
        if not length or (ahead > NEAR_BYTES and not self._is_plausible(direction, seq, segment)):
            return
        late = start < direction.top
        overlap = 0
        if start < direction.offset:
            overlap = min(end, direction.offset) - start
            start = direction.offset
        if start < end:
            held = direction.held
            overlap += keep(direction, start, end, start - direction.offset - ahead, segment)
            self.held += direction.held - held
            direction.top = max(direction.top, end)
        if overlap and not copy and connection.interface_comment.startswith(OURS):
            # What a file of our own recordings begins with, for those who read it alone.
            connection.bytes[number] -= overlap
        elif overlap and not copy:
            connection.retransmissions = more(connection.retransmissions, number)
            behind = seq + length & MASK
            direction.path.again(number, segment.time_ns, behind, end - length, end)
        elif late and not copy:
            connection.out_of_order = more(connection.out_of_order, number)
            later = next((each for each in direction.waiting if each.start >= end), None)
            if later is not None:
                since_ns = later.segment.time_ns
                direction.path.filled(number, since_ns, segment.time_ns, start, end)

    def _is_plausible(self, direction: DirectionState, seq: int, segment: Segment) -> bool:
        """Whether a segment far ahead follows another one there; else it is damaged or foreign."""
        stray = direction.stray
        direction.stray = seq + segment.length & MASK
        return stray is not None and 0 <= distance(stray, seq) < NEAR_BYTES

    # Delivery

    def _drain(self, state: ConnectionState, out: Out) -> None:
        """Deliver what can be delivered, in both directions."""
        first, second = state.directions
        while self._drain_direction(first, out) | self._drain_direction(second, out):
            pass

    def _drain_direction(self, direction: DirectionState, out: Out) -> bool:
        """Deliver what is next and has its cause delivered; return whether anything was."""
        done = 0
        for item in direction.waiting:
            if item.start != direction.offset or must_wait(direction, item):
                break
            deliver_waiting(direction, item, out)
            done += 1
        if done:
            freed = sum(len(item.data) + ITEM_OVERHEAD for item in direction.waiting[:done])
            direction.held -= freed
            self.held -= freed
            del direction.waiting[:done]
        return emit_closed(direction, out) or done > 0

    # Gaps and limits

    def _update(self, state: ConnectionState, time_ns: int, out: Out) -> None:
        """Deliver, watch the gaps, and decide whether both directions are in order again."""
        self._drain(state, out)
        quiet = not state.over
        for direction in state.directions:
            self._watch_gap(direction, time_ns)
            quiet = quiet and direction.gap_since_ns is None and not direction.waiting
        for direction in state.directions:
            starting = direction.number == 0 and state.syn_ns is not None
            direction.in_order = (
                state.copies is None
                and quiet
                and direction.next is not None
                and direction.fin is None
                and not starting
            )

    def _watch_gap(self, direction: DirectionState, time_ns: int) -> None:
        """Start, move or stop the clock of a direction's gap."""
        if not direction.gap_size():
            direction.gap_since_ns = None
        elif direction.gap_since_ns is None or direction.gap_offset != direction.offset:
            direction.gap_since_ns = time_ns
            direction.gap_offset = direction.offset
            direction.gap_since_packet = direction.state.packet
            self.deadlines.set(direction, time_ns + self.limits.reorder_ns)
        elif (
            direction.deadline_ns > direction.gap_since_ns + self.limits.reorder_ns
            and direction.acked_unseen()
        ):
            # It waited for a retransmission; the ACK says that none will come.
            self.deadlines.set(
                direction, min(direction.deadline_ns, time_ns + self.limits.reorder_ns)
            )

    def _give_up(self, direction: DirectionState, reason: Reason, time_ns: int, out: Out) -> None:
        size = direction.gap_size()
        if direction.waiting:
            time_ns = direction.waiting[0].segment.time_ns
        elif direction.gap_since_ns is not None:
            time_ns = direction.gap_since_ns
        emit_gap(direction, size, reason, time_ns, out)
        direction.acked_gap = 0 if direction.waiting else size
        direction.gap_since_ns = None

    def _limit_direction(self, direction: DirectionState, time_ns: int, out: Out) -> None:
        while direction.held > self.limits.direction_bytes:
            blocking = direction if direction.gap_size() else direction.other
            if not blocking.gap_size():
                return
            self._give_up(blocking, "limit", time_ns, out)
            self._drain(direction.state, out)

    def _limit_total(self, time_ns: int, out: Out) -> None:
        if self.held <= self.limits.reassembly_bytes:
            return
        idle = []
        while self.held > self.limits.reassembly_bytes * 3 // 4 and (
            direction := self.deadlines.due(NEVER)
        ):
            state = direction.state
            if state.settling is not None:
                self._settle(state, time_ns, out)
            elif not direction.gap_size():
                direction.gap_since_ns = None
            elif direction.held or direction.other.held:
                self._give_up(direction, "limit", time_ns, out)
                self._update(state, time_ns, out)
            else:
                idle.append(direction)
        for direction in idle:
            self.deadlines.set(direction, direction.deadline_ns)
