"""The broker's direction: which responses pass, which hold addresses, versions or secrets."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.relay import secrets
from kafkascope.proxy.relay.entries import SIZE, Entry
from kafkascope.proxy.relay.judging import Judging
from kafkascope.proxy.relay.requests import MAX_TOKEN
from kafkascope.proxy.relay.skipping import Unwalkable, Walk
from kafkascope.proxy.relay.state import API_VERSIONS, MAX_COLLECT, sane
from kafkascope.proxy.relay.way import COLLECT, HIDE, PASS, TAIL, WALK, Way
from kafkascope.proxy.rules.actions import BROKER, CLIENT, Data, Send
from kafkascope.proxy.rules.message import Message
from kafkascope.proxy.rules.verdicts import Close

if TYPE_CHECKING:
    from kafkascope.proxy.rules.rules import Rule

SMALL: Final = 32 * 1024
"""Responses up to this size are kept whole where node endpoints may be in them."""

_SIZE_AND_ID = struct.Struct(">ii")


class Responses(Judging):
    """What comes from the broker."""

    def _quick_responses(self, way: Way, data: Data, size: int) -> int:
        """As `_quick_requests`, for responses that nobody has to look into."""
        at = way.left
        if at:
            self._through(way)
        waiting = self.waiting
        answered = self.hub.metrics.answered
        rewriter = self.hub.rewriter
        edition = self.hub.chain.edition if self.hub.chain is not None else 0
        secret = self.tap is not None and not self.hub.with_secrets
        while size - at >= 8:
            length, correlation_id = _SIZE_AND_ID.unpack_from(data, at)
            entry = waiting.front()
            if entry is None or entry.correlation_id != correlation_id or entry.token:
                break
            key = entry.key
            if key == API_VERSIONS or length < 4 or (edition and entry.quiet != edition):
                break
            if secret and secrets.in_response(key, entry.version):
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
                way.size = length + 4
            else:
                waiting.pop()
        return self._rest(way, at, size)

    def _decide_response(self, way: Way, view: memoryview, at: int, end: int) -> int:
        have = end - at
        if have < 4:
            return 8
        front = self.waiting.front()
        if front is not None and front.token:
            (size,) = SIZE.unpack_from(view, at)
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
            (size,) = SIZE.unpack_from(view, at)
            return self._opaque(way, view, at) if size < 4 else 8
        size, correlation_id = _SIZE_AND_ID.unpack_from(view, at)
        if size < 4 or (way.frames == 0 and not sane(view, at)):
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
            if whole or (rules and self.tap is not None):
                way.mode = COLLECT
        if way.mode == COLLECT and size > MAX_COLLECT:
            self.hub.once(
                f"large answer {entry.key}", f"a response of {size} bytes is too large to change"
            )
            way.mode = HIDE if self._secret(entry) else PASS
            way.shown = _SIZE_AND_ID.size
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
        if self._secret(entry):
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

    def _secret(self, entry: Entry) -> bool:
        """Whether a response has to be masked for the recording."""
        if self.tap is None or self.hub.with_secrets:
            return False
        return secrets.in_response(entry.key, entry.version)

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
                self._no_listener(way, error)
                return
        message = Message(self, BROKER, entry, len(sent) - 4, self._now, sent[4:])
        message.comment = comment
        message.original = frame
        rules: list[Rule] = []
        if self.hub.chain is not None:
            rules, _ = self.hub.chain.look(message)
        self._judge(way, message, iter(rules), sent)

    def _no_listener(self, way: Way, error: OSError) -> None:
        """Better no answer than one that leads the client past us."""
        self.cause = "no listener"
        self.hub.once(f"listen {error}", f"cannot listen for a broker: {error}")
        self._close(way, Close("reset"))

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
            except OSError as error:
                self._no_listener(way, error)
                return
        self._out.append(Send(CLIENT, tail))
        if self.tap is not None:
            self.tap.client(BROKER, tail, self._now, comment)
