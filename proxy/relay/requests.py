"""The client's direction: decides which requests pass and which are kept; knows SASL tokens."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from kafkascope.analyzer.conversation.plausible import Plausibility as Plausible
from kafkascope.analyzer.conversation.plausible import judge_request
from kafkascope.analyzer.conversation.sasl import is_token
from kafkascope.analyzer.transform import secrets
from kafkascope.captures.signatures import HEAD, protocol_of
from kafkascope.dissectors.registry import API_VERSIONS, APIS
from kafkascope.proxy.hub import Rules
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.direction import Direction, FrameHandler
from kafkascope.proxy.relay.endpoints import ENDPOINTS, WHOLE
from kafkascope.proxy.relay.execution import RuleExecution
from kafkascope.proxy.relay.modes import COLLECT, Event
from kafkascope.proxy.relay.pairing import (
    FIXED_BYTES,
    PRODUCE,
    SIZE,
    Head,
    Pairing,
    PendingRequest,
    read_head,
    sane,
    token_request,
)
from kafkascope.proxy.relay.taps import TapWriter
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.rules import Rule
from kafkascope.proxy.rules.verdicts import (
    BROKER,
    CLIENT,
    Close,
    Data,
    Drop,
    Replace,
    Respond,
    Send,
    Verdict,
)

SASL_HANDSHAKE: Final = 17
# Bytes of a frame that tell whether it has the form of a token.
LOOKED_AT: Final = 1024
# Bytes of a request that `forward_whole_frames` wants to see.
SKIMMED_BYTES: Final = 18
# APIs whose requests are nothing special while nobody records and no rule cares.
SKIMMED: Final = frozenset(key for key in APIS if key not in (7, SASL_HANDSHAKE, API_VERSIONS))
# Versions of Produce; `Versions` itself would be slow here.
FLEXIBLE_PRODUCE: Final = range(APIS[PRODUCE].flexible.low, APIS[PRODUCE].flexible.high + 1)

# Bytes of the first frame of a client of ZooKeeper, with a password of 16 and since 3.4 whether a
# server that only reads will do. A Produce is never so long with these bytes.
ZOOKEEPER_HANDSHAKES: Final = (44, 45)

_HEAD = struct.Struct(">ihhih")
_START = struct.Struct(">hh")
_SIZE_AND_KEY = struct.Struct(">ih")


@cache
def recorded_as_they_are(rewritten: frozenset[int]) -> frozenset[int]:
    """APIs whose requests need no attention while a recording runs: they hold no secrets, and the
    broker's leg does not need them."""
    return frozenset(
        key
        for key in SKIMMED - rewritten
        if not any(
            secrets.in_request(key, version)
            for version in range(APIS[key].versions.low, APIS[key].versions.high + 1)
        )
    )


def _is_foreign(head: bytes) -> bool:
    """Return whether the first bytes of a client, with a size that a request could have, are no
    request but another protocol: PostgreSQL, MQTT, SMB."""
    return judge_request(head, 0, known_versions=False) is Plausible.NO and bool(
        protocol_of(head, "client")
    )


@dataclass(slots=True)
class UninterestingHeads:
    """Heads of requests that no rule cares for, while the rules and the client id stay the same.
    Further requests like these are not looked at."""

    edition: int = 0
    """Edition of the rules."""
    client_id: str | None = None
    name: bytes = b""
    """The client's id as it is on the wire."""
    heads: set[tuple[int, int]] = field(default_factory=set)
    """API keys and versions."""

    def learn(self, chain: Rules, frame: InterceptedFrame) -> None:
        """Ask the rules whether they care for requests like this one."""
        if self.edition != chain.edition or self.client_id != frame.client_id:
            self.edition, self.client_id = chain.edition, frame.client_id
            self.name = (frame.client_id or "").encode()
            self.heads.clear()
        if chain.quiet(frame):
            frame.pending.quiet = chain.edition
            if len(self.heads) >= frame.context.hub.limits.quiet_heads:
                self.heads.clear()
            self.heads.add((frame.key, frame.version))


@dataclass(slots=True, eq=False)
class Requests(FrameHandler):
    """Decides about the frames of the client."""

    context: Context
    taps: TapWriter
    pairing: Pairing
    rules: RuleExecution
    flush: Callable[[], None]
    """Sends responses of our own whose turn has come."""
    quiet: UninterestingHeads = field(default_factory=UninterestingHeads)
    tokens: bool = False
    """SASL tokens may come, which have no header."""
    direction: Direction = field(init=False)

    def __post_init__(self) -> None:
        self.direction = Direction(self.context, CLIENT, self.taps, self.pairing, self)

    def forward_whole_frames(self, data: Data, size: int) -> int:
        direction = self.direction
        at = direction.left
        context, pairing = self.context, self.pairing
        if (
            not direction.frames
            or direction.head
            or direction.rate
            or context.opaque
            or self.tokens
            or pairing.own
        ):
            return 0
        hub = context.hub
        count = hub.metrics.requests
        now_ns = context.now_ns
        pending = pairing.requests
        keys, chain, quiet = SKIMMED, hub.chain, self.quiet
        edition, name_bytes = 0, b""
        if context.tap is not None:
            keys = recorded_as_they_are(WHOLE if hub.endpoints is not None else frozenset())
        if chain is not None:
            edition, name_bytes = quiet.edition, quiet.name
            if edition != chain.edition or quiet.client_id is None:
                return 0
        while size - at >= SKIMMED_BYTES:
            length, key, version, correlation_id, name = _HEAD.unpack_from(data, at)
            if key not in keys:
                break
            if key == PRODUCE:
                # Flexible, without tags, without transaction, with a response: else `decide`.
                place = at + 14 + name
                if version not in FLEXIBLE_PRODUCE or name < 0 or place + 4 > size:
                    break
                if data[place] or data[place + 1] or not (data[place + 2] or data[place + 3]):
                    break
            if name < -1 or not name + 10 <= length < 0x2000_0000:
                break
            if edition and (
                (key, version) not in quiet.heads or data[at + 14 : at + 14 + name] != name_bytes
            ):
                break
            count[key] += 1
            request = PendingRequest(key, version, correlation_id, now_ns, length + 4)
            if edition:
                request.quiet = edition
            pending.append(request)
            direction.size = length + 4
            at += length + 4
        return direction.rest(at, size)

    def decide(self, view: memoryview, at: int, end: int) -> int:
        direction = self.direction
        if direction.frames == 0 and end - at >= _SIZE_AND_KEY.size:
            need = self._decide_zookeeper(view, at, end)
            if need is not None:
                return need
        if self.tokens or (direction.frames == 0 and end - at > 4 and view[at + 4] == 0x60):
            need = self._decide_token(view, at, end)
            if need is not None:
                return need
        if direction.frames == 0 and (
            (end - at >= 4 and not sane(view, at))
            or _is_foreign(bytes(view[at : min(end, at + HEAD)]))
        ):
            return direction.fall_back_to_passthrough(view, at)
        need = self._decide_unannounced(view, at, end)
        if need is not None:
            return need
        try:
            head = read_head(view, at, end)
        except ValueError as error:
            return direction.fall_back_to_passthrough(view, at, f"not a Kafka request: {error}")
        if isinstance(head, int):
            return head
        if head.key < 0 or head.version < 0:
            what = "not a Kafka request: a negative API key or version"
            return direction.fall_back_to_passthrough(view, at, what)
        self._begin_request(head)
        return 0

    def _begin_request(self, head: Head) -> None:
        direction = self.direction
        context, hub = self.context, self.context.hub
        key, version = head.key, head.version
        hub.metrics.requested(key)
        request = PendingRequest(key, version, head.correlation_id, context.now_ns, head.size + 4)
        if head.client_id != context.client_id:
            context.client_id = head.client_id  # the same text for all requests that wait
        request.client_id = context.client_id
        direction.request = request if head.answered else None
        direction.begin(head.size)
        if key == SASL_HANDSHAKE:
            self.tokens = version == 0
        tap = context.tap is not None
        if tap and direction.frames == 1 and head.client_id:
            self.taps.note = f"client {head.client_id}"
        secret = tap and not hub.with_secrets and secrets.in_request(key, version)
        if (
            secret
            or (key == API_VERSIONS and hub.versions is not None and hub.versions.newer(version))
            or (tap and hub.endpoints is not None and key in WHOLE)
        ):
            direction.switch(Event.NEEDED)
        rules: list[Rule] = []
        frame = None
        if hub.chain is not None:
            frame = InterceptedFrame(context, CLIENT, request, head.size, context.now_ns)
            rules, whole = hub.chain.look(frame)
            self.quiet.learn(hub.chain, frame)
            if whole or hub.chain.responses(frame, tap) or (tap and rules):
                direction.switch(Event.NEEDED)  # the recording tells what was done to which request
        if direction.mode is COLLECT and head.size > hub.limits.frame_bytes:
            hub.once(f"large {key}", f"a request of {head.size} bytes is too large to inspect")
            direction.switch(Event.TOO_LARGE_FOR_A_SECRET if secret else Event.TOO_LARGE)
            direction.shown = FIXED_BYTES + len(head.client_id or "")
        if direction.mode is not COLLECT:
            self._expect()
            if frame is not None and rules:
                self.rules.run(direction, frame, iter(rules))

    def _expect(self) -> None:
        direction = self.direction
        if direction.request is not None:
            self.pairing.add(direction.request)
            direction.request = None

    def on_frame(self, data: bytes) -> None:
        direction = self.direction
        context, hub = self.context, self.context.hub
        request, direction.request = direction.request, None
        if request is not None and request.token:
            self.taps.frame(CLIENT, request, data)
            context.out.append(Send(BROKER, data))
            self.pairing.add(request)
            return
        answered = request is not None
        if request is None:  # acks=0
            head = read_head(data, 0, len(data))
            assert isinstance(head, Head)
            request = PendingRequest(head.key, head.version, head.correlation_id, context.now_ns)
            request.client_id = head.client_id
        if context.tap is not None and hub.endpoints is not None and request.key in ENDPOINTS:
            request.raw = data
        if request.key == API_VERSIONS and hub.versions is not None:
            refusal = hub.versions.refusal(request.version, request.correlation_id)
            if refusal is not None:
                self.taps.frame(CLIENT, request, data)
                request.comment = "answered by kafkascope: an unsupported version (KIP-511)"
                self._respond(request, refusal)
                return
        frame = InterceptedFrame(context, CLIENT, request, len(data) - 4, context.now_ns, data)
        frame.unrecorded = data
        rules: list[Rule] = []
        if hub.chain is not None:
            rules, _ = hub.chain.look(frame)
            if hub.chain.responses(frame, context.tap is not None):
                request.payload = frame.payload
                if context.tap is not None:
                    request.raw = data
        if answered:
            direction.request = request
        self.rules.run(direction, frame, iter(rules))

    def conclude_kept(self, frame: InterceptedFrame, verdict: Verdict, whole: bytes) -> None:
        direction = self.direction
        request = frame.pending
        answered, direction.request = direction.request is not None, None
        match verdict:
            case Respond(payload):
                request.comment = frame.comment
                if answered:
                    self._respond(request, payload)
                return
            case Drop():
                return
            case Close():
                self.rules.close(direction, verdict, whole)
                return
            case Replace(payload):
                whole = SIZE.pack(len(payload)) + payload
                self.taps.replaced(frame, whole)
        if answered:
            self.pairing.add(request)
        self.rules.send(direction, frame, whole)

    def _respond(self, request: PendingRequest, payload: bytes) -> None:
        self.pairing.respond(request, payload)
        self.context.hub.grew(len(payload))
        self.flush()

    # --- SASL tokens

    def unread(self) -> PendingRequest:
        return token_request(self.context.now_ns, token=self.tokens)

    def _decide_token(self, view: memoryview, at: int, end: int) -> int | None:
        """Decide about a frame after a SASL handshake. None: it is a request after all."""
        if end - at < 4:
            return 4
        (size,) = SIZE.unpack_from(view, at)
        if not 0 <= size <= self.context.hub.limits.token_bytes:
            self.tokens = False
            return None
        need: int = min(size + 4, 16)
        if end - at < need:
            return need
        if size >= 10 and self.tokens:
            data = bytes(view[at : min(end, at + 16 + 1024)])
            if judge_request(data, 0) in (Plausible.MAYBE, Plausible.MORE):
                self.tokens = False
                return None
        self._token(size)
        return 0

    def _decide_zookeeper(self, view: memoryview, at: int, end: int) -> int | None:
        """Decide about what may be the first frame of a client of ZooKeeper. None: it is not.
        Those after it would look like Kafka's: a number that grows, then the type."""
        size, key = _SIZE_AND_KEY.unpack_from(view, at)
        if key != PRODUCE or size not in ZOOKEEPER_HANDSHAKES:
            return None
        need: int = size + 4
        if end - at < need:
            return need
        from kafkascope.dissectors.zookeeper.frames import is_handshake

        if not is_handshake(bytes(view[at + 4 : at + need])):
            return None
        return self.direction.fall_back_to_passthrough(view, at, "ZooKeeper, not Kafka")

    def _decide_unannounced(self, view: memoryview, at: int, end: int) -> int | None:
        """Decide whether a frame that is no request of a known API looks like a token of a client
        that sends it without a handshake. None: it does not."""
        if end - at < 4:
            return None
        (size,) = SIZE.unpack_from(view, at)
        if not 0 < size <= self.context.hub.limits.token_bytes:
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
        self._token(size)
        return 0

    def _token(self, size: int) -> None:
        """Begin a token. It is kept, because the recording must not show it."""
        direction = self.direction
        self.tokens = True
        direction.begin(size)
        direction.switch(Event.NEEDED)
        direction.request = token_request(self.context.now_ns)
