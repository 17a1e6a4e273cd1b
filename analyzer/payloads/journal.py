"""Schemas in the topics where registries keep them: keys and values of records. Stateless.

Known by their keys, whatever the topic is called: those of Confluent and Karapace are JSON with a
`keytype`; Apicurio's have forms of their own.
"""

from __future__ import annotations

from typing import Final

import orjson

from kafkascope.analyzer.payloads import journal_apicurio
from kafkascope.analyzer.payloads.gathered import Said, as_json, confluent_schema

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


def schema_in(key: bytes | None, value: bytes | None) -> Said | None:
    """Return the observations of a schema in a record. A deleted one stays: values that were
    written with its id are still there."""
    if not key or not value or len(key) > MAX_KEY:
        return None
    kind = _key_type(key)
    if kind is None:
        return journal_apicurio.schema_in(key, value)
    said = confluent_schema(as_json(value)) if kind == "SCHEMA" else None
    if said is None or not any(key.namespace == "id" for key in said.keys):
        return None
    # Confluent writes the context in front of a subject: `:.dev:orders-value`.
    subject = said.subjects[0][0] if said.subjects else ""
    context, colon, _ = subject[1:].partition(":")
    named = subject.startswith(":.") and colon and context != "."
    return said._replace(context=context if named else "")
