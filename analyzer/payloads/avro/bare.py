"""Leaves out of an Avro schema what does not say how bytes are read: docs, defaults, aliases and
attributes of others."""

from __future__ import annotations

from typing import Any, Final

import orjson

from kafkascope.analyzer.payloads.avro.parsing import parse
from kafkascope.analyzer.payloads.model import PayloadError

_OF_TYPES: Final = ("name", "namespace", "symbols", "size", "logicalType", "precision", "scale")


def bare(text: str) -> str:
    """Return the schema without them; `PayloadError` where it is none."""
    try:
        parse(text)
        return orjson.dumps(_type(orjson.loads(text.encode("utf-8", "surrogatepass")))).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError) as error:
        raise PayloadError("bad-schema", "it cannot be rewritten") from error


def _type(spelled: Any) -> Any:
    if isinstance(spelled, list):
        return list(map(_type, spelled))
    if not isinstance(spelled, dict):
        return spelled
    out: dict[str, Any] = {"type": _type(spelled["type"])} if "type" in spelled else {}
    out |= {name: spelled[name] for name in _OF_TYPES if name in spelled}
    if isinstance(fields := spelled.get("fields"), list):
        out["fields"] = [
            {"name": field.get("name"), "type": _type(field.get("type"))}
            for field in fields
            if isinstance(field, dict)
        ]
    return out | {name: _type(spelled[name]) for name in ("items", "values") if name in spelled}
