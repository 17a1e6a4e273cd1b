"""The broker's direction: which responses pass, which hold addresses, versions or secrets."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.relay import secrets
from kafkascope.proxy.relay.direction import COLLECT, HIDE, PASS, TAIL, WALK, Direction
from kafkascope.proxy.relay.execution import RuleExecution
from kafkascope.proxy.relay.pairing import SIZE, PendingRequest
from kafkascope.proxy.relay.requests import MAX_TOKEN
from kafkascope.proxy.relay.skipping import Unwalkable, Walk
from kafkascope.proxy.relay.state import API_VERSIONS, MAX_COLLECT, sane
from kafkascope.proxy.rules.actions import BROKER, CLIENT, Data, Send
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import Close

if TYPE_CHECKING:
    from kafkascope.proxy.rules.rules import Rule

SMALL: Final = 32 * 1024
"""Responses up to this size are kept whole where node endpoints may be in them."""

_SIZE_AND_ID = struct.Struct(">ii")


class Responses(RuleExecution):
    """What comes from the broker."""

    def _quick_responses(self, direction: Direction, data: Data, size: int) -> int:
        """As `_quick_requests`, for responses that nobody has to look into."""
        at = direction.left
        if at:
            self._through(direction)
        pairing = self.pairing
        answered = self.hub.metrics.answered
        endpoints = self.hub.endpoints
        edition = self.hub.chain.edition if self.hub.chain is not None else 0
        secret = self.tap is not None and not self.hub.with_secrets
        while size - at >= 8:
            length, correlation_id = _SIZE_AND_ID.unpack_from(data, at)
            request = pairing.front()
            if request is None or request.correlation_id != correlation_id or request.token:
                break
            key = request.key
            if key == API_VERSIONS or length < 4 or (edition and request.quiet != edition):
                break
            if secret and secrets.in_response(key, request.version):
                break
            if endpoints is not None and endpoints.holds(key):
                steps = endpoints.walk(key, request.version)
                if steps is None:
                    if endpoints.whole(key) or request.version > APIS[key].versions.high:
                        break
                elif at + length + 4 > size or not endpoints.empty(
                    key, steps, data[at + 4 : at + 4 + length]
                ):
                    break
            answered(key, self._now - request.time_ns)
            at += length + 4
            if at > size:
                direction.request = request
                direction.size = length + 4
            else:
                pairing.pop()
        return self._rest(direction, at, size)

    def _decide_response(self, direction: Direction, view: memoryview, at: int, end: int) -> int:
        have = end - at
        if have < 4:
            return 8
        front = self.pairing.front()
        if front is not None and front.token:
            (size,) = SIZE.unpack_from(view, at)
            if size >= 4 and have < 8:
                return 8
            # The last token of an exchange need not be answered: what comes may be the answer to
            # the request after it.
            known = size >= 4 and self.pairing.knows(_SIZE_AND_ID.unpack_from(view, at)[1])
            if 0 <= size <= MAX_TOKEN and not known:
                direction.request = front
                self._frame(direction, size, COLLECT)
                return 0
        if have < 8:
            (size,) = SIZE.unpack_from(view, at)
            return self._opaque(direction, view, at) if size < 4 else 8
        size, correlation_id = _SIZE_AND_ID.unpack_from(view, at)
        if size < 4 or (direction.frames == 0 and not sane(view, at)):
            return self._opaque(direction, view, at)
        request = self._asked(correlation_id)
        direction.request = request
        self._frame(direction, size, PASS)
        if request is None:
            self.hub.metrics.add("unmatched_total")
            return 0
        self.hub.metrics.answered(request.key, self._now - request.time_ns)
        self._look_into(direction, request, view, at, end)
        rules: list[Rule] = []
        intercepted = None
        if self.hub.chain is not None:
            intercepted = InterceptedFrame(self, BROKER, request, size, self._now)
            rules, whole = self.hub.chain.look(intercepted)
            if whole or (rules and self.tap is not None):
                direction.mode = COLLECT
        if direction.mode == COLLECT and size > MAX_COLLECT:
            self.hub.once(
                f"large answer {request.key}", f"a response of {size} bytes is too large to change"
            )
            direction.mode = HIDE if self._secret(request) else PASS
            direction.shown = _SIZE_AND_ID.size
        if direction.mode != COLLECT and intercepted is not None and rules:
            self._judge(direction, intercepted, iter(rules), None)
        return 0

    def _asked(self, correlation_id: int) -> PendingRequest | None:
        """The request that a response answers; those before it get no answer any more."""
        pairing = self.pairing
        front = pairing.front()
        if front is not None and front.correlation_id == correlation_id and not front.token:
            return front
        if not pairing.knows(correlation_id):
            return None
        while (front := pairing.front()) is not None:
            if front.response is not None:
                self._flush()
            elif front.correlation_id == correlation_id:
                return front
            else:
                pairing.pop()
        return None

    def _look_into(
        self, direction: Direction, request: PendingRequest, view: memoryview, at: int, end: int
    ) -> None:
        """Whether addresses, versions or secrets may be in a response."""
        endpoints = self.hub.endpoints
        key, version = request.key, request.version
        if direction.mode == COLLECT:
            return
        if self._secret(request):
            direction.mode = COLLECT
            return
        if endpoints is None:
            return
        if endpoints.whole(key) or (key == API_VERSIONS and self.hub.versions is not None):
            direction.mode = COLLECT
            return
        steps = endpoints.walk(key, version)
        if steps is None:
            return
        walk = Walk(steps)
        size = direction.size
        try:
            if end - at >= size:
                tail = walk.feed(view[at + 4 : at + size])
                if tail is None or tail >= size - 4:
                    raise Unwalkable("the response ends early")
                if endpoints.filled(key, view[at + 4 + tail]):
                    direction.mode = COLLECT
            elif size <= SMALL:
                direction.mode = COLLECT
            else:
                direction.mode = WALK
                direction.walk = walk
                direction.tail_at = -4  # the walk starts behind the size field
        except Unwalkable:
            self._undecoded(request)

    def _secret(self, request: PendingRequest) -> bool:
        """Whether a response has to be masked for the recording."""
        if self.tap is None or self.hub.with_secrets:
            return False
        return secrets.in_response(request.key, request.version)

    def _look(self, direction: Direction, piece: memoryview) -> int | None:
        """Walk on; where the tagged section starts in the piece, when it does."""
        skip = 0
        if direction.tail_at < 0:
            skip = min(-direction.tail_at, len(piece))
            direction.tail_at += skip
            if skip == len(piece):
                return None
        assert direction.walk is not None
        try:
            found = direction.walk.feed(piece[skip:])
        except Unwalkable:
            found = None
            direction.mode = PASS
            if direction.request is not None:
                self._undecoded(direction.request)
        if found is None:
            return None
        at = found + skip
        if at > direction.left:
            direction.mode = PASS
            return None
        direction.mode = PASS if direction.left - at <= 1 else TAIL
        direction.walk = None
        return at

    def _whole_response(self, direction: Direction, frame: bytes) -> None:
        """A response that was kept is here: addresses, versions, then the rules."""
        request = direction.request
        assert request is not None
        if request.token:
            self._tap_frame(BROKER, request, frame)
            self._out.append(Send(CLIENT, frame))
            return
        comment = ""
        sent = frame
        try:
            if request.key == API_VERSIONS and self.hub.versions is not None:
                sent, comment = self.hub.versions.response(self, request.version, frame)
            elif self.hub.endpoints is not None:
                sent, comment = self.hub.endpoints.response(self, request, frame)
        except DissectError as error:
            self._undecoded(request, str(error))
        except OSError as error:
            self._no_listener(direction, error)
            return
        intercepted = InterceptedFrame(self, BROKER, request, len(sent) - 4, self._now, sent[4:])
        intercepted.comment = comment
        intercepted.original = frame
        rules: list[Rule] = []
        if self.hub.chain is not None:
            rules, _ = self.hub.chain.look(intercepted)
        self._judge(direction, intercepted, iter(rules), sent)

    def _no_listener(self, direction: Direction, error: OSError) -> None:
        """Better no answer than one that leads the client past us."""
        self.cause = "no listener"
        self.hub.once(f"listen {error}", f"cannot listen for a broker: {error}")
        self._close(direction, Close("reset"))

    def _tail(self, direction: Direction) -> None:
        """The tagged section of a response whose head is gone: its length must not change."""
        request, tail = direction.request, bytes(direction.body)
        direction.body = bytearray()
        assert request is not None
        comment = ""
        if self.hub.endpoints is not None:
            try:
                tail, comment = self.hub.endpoints.tail(self, request, tail)
            except DissectError as error:
                self._undecoded(request, str(error))
            except OSError as error:
                self._no_listener(direction, error)
                return
        self._out.append(Send(CLIENT, tail))
        if self.tap is not None:
            self.tap.client(BROKER, tail, self._now, comment)
