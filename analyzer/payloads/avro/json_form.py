"""Reads Avro's JSON form: unions as `{"type": value}`, bytes as text of ISO-8859-1."""

from __future__ import annotations

from typing import Any

import orjson

from kafkascope.analyzer.payloads.avro.logical import conversion
from kafkascope.analyzer.payloads.avro.types import AvroType, inside
from kafkascope.analyzer.payloads.avro.writer import (
    EXACT,
    LATIN,
    LOOSE,
    JsonForm,
    Misfit,
    ValueWriter,
    json_kind,
    real_number,
    single,
    sized,
    whole_number,
)
from kafkascope.analyzer.payloads.model import PayloadError, of_bytes, of_double


def read_json(root: AvroType, data: bytes) -> Any:
    """Return the value, as that of the binary form."""
    try:
        spelled = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise PayloadError("does-not-fit", f"not JSON: {error}") from None
    try:
        return _Reading(JsonForm()).value(root, spelled, "", 1, EXACT)
    except Misfit as error:
        raise PayloadError("does-not-fit", error.text, path=error.path) from None


class _Reading(ValueWriter):
    """Takes values apart as who writes them does, but that their unions name a branch."""

    def step(self) -> None:
        pass  # There is nothing to search.

    def union(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> Any:
        branch, inner = _branch(node, value, path)
        return self.value(branch, inner, path, depth, exact)

    def record(self, node: AvroType, value: Any, path: str, depth: int, exact: int) -> Any:
        values: dict[str, Any] = {}
        for field, part in zip(node.fields, node.parts, strict=True) if type(value) is dict else ():
            where = inside(path, field.name)
            if field.name not in value:
                raise Misfit("the field is missing", where)
            values[field.name] = self.value(part, value[field.name], where, depth, exact)
        if type(value) is not dict or len(value) != len(values):
            super().record(node, value, path, depth, exact)  # says what is wrong
        return values

    def leaf(self, node: AvroType, value: Any, exact: int) -> Any:
        return _leaf(node, value)


def _branch(node: AvroType, spelled: Any, path: str) -> tuple[AvroType, Any]:
    """Return the type and value of a branch. Null stands without a name."""
    name, inner = "null", None
    if spelled is not None or "null" not in node.index:
        if not isinstance(spelled, dict) or len(spelled) != 1:
            text = f"{json_kind(spelled)} for a union, which needs an object with the type as key"
            raise Misfit(text, path)
        ((name, inner),) = spelled.items()
        if name not in node.index or name == "null":
            raise Misfit(f"the union has no type {name[:80]}", path)
    return node.parts[node.index[name]], inner


def _leaf(node: AvroType, spelled: Any) -> Any:
    converted = conversion(node)
    match node.kind:
        case "null" if spelled is None:
            return None
        case "boolean" if isinstance(spelled, bool):
            return spelled
        case "int" | "long" if not isinstance(spelled, bool):
            number = whole_number(node.kind, spelled, EXACT)
            return converted[0](number) if converted else number
        case "float" | "double" if not isinstance(spelled, bool):
            real = real_number(node.kind, spelled, LOOSE)
            return of_double(single(real) if node.kind == "float" else real)
        case "string" if isinstance(spelled, str):
            return spelled
        case "bytes" | "fixed" if isinstance(spelled, str):
            data = spelled.encode(LATIN)
            if node.kind == "fixed":
                sized(node, data)
            return converted[0](data) if converted else of_bytes(data)
        case "enum" if isinstance(spelled, str):
            if spelled in node.index:
                return spelled
            raise ValueError(f"{node.name} has no symbol {spelled[:80]!r}")
        case _:
            raise ValueError(f"{json_kind(spelled)} for {node.shown}")
