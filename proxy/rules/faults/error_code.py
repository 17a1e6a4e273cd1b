"""The faults that respond with an error, or stamp one into the broker's response."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, ClassVar, Self

from kafkascope.analyzer.conversation.tampering import FAULT
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.reference.codes import ERRORS, error_name
from kafkascope.dissectors.registry import (
    APIS,
    encode_body,
    example,
    layout_of,
    response_header_version,
    write_layout,
)
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.error_responses import LEVELS, TOP_ERRORS, error_response, levels, stamp
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.verdicts import Replace, Respond, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

FETCH, METADATA = 1, 3
FETCH_SESSION_ID_NOT_FOUND = 70


class _ErrorAction(Action):
    picky: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def __init__(self, code: int, level: str | None) -> None:
        self.code = code
        self.level = level

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Responses that have a place for the error."""
        found = levels(layout_of(f"{APIS[key].name}Response", version))
        return self.level in found if self.level else bool(found)

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`NOT_LEADER_OR_FOLLOWER`, `6`, `COORDINATOR_NOT_AVAILABLE at top`."""
        level = None
        rest = list(words)
        if len(rest) >= 2 and rest[-2] == "at":
            level = rest.pop()
            rest.pop()
            if level not in LEVELS:
                raise FaultError(
                    f"the level of an error is one of {', '.join(LEVELS)}, not at {level!r}"
                )
        if len(rest) != 1:
            raise FaultError(f"{cls.usage}, not {' '.join(words)!r}")
        return cls(_code(rest[0]), level)

    def __str__(self) -> str:
        level = f" at {self.level}" if self.level else ""
        return f"{self.word} {error_name(self.code)}{level}"


def _code(text: str) -> int:
    if text.lstrip("-").isdecimal():
        return int(text)
    for code, error in ERRORS.items():
        if error.name.lower() == text.lower():
            return code
    from difflib import get_close_matches

    near = get_close_matches(text.upper(), [e.name for e in ERRORS.values()], n=1)
    raise FaultError(f"unknown error {text!r}" + (f"; did you mean {near[0]}?" if near else ""))


class ErrorAction(_ErrorAction):
    """Responds with an error; the broker is not asked."""

    word = "error"
    usage = "error CODE [at top|group|topic|partition]"
    doc = "answer with the error; the request does not reach the broker"
    sides = (CLIENT,)

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Respond with the error."""
        request = frame.request
        if request is None:
            return None
        try:
            partly = self.level is None and self.code not in TOP_ERRORS
            if frame.key == FETCH and partly and not request.body["topics"]:
                return _full_fetch(frame)
            payload = error_response(request, self.code, self.level)
            if payload is not None and frame.key == METADATA:
                payload = _with_brokers(frame, payload)
        except DissectError:
            return None
        if payload is None:
            return None
        frame.comment = f"{FAULT}{self}, not sent to the broker"
        return Respond(payload)


def _full_fetch(frame: InterceptedFrame) -> Verdict | None:
    """Make a client send a full Fetch: an incremental one names no partition that could fail. The
    next request gets the error."""
    version = frame.version
    if not layout_of("FetchResponse", version).has("session_id"):
        return None
    body = example("FetchResponse", version) | {"error_code": FETCH_SESSION_ID_NOT_FOUND}
    head = struct.pack(">i", frame.pending.correlation_id)
    head += bytes(response_header_version(FETCH, version))
    frame.uncounted = True
    frame.comment = f"{FAULT}the client shall name its partitions"
    return Respond(head + encode_body("FetchResponse", version, body))


def _with_brokers(frame: InterceptedFrame, payload: bytes) -> bytes:
    """Add the brokers to a Metadata response: without them it would be another fault."""
    from kafkascope.dissectors.registry import decode_response

    endpoints = frame.context.hub.endpoints
    if endpoints is None:
        return payload
    decoded = decode_response(payload, METADATA, frame.version)
    brokers = decoded.body["brokers"]
    for node_id, host, port in endpoints.directory.brokers(frame.context):
        brokers.append({"node_id": node_id, "host": host, "port": port, "rack": None})
    return payload[: decoded.body_at] + write_layout(decoded.layout, decoded.body)


class StampAction(_ErrorAction):
    """Stamps an error into the broker's response."""

    word = "stamp"
    usage = "stamp CODE [at top|group|topic|partition]"
    doc = "put the error into the broker's response"
    sides = (BROKER,)

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Change the response."""
        decoded = frame.decoded
        if decoded is None or frame.payload is None:
            return None
        if not stamp(decoded.layout, decoded.body, self.code, self.level):
            return None
        try:
            body = write_layout(decoded.layout, decoded.body)
        except DissectError:
            return None
        return Replace(frame.payload[: decoded.body_at] + body + frame.payload[decoded.end :])
