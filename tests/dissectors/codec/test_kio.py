"""Bytes of kio, an independent implementation, are read right, and kio reads ours.

kio's dataclasses are filled from our bodies slot by slot: plain fields stand in wire order in both,
tagged ones share their number. Where its types are narrower than the wire (it has durations, dates
and an enum of error codes) the value is narrowed first, so both sides speak of the same one.
"""

import dataclasses
import datetime
import io
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.reader import Body, reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire, Wire, default_of
from tests.dissectors.codec.kio_bodies import CLASSES, EPOCH, _pairs, from_kio
from tests.matrix import mostly_slow
from tests.strategies import bodies

PAIRS = 625
"""(message, version) pairs of kio 0.6; all of them are compared."""

LACKS = (
    "unknown tagged fields: it reads past them and does not keep them",
    "error codes that it does not know, durations and dates outside of Python's range",
    "NaN and infinities",
    "null in a tagged field whose default is not null",
    "strings that are not UTF-8",
)
"""What kio cannot express, all narrowed in `_leaf` and `_entity`."""

KNOWN_CODES = sorted(code.value for code in ErrorCode)


def _class_in(annotation: Any) -> Any:
    """The dataclass inside `X`, `X | None`, `tuple[X, ...]` or `tuple[X, ...] | None`."""
    inner = [_class_in(each) for each in getattr(annotation, "__args__", ())]
    return next((each for each in (annotation, *inner) if dataclasses.is_dataclass(each)), None)


def _leaf(kind: str, value: Any, nullable: bool) -> Any:
    """A plain value as kio wants it, narrowed to what it can express."""
    match kind:
        case "error_code":
            return ErrorCode(value if value in KNOWN_CODES else KNOWN_CODES[value % 100])
        case "timedelta_i32":
            return datetime.timedelta(milliseconds=value)
        case "timedelta_i64":
            return datetime.timedelta(milliseconds=value % 2**40)
        case "datetime_i64":
            if nullable and value == -1:
                return None
            return EPOCH + datetime.timedelta(milliseconds=value % 2**40)
        case "uuid":
            return uuid.UUID(bytes=bytes(value)) if any(value) else None
        case "float64":
            return value if abs(value) != float("inf") else 0.5
        case _:
            return value


def _to_kio(wire: Wire, field: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(wire, ArrayWire):
        return tuple(_to_kio(wire.element, field, each) for each in value)
    if isinstance(wire, StructWire):
        return _entity(_class_in(field.type), wire, value)
    return _leaf(field.metadata["kafka_type"], value, "None" in str(field.type))


def _entity(cls: Any, wire: StructWire, body: Body) -> Any:
    values = {}
    for field, slot in _pairs(cls, wire):
        value = body[slot.name]
        if slot.tag is not None and value is None and slot.default is not None:
            value = default_of(slot)
        values[field.name] = _to_kio(slot.wire, field, value)
    return cls(**values)


def _written(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def _layout(name: str, version: int) -> Layout:
    return registry.layout_of(name, version)


def test_every_pair_of_kio_is_one_of_ours_with_the_same_names() -> None:
    others = set()

    def walk(cls: Any, wire: Wire) -> None:
        if isinstance(wire, ArrayWire):
            walk(cls, wire.element)
        elif isinstance(wire, StructWire):
            for field, slot in _pairs(cls, wire):
                others.add((field.name, slot.name))
                walk(_class_in(field.type), slot.wire)

    for (name, version), cls in CLASSES.items():
        walk(cls, _layout(name, version).body)
    print(f"\n{len(CLASSES)} (message, version) pairs compared with kio; it cannot express:")
    print("\n".join(LACKS))
    assert len(CLASSES) == PAIRS
    # It drops units, closes Python's own names with "_" and spells KRaft in two words.
    different = {
        (kios, ours)
        for kios, ours in others
        if ours not in (kios, f"{kios}_ms", kios.rstrip("_"), kios.replace("k_raft", "kraft"))
    }
    assert different == {
        ("generation_id", "generation_id_or_member_epoch"),
        ("acceptable_recovery_lag", "acceptable_recovery_lag_legacy"),
    }


def newest(pair: tuple[str, int]) -> bool:
    versions = [version for name, version in CLASSES if name == pair[0]]
    return pair[1] == max(versions)


@pytest.mark.parametrize(("name", "version"), mostly_slow(sorted(CLASSES), newest), ids=str)
def test_kio_reads_what_we_write_and_writes_what_we_read(name: str, version: int) -> None:
    cls, layout = CLASSES[name, version], _layout(name, version)
    read, write = reader(layout), writer(layout)
    kio_read = entity_reader(cls)

    @settings(
        max_examples=settings().max_examples // 25,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(bodies(layout))
    def agree(body: Body) -> None:
        entity = _entity(cls, layout.body, body)
        narrowed = from_kio(layout.body, entity)
        data = _written(entity)
        assert read(data, 0) == (narrowed, len(data))
        assert write(narrowed) == data
        assert kio_read(data, 0) == (entity, len(data))

    agree()
