"""The machine between a client and a broker: bytes of either side in, actions out. Sans-I/O.

A frame that nobody needs is forwarded as it comes, the very same bytes; only sizes and heads are
looked at. A frame that has to change, or that a rule has to see, is kept until it is whole. When a
rule waits, the socket is not read: nothing piles up here.

    read ─► boundaries ─► head ─► pass │ collect ─► addresses, versions ─► rules ─► send
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from analyzer.detect import describe
from analyzer.plausible import Verdict as Plausible
from analyzer.plausible import judge_request
from dissectors.errors import DissectError
from dissectors.registry import APIS
from proxy import secrets
from proxy.actions import BROKER, CLIENT, Action, Ask, Data, End, Read, Send, WakeUp
from proxy.entries import Entry, Waiting
from proxy.heads import Head, read_head
from proxy.message import Message
from proxy.skipping import Unwalkable, Walk
from proxy.verdicts import Answer, Close, Delay, Drop, Forward, Hold, Replace, Throttle, Verdict
from proxy.way import COLLECT, DISCARD, PASS, TAIL, WALK, Stop, Way

if TYPE_CHECKING:
    from captures.model import Endpoint
    from proxy.hub import Hub, Tap
    from proxy.rules import Rule

MAX_COLLECT: Final = 100 * 1024 * 1024
"""A frame that is kept for a change; brokers take such requests (socket.request.max.bytes)."""
MAX_TOKEN: Final = 512 * 1024
"""Of a SASL token (sasl.server.max.receive.size)."""
SMALL: Final = 32 * 1024
"""Responses up to this size are kept whole where node endpoints may be in them."""
SLICE_S: Final = 0.05
"""A throttled frame goes in pieces of so much time."""

PRODUCE: Final = 0
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
NOTHING: Final[list[Action]] = []

QUICK_BYTES: Final = 18
"""Bytes of a request that the quick way wants to see."""
QUICK: Final = frozenset(key for key in APIS if key not in (0, 7, SASL_HANDSHAKE, API_VERSIONS))
"""APIs whose requests are nothing special while nobody records and no rule is there."""

_HEAD = struct.Struct(">ihhih")
_SIZE_AND_ID = struct.Struct(">ii")
_SIZE = struct.Struct(">i")


class Relay:
    """One connection. `feed` returns None for "forward these bytes as they are"."""

    def __init__(self, hub: Hub, number: int, client: Endpoint, broker: Endpoint) -> None:
        self.hub = hub
        self.number = number
        self.client = client
        self.broker = broker
        self.advertise_host = ""
        """The address of ours that this client came to."""
        self.waiting = Waiting()
        self.ways = (Way(CLIENT), Way(BROKER))
        self.client_id: str | None = None
        self.software = ""
        self.tap: Tap | None = None
        self.over = False
        self.cause = ""
        """Why the connection ended."""
        self._tokens = False
        self._answers = 0
        """Answers of our own that wait for their turn."""
        self._out: list[Action] = []
        self._now = 0

    # --- events

    def feed(self, side: int, data: Data, now_ns: int) -> list[Action] | None:
        """Bytes of a side. They are valid during the call only."""
        way = self.ways[side]
        size = len(data)
        self.hub.metrics.bytes[side] += size
        if way.stop is not None:
            way.backlog.append(bytes(data))
            return NOTHING
        if way.left > size and way.mode == PASS and not way.rate:
            way.left -= size
            if self.tap is not None:
                self.tap.client(side, data, now_ns)
            return None
        self._now = now_ns
        if (
            way.frames
            and self.tap is None
            and self.hub.chain is None
            and (way.left == 0 or way.mode == PASS)
            and not (way.head or way.rate or way.opaque or self._tokens or self._answers)
        ):
            quick = self._quick_requests if side == CLIENT else self._quick_responses
            at = quick(way, data, size)
            if at == size:
                return None
        else:
            at = 0
        out: list[Action] = []
        self._out = out
        if at:
            view = memoryview(data)
            self._pass(way, view[:at])
            self._walk(way, view[at:])
            return out
        self._walk(way, data if type(data) is memoryview else memoryview(data))
        if len(out) == 1:
            only = out[0]
            if type(only) is Send and type(only.data) is memoryview and len(only.data) == size:
                return None
        return out

    def eof(self, side: int, now_ns: int) -> list[Action]:
        """A side sends no more."""
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        way = self.ways[side]
        way.eof = True
        if not self.cause:
            self.cause = ("client", "broker")[side]
        if way.stop is None:
            self._finish(way)
        return out

    def woken(self, token: Any, now_ns: int) -> list[Action]:
        """The time of a `WakeUp` is over."""
        way = self.ways[token[0]]
        if self.over or way.stop is None or way.stop is not token[1]:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        self._resume(way)
        return out

    def awaited(self, token: Any, verdict: Any, now_ns: int) -> list[Action]:
        """A rule that took its time has decided."""
        side, message, rules, whole = token[0], token[2], token[3], token[4]
        stop: Stop = token[1]
        way = self.ways[side]
        if self.over or way.stop is not stop:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        stop.go = lambda: self._judge(way, message, rules, whole, verdict)
        self._resume(way)
        return out

    def release(self, side: int, stop: Stop, verdict: Verdict, now_ns: int) -> list[Action]:
        """Somebody decided about a held frame; `verdict` is carried out in place of the rule's."""
        way = self.ways[side]
        if self.over or way.stop is not stop:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        go = stop.go
        stop.go = lambda: self._released(way, stop.message, verdict, go)
        self._resume(way)
        return out

    def closed(self) -> None:
        """The connection is over; nothing comes any more."""
        self.over = True
        for way in self.ways:
            if way.stop is not None and way.stop.held is not None and self.hub.held is not None:
                self.hub.held.forget(way.stop.held)
            way.backlog.clear()
            way.body = bytearray()

    @property
    def busy(self) -> bool:
        """Whether answers are still to come."""
        return len(self.waiting) > 0

    # --- what passes most of the time

    def _quick_requests(self, way: Way, data: Data, size: int) -> int:
        """Follow requests that are nothing special, as far as they go: the offset of the first that
        is, or of the end. The long way (`_walk`) would do the same with them."""
        at = way.left
        count = self.hub.metrics.requests
        waiting = self.waiting
        now_ns = self._now
        while size - at >= QUICK_BYTES:
            length, key, version, correlation_id, name = _HEAD.unpack_from(data, at)
            if key == PRODUCE:
                # Flexible, without tags, without transaction, with an answer: else the long way.
                place = at + 14 + name
                if version < 9 or name < 0 or place + 4 > size:
                    break
                if data[place] or data[place + 1] or not (data[place + 2] or data[place + 3]):
                    break
            elif key not in QUICK:
                break
            if name < -1 or not name + 10 <= length < 0x2000_0000:
                break
            count[key] += 1
            waiting.add(Entry(key, version, correlation_id, now_ns, length + 4))
            at += length + 4
        way.left = at - size if at > size else 0
        return size if at >= size else at

    def _quick_responses(self, way: Way, data: Data, size: int) -> int:
        """As `_quick_requests`, for responses that nobody has to look into."""
        at = way.left
        if at:
            self._through(way)
        waiting = self.waiting
        answered = self.hub.metrics.answered
        rewriter = self.hub.rewriter
        while size - at >= 8:
            length, correlation_id = _SIZE_AND_ID.unpack_from(data, at)
            entry = waiting.front()
            if entry is None or entry.correlation_id != correlation_id or entry.token:
                break
            key = entry.key
            if key == API_VERSIONS or length < 4:
                break
            if rewriter is not None and rewriter.rewrites(key):
                steps = rewriter.walk(key, entry.version)
                if steps is None:
                    if rewriter.whole(key) or entry.version > APIS[key].versions.high:
                        break
                elif at + length + 4 > size or not rewriter.empty(
                    key, steps, data[at + 4 : at + 4 + length]
                ):
                    break
            answered(key, self._now - entry.time_ns)
            at += length + 4
            if at > size:
                way.entry = entry
                way.mode = PASS
                way.size = length + 4
                way.rate = 0.0
            else:
                waiting.pop()
        way.left = at - size if at > size else 0
        return size if at >= size else at

    # --- boundaries

    def _walk(self, way: Way, view: memoryview) -> None:
        """Forward what passes, in as few pieces as possible; see to the rest."""
        at = start = 0
        end = len(view)
        while at < end:
            if way.stop is not None or self.over:
                break
            if way.left == 0:
                if way.opaque:
                    at = end
                elif way.head:
                    take = min(way.want - len(way.head), end - at)
                    way.head += view[at : at + take]
                    at = start = at + take
                    if len(way.head) == way.want:
                        self._decide_kept(way)
                else:
                    if start < at and self._careful:
                        self._pass(way, view[start:at])
                        start = at
                    need = self._decide(way, view, at, end)
                    if need:
                        self._pass(way, view[start:at])
                        take = min(need, end - at)
                        way.head = bytearray(view[at : at + take])
                        way.want = need
                        at = start = at + take
                    elif way.stop is not None or way.mode in (COLLECT, DISCARD):
                        self._pass(way, view[start:at])
                        start = at
                continue
            take = min(way.left, end - at)
            mode = way.mode
            if mode in (PASS, WALK):
                if way.rate:
                    take = min(take, max(1, int(way.rate * SLICE_S)))
                if mode == WALK:
                    tail = self._look(way, view[at : at + take])
                    take = take if tail is None else tail
                at += take
                way.left -= take
                if way.rate or way.mode == TAIL:
                    self._pass(way, view[start:at])
                    start = at
                    if way.rate and take:
                        self._pace(way, take)
                    if way.mode == TAIL:
                        continue
            else:
                if mode != DISCARD:
                    way.body += view[at : at + take]
                at += take
                way.left -= take
                start = at
            if way.left == 0:
                if start < at and self._careful:
                    self._pass(way, view[start:at])
                    start = at
                self._end(way)
        if start < at:
            self._pass(way, view[start:at])
        if at < end and not self.over:
            way.backlog.append(bytes(view[at:]))

    @property
    def _careful(self) -> bool:
        """Whether a decision may send something, which must not overtake what passes."""
        return self.hub.chain is not None or self._answers > 0

    def _pass(self, way: Way, data: memoryview) -> None:
        if len(data):
            self._out.append(Send(1 - way.side, data))
            if self.tap is not None:
                self.tap.client(way.side, data, self._now)

    def _decide_kept(self, way: Way) -> None:
        """As `_decide`, for a head that came in pieces."""
        head = bytes(way.head)
        view = memoryview(head)
        need = self._decide(way, view, 0, len(head))
        if need > len(head):
            way.want = need
            return
        way.head = bytearray()
        if way.stop is not None:
            way.backlog.insert(0, head)
        elif way.opaque:
            self._pass(way, view)
        else:
            self._walk(way, view)

    def _decide(self, way: Way, view: memoryview, at: int, end: int) -> int:
        """What to do with the frame at `at`: sets mode and left. More than 0: bytes it needs."""
        if way.side == CLIENT:
            return self._decide_request(way, view, at, end)
        return self._decide_response(way, view, at, end)

    def _frame(self, way: Way, size: int, mode: int) -> None:
        way.left = way.size = 4 + size
        way.mode = mode
        way.rate = 0.0
        way.frames += 1
        if mode != PASS:
            way.body = bytearray()

    def _opaque(self, way: Way, view: memoryview, at: int, what: str = "") -> int:
        """Framing is lost: everything passes from here on, and we say so."""
        who = ("client", "broker")[way.side]
        text = what or describe(bytes(view[at : at + 16]))
        self.hub.metrics.add("opaque_total")
        endpoint = self.client if way.side == CLIENT else self.broker
        self.hub.once(
            f"opaque {who} {text}", f"{who} {endpoint}: {text}; its bytes pass as they are"
        )
        if way.side == CLIENT and way.frames == 0 and text.startswith(("TLS", "HTTP", "SSH")):
            # The broker could only misunderstand it; the client learns more from a closed door.
            self.over = True
            self.cause = "not Kafka"
            self._out += [End(CLIENT, "fin"), End(BROKER, "fin")]
            return 0
        for each in self.ways:
            each.opaque = True
        return 0

    # --- requests

    def _decide_request(self, way: Way, view: memoryview, at: int, end: int) -> int:
        if self._tokens or (way.frames == 0 and end - at > 4 and view[at + 4] == 0x60):
            need = self._decide_token(way, view, at, end)
            if need is not None:
                return need
        if way.frames == 0 and end - at >= 4 and not _sane(view, at):
            return self._opaque(way, view, at)
        try:
            head = read_head(view, at, end)
        except ValueError as error:
            return self._opaque(way, view, at, f"no Kafka request: {error}")
        if isinstance(head, int):
            return head
        if head.key < 0 or head.version < 0:
            return self._opaque(way, view, at, "no Kafka request: a negative API key or version")
        self._request(way, head)
        return 0

    def _request(self, way: Way, head: Head) -> None:
        """A request begins: pass it, or keep it when somebody has to see it."""
        hub = self.hub
        key, version = head.key, head.version
        hub.metrics.requests[key] += 1
        entry = Entry(key, version, head.correlation_id, self._now)
        entry.client_id = self.client_id = head.client_id
        entry.size = head.size + 4
        way.entry = entry if head.answered else None
        self._frame(way, head.size, PASS)
        if key == SASL_HANDSHAKE:
            self._tokens = version == 0
        tap = self.tap is not None
        if (
            (key == API_VERSIONS and hub.rewriter is not None and hub.rewriter.newer(version))
            or (tap and not hub.with_secrets and secrets.in_request(key, version))
            or (tap and hub.rewriter is not None and hub.rewriter.whole(key))
        ):
            way.mode = COLLECT
        rules: list[Rule] = []
        message = None
        if hub.chain is not None:
            message = Message(self, CLIENT, entry, head.size, self._now)
            rules, whole = hub.chain.look(message)
            if whole or hub.chain.responses(message):
                way.mode = COLLECT
        if way.mode == COLLECT and head.size > MAX_COLLECT:
            hub.once(f"large {key}", f"a request of {head.size} bytes is too large to look at")
            way.mode = PASS
        if way.mode == PASS:
            self._expect(way)
            if message is not None and rules:
                self._judge(way, message, iter(rules), None)

    def _expect(self, way: Way) -> None:
        """An answer will come."""
        if way.entry is not None:
            self.waiting.add(way.entry)
            way.entry = None

    def _whole_request(self, way: Way, frame: bytes) -> None:
        """A request that was kept is here."""
        hub = self.hub
        entry, way.entry = way.entry, None
        answered = entry is not None
        if entry is None:  # acks=0
            head = read_head(frame, 0, len(frame))
            assert isinstance(head, Head)
            entry = Entry(head.key, head.version, head.correlation_id, self._now)
            entry.client_id = head.client_id
        self._tap_frame(CLIENT, entry, frame)
        if self.tap is not None and hub.rewriter is not None and hub.rewriter.rewrites(entry.key):
            entry.raw = frame
        if entry.key == API_VERSIONS and hub.rewriter is not None and hub.clamp:
            answer = hub.rewriter.too_new(entry.version, entry.correlation_id)
            if answer is not None:
                entry.comment = "answered by kafkascope: a version that it does not know (KIP-511)"
                self._answer(entry, answer)
                return
        message = Message(self, CLIENT, entry, len(frame) - 4, self._now, frame[4:])
        rules: list[Rule] = []
        if hub.chain is not None:
            rules, _ = hub.chain.look(message)
            if hub.chain.responses(message):
                entry.payload = frame[4:]
        if answered:
            way.entry = entry
        self._judge(way, message, iter(rules), frame)

    # --- SASL tokens (KIP-152: version 0 of the handshake leads to frames without a header)

    def _decide_token(self, way: Way, view: memoryview, at: int, end: int) -> int | None:
        """None: it is a request after all."""
        if end - at < 4:
            return 4
        (size,) = _SIZE.unpack_from(view, at)
        if not 0 <= size <= MAX_TOKEN:
            self._tokens = False
            return None
        need: int = min(size + 4, 16)
        if end - at < need:
            return need
        if size >= 10 and self._tokens:
            data = bytes(view[at : min(end, at + 16 + 1024)])
            if judge_request(data, 0) in (Plausible.MAYBE, Plausible.MORE):
                self._tokens = False
                return None
        self._tokens = True
        entry = Entry(-1, 0, 0, self._now)
        entry.token = True
        self._frame(way, size, COLLECT)
        way.entry = entry
        return 0

    # --- responses

    def _decide_response(self, way: Way, view: memoryview, at: int, end: int) -> int:
        have = end - at
        if have < 4:
            return 8
        front = self.waiting.front()
        if front is not None and front.token:
            (size,) = _SIZE.unpack_from(view, at)
            if size >= 4 and have < 8:
                return 8
            # The last token of an exchange need not be answered: what comes may be the answer to
            # the request after it.
            known = size >= 4 and self.waiting.knows(_SIZE_AND_ID.unpack_from(view, at)[1])
            if 0 <= size <= MAX_TOKEN and not known:
                way.entry = front
                self._frame(way, size, COLLECT)
                return 0
        if have < 8:
            (size,) = _SIZE.unpack_from(view, at)
            return self._opaque(way, view, at) if size < 4 else 8
        size, correlation_id = _SIZE_AND_ID.unpack_from(view, at)
        if size < 4 or (way.frames == 0 and not _sane(view, at)):
            return self._opaque(way, view, at)
        entry = self._asked(correlation_id)
        way.entry = entry
        self._frame(way, size, PASS)
        if entry is None:
            self.hub.metrics.add("unmatched_total")
            return 0
        self.hub.metrics.answered(entry.key, self._now - entry.time_ns)
        self._look_into(way, entry, view, at, end)
        rules: list[Rule] = []
        message = None
        if self.hub.chain is not None:
            message = Message(self, BROKER, entry, size, self._now)
            rules, whole = self.hub.chain.look(message)
            if whole:
                way.mode = COLLECT
        if way.mode == COLLECT and size > MAX_COLLECT:
            self.hub.once(
                f"large answer {entry.key}", f"a response of {size} bytes is too large to change"
            )
            way.mode = PASS
        if way.mode != COLLECT and message is not None and rules:
            self._judge(way, message, iter(rules), None)
        return 0

    def _asked(self, correlation_id: int) -> Entry | None:
        """The request that a response answers; those before it get no answer any more."""
        waiting = self.waiting
        front = waiting.front()
        if front is not None and front.correlation_id == correlation_id and not front.token:
            return front
        if not waiting.knows(correlation_id):
            return None
        while (front := waiting.front()) is not None:
            if front.answer is not None:
                self._flush()
            elif front.correlation_id == correlation_id:
                return front
            else:
                waiting.pop()
        return None

    def _look_into(self, way: Way, entry: Entry, view: memoryview, at: int, end: int) -> None:
        """Whether addresses, versions or secrets may be in a response."""
        rewriter = self.hub.rewriter
        key, version = entry.key, entry.version
        if way.mode == COLLECT:
            return
        if self.tap is not None and not self.hub.with_secrets and secrets.in_response(key, version):
            way.mode = COLLECT
            return
        if rewriter is None:
            return
        if rewriter.whole(key) or (key == API_VERSIONS and self.hub.clamp):
            way.mode = COLLECT
            return
        steps = rewriter.walk(key, version)
        if steps is None:
            return
        walk = Walk(steps)
        size = way.size
        try:
            if end - at >= size:
                tail = walk.feed(view[at + 4 : at + size])
                if tail is None or tail >= size - 4:
                    raise Unwalkable("the response ends early")
                if rewriter.filled(key, view[at + 4 + tail]):
                    way.mode = COLLECT
            elif size <= SMALL:
                way.mode = COLLECT
            else:
                way.mode = WALK
                way.walk = walk
                way.tail_at = -4  # the walk starts behind the size field
        except Unwalkable:
            self._undecoded(entry)

    def _look(self, way: Way, piece: memoryview) -> int | None:
        """Walk on; where the tagged section starts in the piece, when it does."""
        skip = 0
        if way.tail_at < 0:
            skip = min(-way.tail_at, len(piece))
            way.tail_at += skip
            if skip == len(piece):
                return None
        assert way.walk is not None
        try:
            found = way.walk.feed(piece[skip:])
        except Unwalkable:
            found = None
            way.mode = PASS
            if way.entry is not None:
                self._undecoded(way.entry)
        if found is None:
            return None
        at = found + skip
        if at > way.left:
            way.mode = PASS
            return None
        way.mode = PASS if way.left - at <= 1 else TAIL
        way.walk = None
        return at

    def _whole_response(self, way: Way, frame: bytes) -> None:
        """A response that was kept is here: addresses, versions, then the rules."""
        entry = way.entry
        assert entry is not None
        if entry.token:
            self._tap_frame(BROKER, entry, frame)
            self._out.append(Send(CLIENT, frame))
            return
        comment = ""
        sent = frame
        rewriter = self.hub.rewriter
        if rewriter is not None:
            try:
                sent, comment = rewriter.response(self, entry, frame, clamp=self.hub.clamp)
            except DissectError as error:
                self._undecoded(entry, str(error))
            except OSError as error:
                # Better no answer than one that leads the client past us.
                self.cause = "no listener"
                self.hub.once(f"listen {error}", f"cannot listen for a broker: {error}")
                self._close(way, Close("reset"), b"")
                return
        message = Message(self, BROKER, entry, len(sent) - 4, self._now, sent[4:])
        message.comment = comment
        message.original = frame
        rules: list[Rule] = []
        if self.hub.chain is not None:
            rules, _ = self.hub.chain.look(message)
        self._judge(way, message, iter(rules), sent)

    def _tail(self, way: Way) -> None:
        """The tagged section of a response whose head is gone: its length must not change."""
        entry, tail = way.entry, bytes(way.body)
        way.body = bytearray()
        assert entry is not None
        comment = ""
        if self.hub.rewriter is not None:
            try:
                tail, comment = self.hub.rewriter.tail(self, entry, tail)
            except DissectError as error:
                self._undecoded(entry, str(error))
        self._out.append(Send(CLIENT, tail))
        if self.tap is not None:
            self.tap.client(BROKER, tail, self._now, comment)

    def _end(self, way: Way) -> None:
        """The last byte of a frame is here."""
        mode = way.mode
        if mode == COLLECT:
            frame, way.body = bytes(way.body), bytearray()
            if way.side == CLIENT:
                if way.entry is not None and way.entry.token:
                    self._tap_frame(CLIENT, way.entry, frame)
                    self._out.append(Send(BROKER, frame))
                    self._expect(way)
                else:
                    self._whole_request(way, frame)
            else:
                self._whole_response(way, frame)
                if way.stop is None:
                    self._through(way)
            return
        if mode == TAIL:
            self._tail(way)
        if way.side == BROKER:
            self._through(way)

    def _through(self, way: Way) -> None:
        """A response is through: the next in the queue may have its answer already."""
        if way.entry is not None and self.waiting.front() is way.entry:
            self.waiting.pop()
        way.entry = None
        self._flush()

    def _flush(self) -> None:
        while (front := self.waiting.front()) is not None and front.answer is not None:
            if not self.ways[BROKER].between:
                return
            self.waiting.pop()
            self._answers -= 1
            self._out.append(Send(CLIENT, front.answer))
            if self.tap is not None:
                self.tap.client(BROKER, front.answer, self._now, front.comment)

    def _answer(self, entry: Entry, payload: bytes) -> None:
        """Answer in the broker's place, in turn."""
        entry.answer = _SIZE.pack(len(payload)) + payload
        self.waiting.add(entry)
        self._answers += 1
        self._flush()

    # --- rules

    def _judge(
        self,
        way: Way,
        message: Message,
        rules: Iterator[Rule],
        whole: bytes | None,
        first: Any = None,
    ) -> None:
        """Ask the rules in turn until one decides; then do it. `whole` is the frame, if kept."""
        while True:
            verdict, first = first, None
            if verdict is None:
                rule = next(rules, None)
                if rule is None:
                    self._conclude(way, message, Forward(), whole)
                    return
                verdict = self._ask(rule, message)
            if verdict is None or isinstance(verdict, Forward):
                continue
            if isinstance(verdict, Delay):
                stop = self._stop(way, lambda: self._judge(way, message, rules, whole))
                self._out.append(WakeUp(verdict.delay_ns, (way.side, stop)))
                return
            if isinstance(verdict, Throttle):
                message.rate = verdict.bytes_per_s
                continue
            if isinstance(verdict, Hold):
                self._hold(way, message, rules, whole, verdict)
                return
            if isinstance(verdict, Replace | Answer | Drop | Close):
                self._conclude(way, message, verdict, whole)
                return
            stop = self._stop(way, lambda: None)
            self._out.append(Ask(verdict, (way.side, stop, message, rules, whole)))
            return

    def _ask(self, rule: Rule, message: Message) -> Any:
        try:
            return rule.judge(message)
        except Exception as error:
            # A rule that fails must not take the traffic with it.
            self.hub.metrics.add("errors_total")
            self.hub.once(
                f"rule {rule.name}", f"rule {rule.name} fails, it is passed over: {error!r}"
            )
            return None

    def _hold(
        self, way: Way, message: Message, rules: Iterator[Rule], whole: bytes | None, hold: Hold
    ) -> None:
        stop = self._stop(way, lambda: self._judge(way, message, rules, whole), hold.forever)
        message.whole = whole
        stop.message = message
        if not hold.forever and self.hub.held is not None:
            stop.held = self.hub.held.add(self, way.side, stop, message)

    def _released(self, way: Way, message: Message | None, verdict: Verdict, go: Any) -> None:
        if message is None or isinstance(verdict, Forward):
            go()
            return
        self._conclude(way, message, verdict, message.whole)

    def _conclude(self, way: Way, message: Message, verdict: Verdict, whole: bytes | None) -> None:
        """Carry out what was decided about a frame."""
        if whole is None:
            self._conclude_head(way, message, verdict)
        elif way.side == CLIENT:
            self._conclude_request(way, message, verdict, whole)
        else:
            self._conclude_response(way, message, verdict, whole)

    def _conclude_head(self, way: Way, message: Message, verdict: Verdict) -> None:
        """The frame is not here yet: only its mode is decided."""
        way.rate = message.rate
        if isinstance(verdict, Drop):
            way.mode = DISCARD
            way.body = bytearray()
        elif isinstance(verdict, Close):
            self._close(way, verdict, b"")

    def _conclude_request(self, way: Way, message: Message, verdict: Verdict, whole: bytes) -> None:
        entry = message.entry
        expected, way.entry = way.entry is not None, None
        if isinstance(verdict, Answer):
            entry.comment = message.comment or "answered by kafkascope"
            if expected:
                self._answer(entry, verdict.payload)
            return
        if isinstance(verdict, Drop):
            return
        if isinstance(verdict, Close):
            self._close(way, verdict, whole)
            return
        frame = whole
        if isinstance(verdict, Replace):
            frame = _SIZE.pack(len(verdict.payload)) + verdict.payload
            if self.tap is not None:
                self.tap.broker(CLIENT, frame, self._now, message.comment or "replaced")
                entry.raw = b""
        if expected:
            self.waiting.add(entry)
        self._send(way, frame, message)

    def _conclude_response(
        self, way: Way, message: Message, verdict: Verdict, whole: bytes
    ) -> None:
        entry = message.entry
        original = message.original
        frame = whole
        if isinstance(verdict, Replace):
            frame = _SIZE.pack(len(verdict.payload)) + verdict.payload
        gone = isinstance(verdict, Drop | Close)
        if self.tap is not None and original is not None and (gone or frame != original):
            if entry.raw:
                self.tap.broker(CLIENT, entry.raw, self._now)
            self.tap.broker(BROKER, secrets.masked_response(entry, original), self._now)
        if isinstance(verdict, Drop):
            return
        if isinstance(verdict, Close):
            self._close(way, verdict, frame)
            return
        self._tap_frame(BROKER, entry, frame, message.comment)
        self._send(way, frame, message)

    def _send(self, way: Way, frame: bytes, message: Message) -> None:
        if not message.rate:
            self._out.append(Send(1 - way.side, frame))
            return
        # The frame is kept already; it goes in slices all the same.
        step = max(1, int(message.rate * SLICE_S))
        pieces = [frame[at : at + step] for at in range(0, len(frame), step)]

        def next_piece() -> None:
            piece = pieces.pop(0)
            self._out.append(Send(1 - way.side, piece))
            stop = self._stop(way, next_piece if pieces else lambda: None)
            self._out.append(WakeUp(int(len(piece) / message.rate * 1e9), (way.side, stop)))

        next_piece()

    def _close(self, way: Way, verdict: Close, frame: bytes) -> None:
        """End the connection in the way that the rule wants."""
        other = 1 - way.side
        if verdict.first and frame:
            part = frame[: verdict.first]
            self._out.append(Send(other, part))
            if way.side == BROKER and self.tap is not None:
                self.tap.client(BROKER, part, self._now, "cut by kafkascope")
        self.cause = self.cause or "rule"
        if verdict.how == "half":
            way.closing = True
            self._out.append(End(other, "half"))
            way.mode = DISCARD
            self._stop(way, lambda: None, forever=True)
            return
        self.over = True
        self._out += [End(CLIENT, verdict.how), End(BROKER, verdict.how)]

    # --- stops

    def _stop(self, way: Way, go: Any, forever: bool = False) -> Stop:
        stop = Stop(go, forever=forever)
        if way.stop is None:
            self._out.append(Read(way.side, False))
        way.stop = stop
        return stop

    def _pace(self, way: Way, sent: int) -> None:
        stop = self._stop(way, lambda: None)
        self._out.append(WakeUp(int(sent / way.rate * 1e9), (way.side, stop)))

    def _resume(self, way: Way) -> None:
        """Go on where the stop came."""
        stop = way.stop
        assert stop is not None
        way.stop = None
        stop.go()
        if way.stop is None and way.side == BROKER and way.left == 0 and way.entry is not None:
            self._through(way)
        while way.stop is None and way.backlog and not self.over:
            data = way.backlog.pop(0)
            rest, way.backlog = way.backlog, []
            self._walk(way, memoryview(data))
            way.backlog += rest
        if way.stop is None and not self.over:
            if way.eof:
                self._finish(way)
            self._out.append(Read(way.side, True))

    def _finish(self, way: Way) -> None:
        """A side is at its end: the other one hears of it."""
        if way.head:
            self._pass(way, memoryview(bytes(way.head)))
            way.head = bytearray()
        if way.mode in (COLLECT, TAIL) and way.body:
            self._pass(way, memoryview(bytes(way.body)))
            way.body = bytearray()
        if not way.closing:
            way.closing = True
            self._out.append(End(1 - way.side, "half"))

    # --- recording and remarks

    def _tap_frame(self, side: int, entry: Entry, frame: bytes, comment: str = "") -> None:
        if self.tap is None:
            return
        if self.hub.with_secrets:
            self.tap.client(side, frame, self._now, comment)
            return
        masked = secrets.masked_request if side == CLIENT else secrets.masked_response
        self.tap.client(side, masked(entry, frame), self._now, comment)

    def _undecoded(self, entry: Entry, why: str = "") -> None:
        api = APIS.get(entry.key)
        name = api.name if api is not None else str(entry.key)
        self.hub.metrics.add("undecoded_total", name)
        self.hub.once(
            f"undecoded {name} {entry.version}",
            f"{name} v{entry.version} from {self.broker} passes as it is, "
            f"addresses in it are not replaced: {why or 'it cannot be read'}",
        )


def _sane(view: memoryview, at: int) -> bool:
    """Whether a size at the start of a connection makes sense: TLS, HTTP and garbage have none."""
    first = view[at]
    if first in (0x14, 0x15, 0x16, 0x17) and view[at + 1] == 3:
        return False
    return first < 0x20
