"""Writes a connection to the recording: the client's leg as it was, the broker's leg where it
differs, secrets masked."""

from __future__ import annotations

from dataclasses import dataclass

from kafkascope.analyzer.conversation.tampering import named
from kafkascope.analyzer.transform import secrets
from kafkascope.proxy.hub import Recording
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.pairing import PendingRequest
from kafkascope.proxy.relay.proxy_header import Balancer
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Data


@dataclass(slots=True, eq=False)
class TapWriter:
    """The taps of one connection. Masked secrets keep their length."""

    context: Context
    note: str = ""
    """Comment for the next bytes of the client."""

    def start(self, recording: Recording, now_ns: int, balancer: Balancer | None = None) -> None:
        """Start to record the connection; with the header of a load balancer in between."""
        context = self.context
        client = context.client if balancer is None else balancer.address
        context.tap = recording.tap(context.number, client, context.broker, now_ns)
        if balancer is not None and context.tap is not None:
            context.tap.client(CLIENT, balancer.data, now_ns)

    def end(self, side: int | None, how: str, now_ns: int) -> None:
        """Record that a side ended; None: all is over."""
        if self.context.tap is not None:
            self.context.tap.end(side, how, now_ns)

    def _noted(self, side: int, comment: str = "") -> str:
        if not self.note or side != CLIENT:
            return comment
        note, self.note = self.note, ""
        return f"{note}; {comment}" if comment else note

    def plain(self, side: int, data: Data, comment: str = "") -> None:
        """Record bytes that hold no secrets, or are masked already."""
        tap = self.context.tap
        if tap is not None:
            tap.client(side, data, self.context.now_ns, comment)

    def passed(self, side: int, data: Data) -> None:
        """Record bytes that were forwarded as they came, masked where need be."""
        self.plain(side, data, self._noted(side))

    def frame(self, side: int, request: PendingRequest, data: bytes, comment: str = "") -> None:
        """Record a frame, or the beginning of one."""
        if self.context.tap is not None:
            self.plain(side, self.masked(side, request, data), self._noted(side, comment))

    def request(self, frame: InterceptedFrame, comment: str = "") -> None:
        """Record a request that rules look at, once, as the client sent it."""
        data, frame.unrecorded = frame.unrecorded, None
        if data is not None:
            self.frame(CLIENT, frame.pending, data, comment)

    def replaced(self, frame: InterceptedFrame, data: bytes) -> None:
        """Record the request that the broker gets in place of the client's."""
        tap = self.context.tap
        if tap is not None:
            seen = self.masked(CLIENT, frame.pending, data)
            tap.broker(CLIENT, seen, self.context.now_ns, self._about(frame, frame.comment))
            frame.pending.raw = b""

    def lost(self, frame: InterceptedFrame, data: bytes, comment: str) -> None:
        """Record a response as the broker sent it, when the client gets another or none."""
        tap, request = self.context.tap, frame.pending
        if tap is None:
            return
        now_ns = self.context.now_ns
        if request.raw:
            tap.broker(CLIENT, self.masked(CLIENT, request, request.raw), now_ns)
        seen = self.masked(BROKER, request, data)
        tap.broker(BROKER, seen, now_ns, self._about(frame, comment))

    def _about(self, frame: InterceptedFrame, comment: str) -> str:
        """A comment on the broker's leg that names the exchange of the client's leg which it is
        about."""
        whom = named(self.context.client, frame.pending.correlation_id)
        return f"{comment} [{whom}]" if comment else ""

    def masked(self, side: int, request: PendingRequest, data: bytes) -> bytes:
        """A frame, or the beginning of one, with its secrets masked to the same length."""
        if self.context.hub.with_secrets:
            return data
        if request.token:
            return secrets.hidden_token(data)
        masked = secrets.masked_request if side == CLIENT else secrets.masked_response
        return masked(data, request.key, request.version)
