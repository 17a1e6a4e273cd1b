"""The client's direction: which requests pass, which somebody has to see, SASL tokens."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.conversation.plausible import Verdict as Plausible
from kafkascope.analyzer.conversation.plausible import judge_request
from kafkascope.analyzer.conversation.sasl import is_token
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.relay import secrets
from kafkascope.proxy.relay.direction import COLLECT, HIDE, PASS, Direction
from kafkascope.proxy.relay.endpoints import WHOLE
from kafkascope.proxy.relay.execution import RuleExecution
from kafkascope.proxy.relay.heads import FIXED_BYTES, Head, read_head
from kafkascope.proxy.relay.pairing import SIZE, PendingRequest
from kafkascope.proxy.relay.state import API_VERSIONS, MAX_COLLECT, PRODUCE, SASL_HANDSHAKE, sane
from kafkascope.proxy.rules.actions import CLIENT, Data
from kafkascope.proxy.rules.intercepted import InterceptedFrame

if TYPE_CHECKING:
    from kafkascope.proxy.rules.rules import Chain, Rule

MAX_TOKEN: Final = 512 * 1024
"""Of a SASL token (sasl.server.max.receive.size)."""
LOOKED_AT: Final = 1024
"""Bytes of a frame that tell whether it has the form of a token."""
QUICK_BYTES: Final = 18
"""Bytes of a request that the quick way wants to see."""
QUICK: Final = frozenset(key for key in APIS if key not in (7, SASL_HANDSHAKE, API_VERSIONS))
"""APIs whose requests are nothing special while nobody records and no rule cares."""

_HEAD = struct.Struct(">ihhih")
_START = struct.Struct(">hh")


@cache
def recorded_as_they_are(rewritten: frozenset[int]) -> frozenset[int]:
    """APIs whose requests are nothing special while somebody records: no secrets, nothing to keep
    for the broker's leg."""
    return frozenset(
        key
        for key in QUICK - rewritten
        if not any(
            secrets.in_request(key, version)
            for version in range(APIS[key].versions.low, APIS[key].versions.high + 1)
        )
    )


class Requests(RuleExecution):
    """What comes from the client."""

    def _quick_requests(self, direction: Direction, data: Data, size: int) -> int:
        """Follow requests that are nothing special, as far as they go: the offset of the first that
        is, or of the end. The long way (`_walk`) would do the same with them."""
        at = direction.left
        count = self.hub.metrics.requests
        pairing = self.pairing
        now_ns = self._now
        hub, quick, chain = self.hub, QUICK, self.hub.chain
        edition, name_bytes = 0, b""
        if self.tap is not None:
            quick = recorded_as_they_are(WHOLE if hub.endpoints is not None else frozenset())
        if chain is not None:
            edition, client_id, name_bytes = self._quiet_for
            if edition != chain.edition or client_id is None:
                return 0
        while size - at >= QUICK_BYTES:
            length, key, version, correlation_id, name = _HEAD.unpack_from(data, at)
            if key not in quick:
                break
            if key == PRODUCE:
                # Flexible, without tags, without transaction, with an answer: else the long way.
                place = at + 14 + name
                if version < 9 or name < 0 or place + 4 > size:
                    break
                if data[place] or data[place + 1] or not (data[place + 2] or data[place + 3]):
                    break
            if name < -1 or not name + 10 <= length < 0x2000_0000:
                break
            if edition and (
                (key, version) not in self._quiet or data[at + 14 : at + 14 + name] != name_bytes
            ):
                break
            count[key] += 1
            request = PendingRequest(key, version, correlation_id, now_ns, length + 4)
            if edition:
                request.quiet = edition
            pairing.add(request)
            direction.size = length + 4
            at += length + 4
        return self._rest(direction, at, size)

    def _decide_request(self, direction: Direction, view: memoryview, at: int, end: int) -> int:
        if self._tokens or (direction.frames == 0 and end - at > 4 and view[at + 4] == 0x60):
            need = self._decide_token(direction, view, at, end)
            if need is not None:
                return need
        need = self._decide_unannounced(direction, view, at, end)
        if need is not None:
            return need
        if direction.frames == 0 and end - at >= 4 and not sane(view, at):
            return self._opaque(direction, view, at)
        try:
            head = read_head(view, at, end)
        except ValueError as error:
            return self._opaque(direction, view, at, f"no Kafka request: {error}")
        if isinstance(head, int):
            return head
        if head.key < 0 or head.version < 0:
            return self._opaque(
                direction, view, at, "no Kafka request: a negative API key or version"
            )
        self._request(direction, head)
        return 0

    def _request(self, direction: Direction, head: Head) -> None:
        """A request begins: pass it, or keep it when somebody has to see it."""
        hub = self.hub
        key, version = head.key, head.version
        hub.metrics.requests[key] += 1
        request = PendingRequest(key, version, head.correlation_id, self._now)
        request.client_id = self.client_id = head.client_id
        request.size = head.size + 4
        direction.request = request if head.answered else None
        self._frame(direction, head.size, PASS)
        if key == SASL_HANDSHAKE:
            self._tokens = version == 0
        tap = self.tap is not None
        if tap and direction.frames == 1 and head.client_id:
            self.note = f"client {head.client_id}"
        secret = tap and not hub.with_secrets and secrets.in_request(key, version)
        if (
            secret
            or (key == API_VERSIONS and hub.versions is not None and hub.versions.newer(version))
            or (tap and hub.endpoints is not None and hub.endpoints.whole(key))
        ):
            direction.mode = COLLECT
        rules: list[Rule] = []
        intercepted = None
        if hub.chain is not None:
            intercepted = InterceptedFrame(self, CLIENT, request, head.size, self._now)
            rules, whole = hub.chain.look(intercepted)
            self._learn_quiet(hub.chain, intercepted)
            if whole or hub.chain.responses(intercepted, tap) or (tap and rules):
                direction.mode = COLLECT  # the recording tells what was done to which request
        if direction.mode == COLLECT and head.size > MAX_COLLECT:
            hub.once(f"large {key}", f"a request of {head.size} bytes is too large to look at")
            direction.mode = HIDE if secret else PASS
            direction.shown = FIXED_BYTES + len(head.client_id or "")
        if direction.mode != COLLECT:
            self._expect(direction)
            if intercepted is not None and rules:
                self._judge(direction, intercepted, iter(rules), None)

    def _learn_quiet(self, chain: Chain, intercepted: InterceptedFrame) -> None:
        """Remember requests that no rule cares for: the next ones like this need not be asked."""
        edition, client_id, _ = self._quiet_for
        if edition != chain.edition or client_id != intercepted.client_id:
            name = intercepted.client_id
            self._quiet_for = chain.edition, name, (name or "").encode()
            self._quiet.clear()
        if chain.quiet(intercepted):
            intercepted.pending.quiet = chain.edition
            self._quiet.add((intercepted.key, intercepted.version))

    def _whole_request(self, direction: Direction, frame: bytes) -> None:
        """A request that was kept is here."""
        hub = self.hub
        request, direction.request = direction.request, None
        answered = request is not None
        if request is None:  # acks=0
            head = read_head(frame, 0, len(frame))
            assert isinstance(head, Head)
            request = PendingRequest(head.key, head.version, head.correlation_id, self._now)
            request.client_id = head.client_id
        if self.tap is not None and hub.endpoints is not None and hub.endpoints.holds(request.key):
            request.raw = frame
        if request.key == API_VERSIONS and hub.versions is not None:
            answer = hub.versions.refusal(request.version, request.correlation_id)
            if answer is not None:
                self._tap_frame(CLIENT, request, frame)
                request.comment = (
                    "answered by kafkascope: a version that it does not know (KIP-511)"
                )
                self._answer(request, answer)
                return
        intercepted = InterceptedFrame(self, CLIENT, request, len(frame) - 4, self._now, frame[4:])
        intercepted.unrecorded = frame
        rules: list[Rule] = []
        if hub.chain is not None:
            rules, _ = hub.chain.look(intercepted)
            if hub.chain.responses(intercepted, self.tap is not None):
                request.payload = frame[4:]
                if self.tap is not None:
                    request.raw = frame
        if answered:
            direction.request = request
        self._judge(direction, intercepted, iter(rules), frame)

    def _decide_token(
        self, direction: Direction, view: memoryview, at: int, end: int
    ) -> int | None:
        """None: it is a request after all."""
        if end - at < 4:
            return 4
        (size,) = SIZE.unpack_from(view, at)
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
        self._token(direction, size)
        return 0

    def _decide_unannounced(
        self, direction: Direction, view: memoryview, at: int, end: int
    ) -> int | None:
        """Whether a frame that is no request of a known API is a token by its form, of a client
        that sends it without a handshake. None: it is not."""
        if end - at < 4:
            return None
        (size,) = SIZE.unpack_from(view, at)
        if not 0 < size <= MAX_TOKEN:
            return None
        need: int = min(size + 4, 8)
        if end - at >= need == 8:
            key, version = _START.unpack_from(view, at + 4)
            if key in APIS and version in APIS[key].versions:
                return None
            need = min(size + 4, LOOKED_AT)
        if end - at < need:
            return need
        if not is_token(bytes(view[at + 4 : at + need])):
            return None
        self._token(direction, size)
        return 0

    def _token(self, direction: Direction, size: int) -> None:
        """A token begins: it is kept, for the recording does not show it."""
        self._tokens = True
        request = PendingRequest(-1, 0, 0, self._now)
        request.token = True
        self._frame(direction, size, COLLECT)
        direction.request = request
