"""The broker's direction: decides which responses pass and which hold addresses, versions or
secrets."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from kafkascope.analyzer.transform import secrets
from kafkascope.captures.signatures import HEAD, protocol_of
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import API_VERSIONS, APIS
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.direction import Direction, FrameHandler
from kafkascope.proxy.relay.endpoints import WHOLE, empty, filled, walk_of
from kafkascope.proxy.relay.execution import RuleExecution
from kafkascope.proxy.relay.modes import COLLECT, Event
from kafkascope.proxy.relay.pairing import SIZE, Pairing, PendingRequest, sane, token_request
from kafkascope.proxy.relay.skipping import Unwalkable, Walk
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
    Send,
    Verdict,
)

# Responses up to this size are kept whole where node endpoints may be in them.
SMALL: Final = 32 * 1024

_SIZE_AND_ID = struct.Struct(">ii")


def _secret(request: PendingRequest, data: Data, at: int, end: int, size: int) -> bool | None:
    """Whether a response, which begins at `at`, may hold a secret; None: more of its bytes tell."""
    key = request.key
    if not secrets.reads_metadata_log(key):
        return secrets.in_response(key, request.version)
    need = min(size + 4, secrets.TOLD_BY)
    if end - at < need:
        return None
    return secrets.of_metadata_log(bytes(data[at : at + need]))


@dataclass(slots=True, eq=False)
class Responses(FrameHandler):
    """Decides about the frames of the broker."""

    context: Context
    taps: TapWriter
    pairing: Pairing
    rules: RuleExecution
    walk: Walk | None = None
    """The way through a response in mode WALK."""
    tail_at: int = 0
    direction: Direction = field(init=False)

    def __post_init__(self) -> None:
        self.direction = Direction(self.context, BROKER, self.taps, self.pairing, self)

    def forward_whole_frames(self, data: Data, size: int) -> int:
        direction = self.direction
        at = direction.left
        context, pairing = self.context, self.pairing
        if (
            not direction.frames
            or direction.head
            or direction.rate
            or context.opaque
            or pairing.own
        ):
            return 0
        if at:
            self.on_end()
        hub = context.hub
        now_ns = context.now_ns
        metrics, requests = hub.metrics, pairing.requests
        endpoints = hub.endpoints
        edition = hub.chain.edition if hub.chain is not None else 0
        masks = self._masks
        while size - at >= 8:
            length, correlation_id = _SIZE_AND_ID.unpack_from(data, at)
            if not requests:
                break
            request = requests[0]
            if request.correlation_id != correlation_id or request.token:
                break
            key = request.key
            if key == API_VERSIONS or length < 4 or (edition and request.quiet != edition):
                break
            if masks and _secret(request, data, at, size, length) is not False:
                break
            if endpoints is not None:
                steps = walk_of(key, request.version)
                if steps is None:
                    break
                if steps and (
                    at + length + 4 > size or not empty(key, steps, data[at + 4 : at + 4 + length])
                ):
                    break
            metrics.answers.append((key, now_ns - request.time_ns))
            at += length + 4
            if at > size:
                direction.request = request
                direction.size = length + 4
            else:
                requests.popleft()
        if len(metrics.answers) >= metrics.many:
            metrics.count()
        return direction.rest(at, size)

    def decide(self, view: memoryview, at: int, end: int) -> int:
        direction = self.direction
        have = end - at
        if have < 4:
            return 8
        pairing = self.pairing
        front = pairing.front()
        if front is not None and front.token:
            (size,) = SIZE.unpack_from(view, at)
            if size >= 4 and have < 8:
                return 8
            # The last token of an exchange need not be answered: what comes may be the response to
            # the request after it.
            known = size >= 4 and pairing.knows(_SIZE_AND_ID.unpack_from(view, at)[1])
            if 0 <= size <= self.context.hub.limits.token_bytes and not known:
                direction.request = front
                direction.begin(size)
                direction.switch(Event.NEEDED)
                return 0
        (size,) = SIZE.unpack_from(view, at)
        if size < 4 or (direction.frames == 0 and not sane(view, at)):
            return direction.fall_back_to_passthrough(view, at)
        if have < 8:
            return 8
        size, correlation_id = _SIZE_AND_ID.unpack_from(view, at)
        # The first frames of HTTP/2 have a size that a response could have.
        unasked = direction.frames == 0 and not pairing.knows(correlation_id)
        if unasked and protocol_of(bytes(view[at : min(end, at + HEAD)]), "server"):
            return direction.fall_back_to_passthrough(view, at)
        direction.request = request = self._requested(correlation_id)
        secret: bool | None = False
        if request is not None and self._masks:
            secret = _secret(request, view, at, end, size)
        if secret is None:
            return int(min(size + 4, secrets.TOLD_BY))
        direction.begin(size)
        metrics = self.context.hub.metrics
        if request is None:
            metrics.add("unmatched_total")
            return 0
        metrics.answered(request.key, self.context.now_ns - request.time_ns)
        if secret:
            direction.switch(Event.NEEDED)
        else:
            self._look_into(request, view, at, end)
        self._ask_rules(request, size, secret)
        return 0

    def _requested(self, correlation_id: int) -> PendingRequest | None:
        pairing = self.pairing
        front = pairing.front()
        if front is not None and front.correlation_id == correlation_id and not front.token:
            return front
        if not pairing.knows(correlation_id):
            return None
        for own in pairing.skip_to(correlation_id):
            self._send_own(own)
        return pairing.front()

    def _look_into(self, request: PendingRequest, view: memoryview, at: int, end: int) -> None:
        direction = self.direction
        hub, endpoints = self.context.hub, self.context.hub.endpoints
        key, version = request.key, request.version
        if endpoints is None:
            return
        if key in WHOLE or (key == API_VERSIONS and hub.versions is not None):
            direction.switch(Event.NEEDED)
            return
        steps = walk_of(key, version)
        if not steps:
            return
        walk = Walk(steps)
        size = direction.size
        try:
            if end - at >= size:
                tail = walk.feed(view[at + 4 : at + size])
                if tail is None or tail >= size - 4:
                    raise Unwalkable("the response ends early")
                if filled(key, view[at + 4 + tail]):
                    direction.switch(Event.NEEDED)
            elif size <= SMALL:
                direction.switch(Event.NEEDED)
            else:
                direction.switch(Event.ENDPOINTS_BEHIND)
                self.walk = walk
                self.tail_at = -4  # the walk starts after the size field
        except Unwalkable:
            self._undecoded(request)

    def _ask_rules(self, request: PendingRequest, size: int, secret: bool) -> None:
        """Keep a response that rules have to see; ask those that only want its head."""
        direction = self.direction
        context, hub = self.context, self.context.hub
        rules: list[Rule] = []
        frame = None
        if hub.chain is not None:
            frame = InterceptedFrame(context, BROKER, request, size, context.now_ns)
            rules, whole = hub.chain.look(frame)
            if whole or (rules and context.tap is not None):
                direction.switch(Event.NEEDED)
        if direction.mode is COLLECT and size > hub.limits.frame_bytes:
            hub.once(
                f"large answer {request.key}", f"a response of {size} bytes is too large to change"
            )
            direction.switch(Event.TOO_LARGE_FOR_A_SECRET if secret else Event.TOO_LARGE)
            direction.shown = _SIZE_AND_ID.size
        if direction.mode is not COLLECT and frame is not None and rules:
            self.rules.run(direction, frame, iter(rules))

    @property
    def _masks(self) -> bool:
        return self.context.tap is not None and not self.context.hub.with_secrets

    def passes(self, size: int) -> bool:
        return self.tail_at >= 0 and self.walk is not None and self.walk.skip(size)

    def scan(self, piece: memoryview) -> int | None:
        direction = self.direction
        skip = 0
        if self.tail_at < 0:
            skip = min(-self.tail_at, len(piece))
            self.tail_at += skip
            if skip == len(piece):
                return None
        assert self.walk is not None
        try:
            found = self.walk.feed(piece[skip:])
        except Unwalkable:
            direction.switch(Event.NOT_FOUND)
            if direction.request is not None:
                self._undecoded(direction.request)
            return None
        if found is None:
            return None
        at = found + skip
        if at > direction.left:
            direction.switch(Event.NOT_FOUND)
            return None
        direction.switch(Event.NOT_FOUND if direction.left - at <= 1 else Event.FOUND)
        self.walk = None
        return at

    def on_frame(self, data: bytes) -> None:
        """Put our addresses and versions into a response that was kept, then ask the rules."""
        direction = self.direction
        context, hub = self.context, self.context.hub
        request = direction.request
        assert request is not None
        if request.token:
            self.taps.frame(BROKER, request, data)
            context.out.append(Send(CLIENT, data))
            return
        sent, comment = data, ""
        try:
            if request.key == API_VERSIONS and hub.versions is not None:
                sent, comment = hub.versions.response(context, request.version, data)
            elif hub.endpoints is not None:
                sent, comment = hub.endpoints.response(context, request, data)
        except DissectError as error:
            self._undecoded(request, str(error))
        except OSError as error:
            self._no_listener(error)
            return
        frame = InterceptedFrame(context, BROKER, request, len(sent) - 4, context.now_ns, sent)
        frame.comment = comment
        frame.original = data
        rules: list[Rule] = []
        if hub.chain is not None:
            rules, _ = hub.chain.look(frame)
        self.rules.run(direction, frame, iter(rules))

    def on_tail(self, data: bytes) -> None:
        """Put our addresses into the end of a response; its length must not change, for its head is
        gone."""
        direction = self.direction
        context, endpoints = self.context, self.context.hub.endpoints
        request = direction.request
        assert request is not None
        comment = ""
        if endpoints is not None:
            try:
                data, comment = endpoints.tail(context, request, data)
            except DissectError as error:
                self._undecoded(request, str(error))
            except OSError as error:
                self._no_listener(error)
                return
        context.out.append(Send(CLIENT, data))
        self.taps.plain(BROKER, data, comment)

    def _no_listener(self, error: OSError) -> None:
        """Close the connection: better no response than one that leads the client past the
        proxy."""
        self.context.cause = "no listener"
        self.context.hub.once(f"listen {error}", f"cannot listen for a broker: {error}")
        self.rules.close(self.direction, Close("reset"))

    def conclude_kept(self, frame: InterceptedFrame, verdict: Verdict, whole: bytes) -> None:
        original = frame.original
        if isinstance(verdict, Replace):
            whole = SIZE.pack(len(verdict.payload)) + verdict.payload
        gone = isinstance(verdict, (Drop, Close))
        if original is not None and (gone or whole != original):
            self.taps.lost(frame, original, frame.comment if gone else "")
        if isinstance(verdict, Close):
            tapped = self.context.tap is not None
            seen = self.taps.masked(BROKER, frame.pending, whole) if tapped else b""
            self.rules.close(self.direction, verdict, whole, seen)
        elif not gone:
            self.rules.send(self.direction, frame, whole)

    def on_end(self) -> None:
        """Finish a response. The next pending request may have a response of ours."""
        direction = self.direction
        if direction.request is not None and self.pairing.front() is direction.request:
            self.pairing.pop()
        direction.request = None
        self.flush()

    def flush(self) -> None:
        """Send the responses of our own whose turn has come."""
        direction = self.direction
        while direction.between and (own := self.pairing.own_response()) is not None:
            self._send_own(own)

    def _send_own(self, request: PendingRequest) -> None:
        assert request.response is not None
        self.context.out.append(Send(CLIENT, request.response))
        self.taps.plain(BROKER, request.response, request.comment)

    def unread(self) -> PendingRequest:
        front = self.pairing.front()
        return token_request(self.context.now_ns, token=front is not None and front.token)

    def _undecoded(self, request: PendingRequest, why: str = "") -> None:
        context = self.context
        api = APIS.get(request.key)
        name = api.name if api is not None else str(request.key)
        context.hub.metrics.add("undecoded_total", name)
        context.hub.once(
            f"undecoded {name} {request.version}",
            f"{name} v{request.version} from {context.broker} is forwarded unchanged, "
            f"with the addresses of brokers: {why or 'it cannot be decoded'}",
        )
