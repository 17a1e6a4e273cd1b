"""Hypothesis strategies: values of a Protobuf message, and protobuf's own JSON form of them."""

import struct
from typing import Any

from hypothesis import strategies as st

from kafkascope.schemas.model import of_bytes, of_double
from kafkascope.schemas.protobuf import forms
from kafkascope.schemas.protobuf.types import WRAPPERS, MessageField, MessageType

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
BITS = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(1 << 63), (1 << 63) - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, (1 << 32) - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, (1 << 64) - 1)),
}
LONG = {"int64", "sint64", "sfixed64", "uint64", "fixed64"}


def messages(message: MessageType, depth: int = 3) -> st.SearchStrategy[Any]:
    """Any value of a message in the form of `decode`."""
    name = message.special.rpartition(".")[2]
    if message.special in WRAPPERS:
        return scalars(message.fields[1])
    match name:
        case "Timestamp":
            seconds = st.integers(-62135596800, 253402300799)
            return st.builds(
                lambda seconds, nanos: forms.special(
                    message.special, {"seconds": seconds, "nanos": nanos}
                ),
                seconds,
                st.integers(0, 999_999_999),
            )
        case "Duration":
            signs = st.sampled_from([1, -1])
            return st.builds(
                lambda sign, seconds, nanos: forms.special(
                    message.special, {"seconds": sign * seconds, "nanos": sign * nanos}
                ),
                signs,
                st.integers(0, 315576000000),
                st.integers(0, 999_999_999),
            )
        case "FieldMask":
            path = st.from_regex(r"[a-z]{1,4}(_[a-z]{1,4})?(\.[a-z]{1,3})?", fullmatch=True)
            return st.lists(path, max_size=3).map(
                lambda paths: forms.special(message.special, {"paths": paths})
            )
        case "Struct":
            return st.dictionaries(TEXTS, JSON, max_size=3)
        case "Value":
            return JSON
        case "ListValue":
            return st.lists(JSON, max_size=3)
    return st.deferred(lambda: fields(message, depth))


@st.composite
def fields(draw: st.DrawFn, message: MessageType, depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    oneofs: set[str] = set()
    every = list(message.fields.values())
    chosen = draw(st.sets(st.sampled_from(range(len(every))), max_size=5)) if every else set()
    for index, field in enumerate(every):
        if index not in chosen and not field.required:
            continue
        if field.oneof in oneofs or (field.message is not None and not depth):
            continue
        value = draw(values(field, depth - 1))
        if field.repeated and not value:
            continue
        if not field.repeated and not field.presence and is_default(field, value):
            continue
        out[field.name] = value
        if field.oneof:
            oneofs.add(field.oneof)
    return out


def is_default(field: MessageField, value: Any) -> bool:
    if isinstance(value, float):
        return struct.pack("<d", value) == bytes(8)
    first = field.values.get(0, 0)
    return value in (0, "", False, {"base64": ""}) or (field.kind == "enum" and value == first)


def values(field: MessageField, depth: int) -> st.SearchStrategy[Any]:
    if field.map:
        key, value = (field.message.fields[number] for number in (1, 2))
        names = TEXTS if key.kind == "string" else scalars(key).map(lambda each: str(each).lower())
        return st.dictionaries(names, values(value, depth), max_size=3)
    one = messages(field.message, depth) if field.message is not None else scalars(field)
    return st.lists(one, max_size=3) if field.repeated else one


def scalars(field: MessageField) -> st.SearchStrategy[Any]:
    match field.kind:
        case "bool":
            return st.booleans()
        case "string":
            return TEXTS
        case "bytes":
            return st.binary(max_size=6).map(of_bytes)
        case "double":
            return st.floats().map(of_double)
        case "float":
            return st.floats(width=32).map(forms.of_float)
        case "enum":
            named = st.sampled_from(sorted(field.values.values()))
            unknown = st.integers(1000, 2000)
            return named | unknown
        case kind:
            low, high = BITS[kind]
            return st.integers(low, high) | st.sampled_from([low, high, 0 if low else high])


def mapped(message: MessageType, value: Any) -> Any:
    """What `MessageToDict` returns for a value."""
    if message.special in WRAPPERS:
        return mapped_scalar(message.fields[1], value)
    if message.special:
        return value
    out = {}
    for name, each in value.items():
        field = message.names[name]
        if field.map:
            inner = field.message.fields[2]
            out[name] = {key: mapped_one(inner, part) for key, part in each.items()}
        elif field.repeated:
            out[name] = [mapped_one(field, part) for part in each]
        else:
            out[name] = mapped_one(field, each)
    return out


def mapped_one(field: MessageField, value: Any) -> Any:
    return mapped(field.message, value) if field.message else mapped_scalar(field, value)


def mapped_scalar(field: MessageField, value: Any) -> Any:
    if field.kind in LONG:
        return str(value)
    return value["base64"] if field.kind == "bytes" else value
