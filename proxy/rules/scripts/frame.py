"""A frame as scripts see it: what it is, its body, its records, and what becomes of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkascope.analyzer.exchanges.records import RecordField, fields_in
from kafkascope.dissectors.codec.jsonform import body_from_json
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.keyed import api_name
from kafkascope.dissectors.layout import BytesWire, Slot
from kafkascope.dissectors.records.records import Batch, Record, batches, open_batch
from kafkascope.dissectors.reference.codes import error_code
from kafkascope.dissectors.registry import APIS, encode_response, layout_of
from kafkascope.proxy.rules.faults.error_code import error_response
from kafkascope.proxy.rules.faults.records import rewritten
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.matching import KINDS
from kafkascope.proxy.rules.verdicts import CLIENT, Close, Drop, Replace, Respond, Verdict


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
        self.kind = KINDS[frame.side]
        """`request` or `response`."""
        self.api = api_name(frame.key)
        self.version = frame.version
        self.client = frame.client_id
        self.correlation_id = frame.pending.correlation_id
        self.connection = frame.context.number
        self.client_address = str(frame.context.client)
        """host:port."""
        self.broker = str(frame.context.broker)
        """host:port."""
        self._records: dict[int, list[list[ScriptRecord]]] | None = None
        """By the `id` of a records field: its records, by batch."""
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
    def request(self) -> Mapping[str, Any]:
        """For a response: the body of its request; empty when that cannot be decoded."""
        found = self._frame.request
        return {} if found is None else copy.deepcopy(found.body)

    def records(self) -> Iterator[ScriptRecord]:
        """Yield the records of a Produce request or a Fetch response, which may be changed."""
        if self._records is None:
            frame, decoded = self._frame, self._decoded
            body = None if decoded is None else decoded.body
            request, answer = (body, None) if frame.side == CLIENT else (dict(self.request), body)
            places = fields_in(frame.key, request, answer, frame.context.hub.names)
            self._records = {id(place.data): _opened(place) for place in places}
        for parts in self._records.values():
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
            made = body_from_json(layout, dict(body or {}))
            payload = encode_response(frame.key, frame.version, self.correlation_id, made)
        self._verdict = Respond(payload)

    # --- for the rule

    def verdict(self) -> Verdict | None:
        """Return what became of it; None: it passes as it is. `DissectError` where a body does not
        fit."""
        if self._verdict is not None:
            return self._verdict
        decoded = self._decoded
        if decoded is None:
            return None
        body = self.body if self._records is None else self._with_records(self.body)
        if body == decoded.body:
            return None
        return Replace(self._frame.with_body(body_from_json(decoded.layout, body)))

    def _with_records(self, body: dict[str, Any]) -> dict[str, Any]:
        assert self._decoded is not None
        known = self._records or {}
        produced = self._frame.side == CLIENT

        def change(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
            if not (isinstance(slot.wire, BytesWire) and id(value) in known):
                return value
            parts = iter(known[id(value)])
            reasons: set[str] = set()
            made = rewritten(
                value, lambda _, __: _closed(next(parts, [])), reasons, produced=produced
            )
            if reasons:
                raise ScriptMistake(sorted(reasons)[0])
            return made

        return changed(self._decoded.layout, body, change)


def _opened(place: RecordField) -> list[list[ScriptRecord]]:
    """Return the records of a field, by batch; those of batches that cannot be changed are left
    out."""
    found = []
    for batch in batches(place.data):
        if not isinstance(batch, Batch) or batch.control or batch.magic != 2:
            continue
        opened = open_batch(place.data, batch)
        if opened.error is None:
            found.append(
                [
                    ScriptRecord(place.topic, place.partition, *r[:4], list(r.headers))
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
    code = error if isinstance(error, int) else error_code(error)
    if code is None:
        raise ScriptMistake(f"unknown error {error!r}")
    return code
