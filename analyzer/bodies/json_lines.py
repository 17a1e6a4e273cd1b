"""One message as a line of JSON: requests to decode or encode it, and their answers, as `decode
--batch` and `encode --batch` have them for test suites in other languages (docs/json.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.dissectors.codec.jsonform import body_from_json, dumps, plain
from kafkascope.dissectors.codec.reader import REFUSALS, reader
from kafkascope.dissectors.codec.writer import REFUSALS as WRITER_REFUSALS
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import layout_of, read_layout, write_layout


def too_much(data: bytes, limits: BodyLimits = LIMITS) -> str:
    """Return why JSON is too large to be read; empty where it is not."""
    if len(data) > limits.json_bytes:
        return f"more than {limits.json_bytes:,} bytes of JSON are too much"
    if sum(map(data.count, (b",", b"[", b"{"))) > limits.json_values:
        return f"JSON with more than {limits.json_values:,} commas and brackets is too much"
    return ""


def decode_line(line: bytes, limits: BodyLimits = LIMITS) -> bytes:
    """`{"message", "version", "hex"}` -> `{"ok": true, "body"}`, or why not."""
    return _answer(line, orjson.loads, _decoded, limits)


def encode_line(line: bytes, limits: BodyLimits = LIMITS) -> bytes:
    """`{"message", "version", "body"}` -> `{"ok": true, "hex"}`, or why not."""
    return _answer(line, _loads, _encoded, limits)


def _answer(
    line: bytes,
    loads: Callable[[bytes], Any],
    work: Callable[[Layout, Any], bytes],
    limits: BodyLimits,
) -> bytes:
    if reason := too_much(line, limits):
        return _refusal(reason, 0, "")
    try:
        request = loads(line)
        return work(_layout(request), request)
    except DissectError as error:
        return _refusal(error.reason, error.offset, error.path)
    except ValueError as error:
        return _refusal(f"no JSON: {error}", getattr(error, "pos", 0), "")


def _decoded(layout: Layout, request: Any) -> bytes:
    try:
        data = bytes.fromhex(request["hex"])
    except (KeyError, TypeError, ValueError):
        raise DissectError('"hex" is missing or no hexadecimal text') from None
    try:
        body, end = reader(layout)(data, 0)
    except REFUSALS:
        # The reference says where and why.
        body, end = read_layout(layout, data)
    if end != len(data):
        return _refusal(f"{len(data) - end} bytes left over", end, "")
    try:
        return orjson.dumps({"ok": True, "body": body}, default=plain)
    except TypeError:
        return dumps({"ok": True, "body": body})


def _encoded(layout: Layout, request: Any) -> bytes:
    if "body" not in request:
        raise DissectError('"body" is missing')
    body = body_from_json(layout, request["body"])
    try:
        data = writer(layout)(body)
    except WRITER_REFUSALS:
        data = write_layout(layout, body)
    return b'{"ok":true,"hex":"' + data.hex().encode("ascii") + b'"}'


def _loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        # Lone surrogates stand for bytes that are no UTF-8: only the stock parser takes them.
        import json

        try:
            return json.loads(line)
        except RecursionError:
            raise ValueError("too many levels") from None


def _layout(request: Any) -> Layout:
    if not isinstance(request, dict):
        raise DissectError('an object {"message", "version", ...} is wanted')
    name, version = request.get("message"), request.get("version")
    if not isinstance(name, str):
        raise DissectError('"message" is missing or no text')
    if type(version) is not int:
        raise DissectError('"version" is missing or no integer')
    return layout_of(name, version)


def _refusal(reason: str, offset: int, path: str) -> bytes:
    return dumps({"ok": False, "error": reason, "offset": offset, "path": path})
