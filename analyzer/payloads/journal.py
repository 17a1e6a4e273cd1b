"""Schemas in the topics where registries keep them: keys and values of records. Stateless.

Known by their keys, whatever the topic is called: those of Confluent and Karapace are JSON with a
`keytype`.
"""

from __future__ import annotations

from typing import Final

import orjson

from kafkascope.analyzer.payloads.gathered import (
    FORMATS,
    Said,
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
    return _key_type(key) is not None


def _key_type(key: bytes | None) -> str | None:
    if not key or len(key) > MAX_KEY or key[:1] != b"{" or b'"keytype"' not in key:
        return None
    try:
        value = orjson.loads(key)
    except orjson.JSONDecodeError:
        return None
    found = value.get("keytype")
    return found if isinstance(found, str) and found in KEY_TYPES else None


def said_by(key: bytes | None, value: bytes | None) -> Said | None:
    """Return what a record says about a schema. One that is deleted stays: values that were written
    with its id are still there."""
    if _key_type(key) != "SCHEMA" or not value:
        return None
    try:
        about = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
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
