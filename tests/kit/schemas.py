"""Captures of schema-encoded records with their schemas: see `captures/schemas/README.md`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson

from kafkascope.schemas.folder import read_folder
from kafkascope.schemas.model import PayloadError, Schema, SchemaKey
from tests.kit.samples import CAPTURES

SAMPLES: Final = CAPTURES / "schemas"


def nothing(_: str) -> None:
    """Find no schema of any name."""


def tried(call: Callable[..., Any], *args: Any) -> tuple[Any, PayloadError | None]:
    """Return what a call returns, or the error of ours that it raises."""
    try:
        return call(*args), None
    except PayloadError as error:
        return None, error


def refused(call: Callable[..., Any], *args: Any) -> PayloadError:
    """Return the error of ours that a call has to raise."""
    _, error = tried(call, *args)
    assert error is not None
    return error


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """Return the schema of a record of Avro; `fields`: types by name."""
    named = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": named}


def capture(name: str) -> Path:
    """Return the capture of a name."""
    return next(SAMPLES.glob(f"{name}.pcap*"))


def folder(name: str) -> list[Schema]:
    """Return the schemas of the folder that belongs to a capture."""
    found = read_folder(SAMPLES / "schemas" / name)
    assert not found.problems
    return found.schemas


def form(schema: Schema) -> Any:
    """Return what has to be equal, wherever a schema comes from."""
    text = schema.text.strip()
    return schema.format, text if schema.format == "protobuf" else orjson.loads(text)


def by_key(schemas: list[Schema]) -> dict[SchemaKey, Schema]:
    """Return the schemas by each of their keys."""
    return {key: schema for schema in schemas for key in schema.keys}
