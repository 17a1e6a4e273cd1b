"""Records with and without schemas, and both sides of the share that have one."""

import json
from typing import Any, Final

from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Format, Schema, SchemaKey, Source
from tests.analyzer.findings.judging import found, least, wire_of
from tests.kit.batches import batch
from tests.kit.wire import Wire

OF_SCHEMAS: Final = {
    "schema-misfit": "bad-schemas",
    "schema-unknown": "bad-schemas",
    "schema-mixed": "bad-schemas",
    "schema-breaks": "mistakes",
    "schema-of-key": "mistakes",
}
"""Rules about schemas -> the real capture that shows it; `test_schemas` shows all of them."""

FIELD: Final = {"name": "n", "type": "long"}
ORDER: Final = {"type": "record", "name": "Order", "fields": [FIELD]}
GOOD: Final = b"\0\0\0\0\1\x02"
"""An Order of id 1."""
LONG: Final = b"\0\0\0\0\1\x80"
"""One that ends too early, or a number."""


def schema(
    number: int,
    text: Any = ORDER,
    subject: str = "t-value",
    version: int = 1,
    source: Source = "folder",
    form: Format = "avro",
) -> Schema:
    """A schema with an id."""
    keys = (SchemaKey("id", number),)
    return Schema(form, json.dumps(text), keys, ((subject, version),), (), source)


def payloads(*schemas: Schema) -> Payloads:
    """What decodes with these schemas; the usual one without any."""
    return Payloads(KnownSchemas(schemas or [schema(1)]))


def produced(*values: bytes | None, client: str = "app", number: int = 0, **more: Any) -> Wire:
    """A Produce to partition 3 of topic t, from offset 40 on; pairs are keys and values."""
    pairs = [value if isinstance(value, tuple) else (None, value) for value in values]
    return wire_of(number).write(1, batch(pairs, **more), index=3, client=client, base_offset=40)


def misfits_of_100(framed: int) -> bool:
    """Of a hundred values so many name a schema, one of them wrongly."""
    wire = produced(LONG, *[GOOD] * (framed - 1), *[b"text"] * (100 - framed))
    other = payloads(schema(1, subject="another-value"))
    return "schema-misfit" in found([wire], "schema-misfit", payloads=other)


def mixed_of_100(framed: int) -> bool:
    """Of a hundred values so many have a schema."""
    wire = produced(*[GOOD] * framed, *[b"text"] * (100 - framed))
    other = payloads(schema(1, subject="another-value"))
    return "schema-mixed" in found([wire], "schema-mixed", payloads=other)


SIDES: Final = {
    "schema-misfit schemas.share": least(misfits_of_100, 50),
    "schema-mixed schemas.share": least(mixed_of_100, 50),
}
