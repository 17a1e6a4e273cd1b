"""Schemas in the topics where registries keep them: keys and values of records. Stateless.

Known by their keys, whatever the topic is called: those of Confluent and Karapace are JSON with a
`keytype`; Apicurio's have forms of their own.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from kafkascope.analyzer.payloads import journal_apicurio
from kafkascope.analyzer.payloads.gathered import (
    FORMATS,
    Said,
    SaidIn,
    as_json,
    guid_key,
    id_key,
    references_of,
    subject_of,
)

MAX_KEY: Final = 8192
"""Bytes of a key: a subject and little else."""
KEY_TYPES: Final = frozenset(
    {
        *("SCHEMA", "CONFIG", "MODE", "NOOP", "DELETE_SUBJECT", "CLEAR_SUBJECT"),
        *("CONTEXT", "ENCODER", "EXPORTER", "KEK", "DEK", "ASSOC"),
    }
)


def is_key(key: bytes | None) -> bool:
    """Return whether a record's key is one of a registry's journal."""
    if not key or len(key) > MAX_KEY:
        return False
    return _key_type(key) is not None or journal_apicurio.is_key(key)


def _key_type(key: bytes) -> str | None:
    if key[:1] != b"{" or b'"keytype"' not in key:
        return None
    try:
        value = orjson.loads(key)
    except orjson.JSONDecodeError:
        return None
    found = value.get("keytype")
    return found if isinstance(found, str) and found in KEY_TYPES else None


def said_by(key: bytes | None, value: bytes | None) -> SaidIn | None:
    """Return what a record says about a schema. One that is deleted stays: values that were written
    with its id are still there."""
    if not key or not value or len(key) > MAX_KEY:
        return None
    kind = _key_type(key)
    if kind is None:
        return journal_apicurio.said_by(key, value)
    said = _described(as_json(value)) if kind == "SCHEMA" else None
    return None if said is None else SaidIn(_context_of(said), said)


def _context_of(said: Said) -> str:
    """Return the context, which Confluent writes in front of a subject: `:.dev:orders-value`."""
    subject = said.subjects[0][0] if said.subjects else ""
    context, colon, _ = subject[1:].partition(":")
    return context if subject.startswith(":.") and colon and context != "." else ""


def _described(about: Any) -> Said | None:
    if not isinstance(about, dict):
        return None
    text, kind = about.get("schema"), about.get("schemaType", "AVRO")
    keys = id_key(about.get("id"))
    if not isinstance(text, str) or not isinstance(kind, str) or not keys:
        return None
    return Said(
        keys + guid_key(about.get("guid")),
        text,
        FORMATS.get(kind.upper()),
        subject_of(about.get("subject"), about.get("version")),
        references_of(about.get("references")),
    )
