"""Schemas that are ready, more than are kept."""

from __future__ import annotations

import gc
import json
from types import SimpleNamespace

import pytest

from kafkascope.schemas import known
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.limits import Limits
from kafkascope.schemas.model import Format, Schema

MANY = 300


def schema(kind: Format, number: int) -> Schema:
    if kind == "protobuf":
        return Schema(kind, f'syntax = "proto3"; message M{number} {{ int32 a = 1; }}')
    fields = [{"name": "a", "type": "int"}]
    return Schema(kind, json.dumps({"type": "record", "name": f"R{number}", "fields": fields}))


def collections_of(kind: Format, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often all objects were looked at while many schemas were made ready."""
    found: list[int] = []

    def collect() -> int:
        found.append(gc.collect())
        return found[-1]

    monkeypatch.setattr(known, "gc", SimpleNamespace(collect=collect))
    schemas = KnownSchemas(limits=Limits(compiled=5, collected_chars=20 * known.EVICTED_BYTES))
    schemas.compiled(schema(kind, MANY))  # What is imported for it is no circle of its own.
    gc.collect()
    gc.freeze()  # What other tests left in this process is not looked at a hundred times.
    for number in range(MANY):
        schemas.compiled(schema(kind, number)).codec()
    assert schemas.forgotten >= MANY - 5
    return len(found)


def test_objects_are_looked_at_often_where_that_frees_some(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collections_of("protobuf", monkeypatch) >= MANY // 25


def test_objects_are_looked_at_rarely_where_that_frees_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Looking takes the longer the more there is, so it must not come with every few schemas."""
    assert 1 <= collections_of("avro", monkeypatch) <= 2 + MANY // 60
