"""A frame as scripts see it: what it is, its body, its records, and what becomes of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.exchanges.records import fields_in
from kafkascope.dissectors.codec.jsonform import body_from_json
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.keyed import api_name
from kafkascope.dissectors.layout import BytesWire, Slot
from kafkascope.dissectors.records.records import Batch, Record, batches, open_batch
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.dissectors.registry import (
    APIS,
    layout_of,
    response_header_version,
    write_layout,
)
from kafkascope.proxy.rules.actions import CLIENT
from kafkascope.proxy.rules.error_responses import error_response
from kafkascope.proxy.rules.faults.records import rewritten
from kafkascope.proxy.rules.verdicts import Close, Drop, Replace, Respond, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


class ScriptMistake(Exception):
    """A script asked for something that cannot be done; a sentence."""


@dataclass(slots=True)
class ScriptRecord:
    """A record that a script may change, or remove."""

    topic: str | None
    partition: int
    offset: int
    timestamp: int | None
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    removed: bool = field(default=False, repr=False)

    def remove(self) -> None:
        """Leave it out."""
        self.removed = True


class ScriptFrame:
    """A request, or a response with its `request`. `body` may be changed in place."""

    def __init__(self, frame: InterceptedFrame, state: dict[str, Any]) -> None:
        self._frame = frame
        self._decoded = frame.decoded
        self._records: list[list[list[ScriptRecord]]] | None = None
        self._verdict: Verdict | None = None
        self.state = state
        """What this script keeps for the connection; empty at first."""
        self.seconds = 0.0
        """How long it is delayed."""
        self.body: dict[str, Any] = {}
        """Empty when it cannot be decoded."""
        if self._decoded is not None:
            self.body = copy.deepcopy(self._decoded.body)

    @property
    def kind(self) -> str:
        """`request` or `response`."""
        return "request" if self._frame.side == CLIENT else "response"

    @property
    def api(self) -> str:
        """The API's name."""
        return api_name(self._frame.key)

    @property
    def version(self) -> int:
        """The API's version."""
        return self._frame.version

    @property
    def client(self) -> str | None:
        """The client id."""
        return self._frame.client_id

    @property
    def correlation_id(self) -> int:
        """The correlation id."""
        return self._frame.pending.correlation_id

    @property
    def connection(self) -> int:
        """The number of the connection."""
        return self._frame.context.number

    @property
    def client_address(self) -> str:
        """host:port."""
        return str(self._frame.context.client)

    @property
    def broker(self) -> str:
        """host:port."""
        return str(self._frame.context.broker)

    @property
    def request(self) -> Mapping[str, Any]:
        """Of a response: the body of its request; empty when that cannot be decoded."""
        found = self._frame.request
        return {} if found is None else copy.deepcopy(found.body)

    def records(self) -> Iterator[ScriptRecord]:
        """Yield the records of a Produce request or a Fetch response, which may be changed."""
        if self._records is None:
            self._records = [_opened(data) for data in self._fields()]
            self._name_records()
        for parts in self._records:
            for batch in parts:
                yield from batch

    def drop(self) -> None:
        """Let it never arrive."""
        self._verdict = Drop()

    def close(self) -> None:
        """End the connection in its place."""
        self._verdict = Close()

    def delay(self, seconds: float) -> None:
        """Let it wait, and what follows on the connection, too."""
        self.seconds += max(0.0, float(seconds))

    def answer(
        self, *, error: str | int | None = None, body: Mapping[str, Any] | None = None
    ) -> None:
        """Answer a request in the broker's place: with an error, or with a body (fields that are
        missing get their defaults)."""
        frame = self._frame
        if frame.side != CLIENT:
            raise ScriptMistake(
                "only requests can be answered; to change a response, change its `body`"
            )
        if (error is None) == (body is None):
            raise ScriptMistake("answer(error=...) or answer(body=...)")
        if error is not None:
            if frame.request is None:
                raise ScriptMistake("a request that cannot be decoded cannot be answered")
            payload = error_response(frame.request, _code(error))
            if payload is None:
                raise ScriptMistake(f"{self.api} {self.version} has no error field")
        else:
            layout = layout_of(f"{APIS[frame.key].name}Response", frame.version)
            payload = self.correlation_id.to_bytes(4, "big", signed=True)
            payload += bytes(response_header_version(frame.key, frame.version))
            payload += write_layout(layout, body_from_json(layout, dict(body or {})))
        self._verdict = Respond(payload)

    # --- for the rule

    def verdict(self) -> Verdict | None:
        """Return what became of it; None: it passes as it is. `DissectError` where a body does not
        fit."""
        if self._verdict is not None:
            return self._verdict
        decoded, payload = self._decoded, self._frame.payload
        if decoded is None or payload is None:
            return None
        body = self.body
        if self._records is not None:
            body = self._with_records(body)
        if body == decoded.body:
            return None
        written = write_layout(decoded.layout, body_from_json(decoded.layout, body))
        return Replace(payload[: decoded.body_at] + written + payload[decoded.end :])

    def _fields(self) -> list[bytes]:
        """The records fields that are not empty, in their order."""
        found: list[bytes] = []

        def look(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
            if isinstance(slot.wire, BytesWire) and slot.wire.records and value:
                found.append(value)
            return value

        if self._decoded is not None:
            changed(self._decoded.layout, self._decoded.body, look)
        return found

    def _name_records(self) -> None:
        frame, decoded = self._frame, self._decoded
        body = None if decoded is None else decoded.body
        asked, answer = (body, None) if frame.side == CLIENT else (dict(self.request), body)
        places = fields_in(frame.key, asked, answer, frame.context.hub.names)
        for parts, place in zip(self._records or (), places, strict=False):
            for batch in parts:
                for record in batch:
                    record.topic, record.partition = place.topic, place.partition

    def _with_records(self, body: dict[str, Any]) -> dict[str, Any]:
        assert self._decoded is not None
        left = iter(self._records or ())
        produced = self._frame.side == CLIENT

        def change(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
            if not (isinstance(slot.wire, BytesWire) and slot.wire.records and value):
                return value
            parts = iter(next(left, ()))
            reasons: set[str] = set()
            made = rewritten(
                value, lambda _, __: _closed(next(parts, [])), reasons, produced=produced
            )
            if reasons:
                raise ScriptMistake(sorted(reasons)[0])
            return made

        return changed(self._decoded.layout, body, change)


def _opened(data: bytes) -> list[list[ScriptRecord]]:
    """Return the records of a field, by batch; those of batches that cannot be changed are left
    out."""
    found = []
    for batch in batches(data):
        if not isinstance(batch, Batch) or batch.control or batch.magic != 2:
            continue
        opened = open_batch(data, batch)
        if opened.error is None:
            found.append(
                [
                    ScriptRecord(None, 0, r.offset, r.timestamp, r.key, r.value, list(r.headers))
                    for r in opened.records
                ]
            )
    return found


def _closed(records: list[ScriptRecord]) -> list[Record]:
    return [
        Record(r.offset, r.timestamp, _bytes(r.key), _bytes(r.value), tuple(r.headers))
        for r in records
        if not r.removed
    ]


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _code(error: str | int) -> int:
    if isinstance(error, int):
        return error
    for code, each in ERRORS.items():
        if error.upper() in (each.name, *each.former_names):
            return code
    raise ScriptMistake(f"unknown error {error!r}")
