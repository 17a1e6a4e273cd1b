"""Messages of kio, and bodies of ours made of them."""

import dataclasses
import datetime
import importlib
import pkgutil
from typing import Any

import kio.schema
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType

from kafkascope.dissectors.layout import ArrayWire, Slot, StructWire, UuidWire, Wire
from kafkascope.dissectors.values import Uuid

SECOND = datetime.timedelta(seconds=1)


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _found() -> dict[tuple[str, int], Any]:
    classes = {}
    for module in pkgutil.walk_packages(kio.schema.__path__, "kio.schema."):
        for value in vars(importlib.import_module(module.name)).values():
            if not isinstance(value, type) or not dataclasses.is_dataclass(value):
                continue
            if getattr(value, "__type__", EntityType.nested) is not EntityType.nested:
                classes[value.__name__, int(value.__version__)] = value  # type: ignore[attr-defined]
    return classes


CLASSES = _found()


def _pairs(cls: Any, wire: StructWire) -> list[tuple[Any, Slot]]:
    """The fields of a class beside the slots of a struct."""
    fields = dataclasses.fields(cls)
    plain = [field for field in fields if "tag" not in field.metadata]
    tagged = {field.metadata["tag"]: field for field in fields if "tag" in field.metadata}
    assert tagged.keys() == {slot.tag for slot in wire.tags}
    beside = [(tagged[slot.tag], slot) for slot in wire.tags]
    return [*zip(plain, wire.slots, strict=True), *beside]


def from_kio(wire: Wire, value: Any) -> Any:
    if isinstance(wire, UuidWire):
        return Uuid(value.bytes if value else 16)
    if isinstance(wire, ArrayWire) and value is not None:
        return [from_kio(wire.element, each) for each in value]
    if isinstance(wire, StructWire) and value is not None:
        beside = _pairs(type(value), wire)
        return {s.name: _from_slot(s, getattr(value, f.name), f) for f, s in beside}
    if isinstance(value, datetime.timedelta):
        return value // (SECOND / 1000)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // (SECOND / 1000)
    return value.value if isinstance(value, ErrorCode) else value


def _from_slot(slot: Slot, value: Any, field: Any) -> Any:
    if field.metadata.get("kafka_type") == "datetime_i64" and value is None:
        return -1
    return from_kio(slot.wire, value)
