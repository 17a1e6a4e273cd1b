"""A frame as rules see it: its head, and its body when a rule asks for it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kafkascope.analyzer.bodies.waits import Waits
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange, Frame, Part, Request, Response
from kafkascope.captures.model import Connection
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import api_name
from kafkascope.dissectors.registry import (
    Decoded,
    RequestHeader,
    decode_request,
    decode_response,
    read_request_header,
)
from kafkascope.proxy.rules.verdicts import CLIENT

if TYPE_CHECKING:
    from kafkascope.proxy.relay.context import Context
    from kafkascope.proxy.relay.pairing import PendingRequest


class InterceptedFrame:
    """A request, or a response with its request."""

    def __init__(
        self,
        context: Context,
        side: int,
        pending: PendingRequest,
        size: int,
        now_ns: int,
        whole: bytes | None = None,
    ) -> None:
        self.context = context
        self.side = side
        """0: a request; 1: a response."""
        self.pending = pending
        self.key, self.version, self.client_id = pending.key, pending.version, pending.client_id
        self.size = size
        self.now_ns = now_ns
        self.whole = whole
        self.payload = whole[4:] if whole is not None else None
        """What follows the size field; None: only the head is here."""
        self.changed: bytes | None = None
        """The payload, once a rule has changed it."""
        self.rate = 0.0
        """Bytes per second at which it goes on; 0: at once."""
        self.comment = ""
        """What the recording says about it."""
        self.original: bytes | None = None
        """The frame as the broker sent it."""
        self.unrecorded: bytes | None = None
        """The request's frame, while the recording waits for what rules say about it."""
        self.rule = ""
        """Name of the rule that holds it, or that takes its time."""
        self.uncounted = False
        """A fault did something to it, but not yet what it is for."""

    def replace(self, payload: bytes) -> None:
        self.payload = self.changed = payload
        for name in ("decoded", "exchange", "row", *(["request"] if self.side == CLIENT else [])):
            self.__dict__.pop(name, None)

    @cached_property
    def decoded(self) -> Decoded | None:
        """Header and body of this frame; None when it cannot be read (or is not here)."""
        if self.payload is None:
            return None
        try:
            if self.side == CLIENT:
                return decode_request(self.payload)
            return decode_response(self.payload, self.key, self.version)
        except DissectError:
            return None

    @cached_property
    def request(self) -> Decoded | None:
        """The request, also of a response; None when it was not kept."""
        if self.side == CLIENT:
            return self.decoded
        pending = self.pending
        if pending.decoded is None and pending.payload is not None:
            try:
                pending.decoded = decode_request(pending.payload)
            except DissectError:
                pending.payload = None
        return pending.decoded

    @cached_property
    def exchange(self) -> Exchange:
        """The exchange that filters and summaries look at: a response with its request, or a
        request without a response."""
        pending, context = self.pending, self.context
        connection = Connection(context.number, context.client, context.broker, pending.time_ns)
        connection.via = context.via
        header = None
        payload = pending.payload if self.side != CLIENT else self.payload
        if payload is not None:
            try:
                header = read_request_header(payload)
            except DissectError:
                pass
        if header is None:
            header = RequestHeader(
                pending.key, pending.version, pending.correlation_id, pending.client_id, [], 0
            )
        size = pending.size - 4 if pending.size else self.size
        request = Request(_frame(payload, size, pending.time_ns), header, self.request)
        response, wait_ns = None, 0
        if self.side != CLIENT:
            frame = _frame(self.payload, self.size, self.now_ns)
            response = Response(frame, pending.correlation_id, self.decoded)
            # What the connection told before is not kept here: a long poll may have waited.
            wait_ns = Waits().response(
                pending.key, request.spot, request.body, response.spot, response.body
            )
        return Exchange(
            number=context.number,
            id="",
            state="open" if response is None else "answered",
            connection=connection,
            client=context.client,
            broker=context.broker,
            api_key=pending.key,
            api=api_name(pending.key),
            api_version=pending.version,
            correlation_id=pending.correlation_id,
            client_id=pending.client_id,
            request=request,
            response=response,
            wait_ns=wait_ns,
        )

    @cached_property
    def row(self) -> Row:
        return row_of(self.exchange, self.context.hub.names)

    @property
    def head_row(self) -> Row:
        head = InterceptedFrame(self.context, CLIENT, self.pending, self.size, self.now_ns)
        return row_of(head.exchange, self.context.hub.names)

    def with_body(self, body: Body) -> bytes:
        """The payload of a frame that could be decoded with another body, the header and what is
        after the body as they are; `DissectError` when it does not fit."""
        assert self.decoded is not None
        assert self.payload is not None
        return self.decoded.with_body(self.payload, body)


def _frame(payload: bytes | None, size: int, time_ns: int) -> Frame:
    return Frame(payload or b"", 0, size, time_ns, time_ns, (Part(-1, 0, 0, 0),))
