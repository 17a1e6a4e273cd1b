"""Hypothesis strategies: schemas of Avro, and values of a schema in the form of `decode`."""

import base64
from datetime import date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from kafkascope.schemas.avro.codec import AvroCodec
from kafkascope.schemas.avro.codec import compile as compile_avro

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICALS = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
EPOCH = datetime(1970, 1, 1)


def compiled(schema: Any) -> AvroCodec:
    """A schema that refers to nothing."""
    import orjson

    return compile_avro(orjson.dumps(schema).decode(), {}, lambda _: None)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """Any schema; names are unique, some are used again."""
    return _schema(draw, depth, [], [0])


def _schema(draw: st.DrawFn, depth: int, known: list[str], count: list[int]) -> Any:
    kinds = ["primitive", "logical", "decimal", "fixed", "enum"]
    kinds += ["known"] * bool(known)
    kinds += ["record", "array", "map", "union"] * bool(depth) * 2
    kind = draw(st.sampled_from(kinds))
    count[0] += 1
    name = f"a.b{count[0] % 3}.T{count[0]}"
    match kind:
        case "primitive":
            primitive = draw(st.sampled_from(PRIMITIVES))
            odd = {"type": primitive, "logicalType": "nobody-knows", "x": [1]}
            return draw(st.sampled_from([primitive, {"type": primitive}, odd]))
        case "logical":
            logical = draw(st.sampled_from(sorted(LOGICALS)))
            return {"type": LOGICALS[logical], "logicalType": logical}
        case "decimal":
            precision = draw(st.integers(1, 20))
            scale = draw(st.integers(0, precision))
            schema = {"logicalType": "decimal", "precision": precision, "scale": scale}
            if draw(st.booleans()):
                return schema | {"type": "bytes"}
            known.append(name)
            return schema | {"type": "fixed", "name": name, "size": 9}
        case "fixed":
            known.append(name)
            logical, size = draw(
                st.sampled_from([(None, 0), (None, 3), ("uuid", 16), ("duration", 12)])
            )
            fixed = {"type": "fixed", "name": name, "size": size}
            return fixed | ({"logicalType": logical} if logical else {})
        case "enum":
            known.append(name)
            return {"type": "enum", "name": name, "symbols": ["A", "B", "C"][: draw(INDEX)]}
        case "known":
            return draw(st.sampled_from(known))
        case "record":
            # Known to itself only where a value can end: behind a union.
            fields = [
                {"name": f"f{at}", "type": _schema(draw, depth - 1, known, count)}
                for at in range(draw(st.integers(0, 3)))
            ]
            if draw(st.booleans()):
                fields.append({"name": "again", "type": ["null", name]})
            known.append(name)
            return {"type": "record", "name": name, "fields": fields}
        case "array":
            return {"type": "array", "items": _schema(draw, depth - 1, known, count)}
        case "map":
            return {"type": "map", "values": _schema(draw, depth - 1, known, count)}
        case _:
            branches: dict[str, Any] = {}
            for _ in range(draw(st.integers(1, 4))):
                before = len(known)
                branch = _schema(draw, depth - 1, known, count)
                if isinstance(branch, list) or branch_of(branch) in branches:
                    del known[before:]
                else:
                    branches[branch_of(branch)] = branch
            return list(branches.values()) or ["null"]


INDEX = st.integers(1, 3)


def branch_of(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return str(schema.get("name", schema["type"]))


def named(schema: Any, found: dict[str, Any] | None = None) -> dict[str, Any]:
    """The types by name. Full names only: the strategy writes no others."""
    found = {} if found is None else found
    if isinstance(schema, list):
        for each in schema:
            named(each, found)
    elif isinstance(schema, dict):
        if "name" in schema:
            found[schema["name"]] = schema
        for field in schema.get("fields", ()):
            named(field["type"], found)
        for key in ("items", "values"):
            if key in schema:
                named(schema[key], found)
    return found


def based(data: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}


def values(draw: st.DrawFn, schema: Any, types: dict[str, Any], depth: int = 4) -> Any:
    """A value of a schema, in the form of `decode`."""
    if isinstance(schema, list):
        if depth < 0 and "null" in schema:
            return None
        return values(draw, draw(st.sampled_from(schema)), types, depth)
    if isinstance(schema, str):
        if schema in types:
            return values(draw, types[schema], types, depth)
        schema = {"type": schema}
    kind = schema["type"]
    logical = schema.get("logicalType")
    if logical == "decimal":
        digits = draw(st.integers(0, 10 ** schema["precision"] - 1))
        text = str(digits).zfill(schema["scale"] + 1)
        if schema["scale"]:
            text = f"{text[: -schema['scale']]}.{text[-schema['scale'] :]}"
        return f"-{text}" if digits and draw(st.booleans()) else text
    if logical in LOGICALS or logical in ("uuid", "duration"):
        return _logical(draw, logical)
    match kind:
        case "null":
            return None
        case "boolean":
            return draw(st.booleans())
        case "int" | "long":
            most = 2 ** (31 if kind == "int" else 63)
            return draw(st.sampled_from([-most, most - 1, 0]) | st.integers(-most, most - 1))
        case "float" | "double":
            width = 32 if kind == "float" else 64
            number = draw(st.floats(width=width))  # type: ignore[arg-type]
            return number if abs(number) < float("inf") else _odd(number)
        case "bytes":
            return based(draw(st.binary(max_size=8)))
        case "string":
            return draw(TEXTS)
        case "fixed":
            return based(draw(st.binary(min_size=schema["size"], max_size=schema["size"])))
        case "enum":
            return draw(st.sampled_from(schema["symbols"]))
        case "array":
            count = draw(st.integers(0, 3 if depth > 0 else 0))
            return [values(draw, schema["items"], types, depth - 1) for _ in range(count)]
        case "map":
            keys = draw(st.lists(TEXTS, max_size=2 if depth > 0 else 0, unique=True))
            return {key: values(draw, schema["values"], types, depth - 1) for key in keys}
        case _:
            return {
                field["name"]: values(draw, field["type"], types, depth - 1)
                for field in schema["fields"]
            }


def _odd(number: float) -> str:
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def _logical(draw: st.DrawFn, logical: str) -> Any:
    """In text, written by `datetime`."""
    if logical == "uuid":
        return str(draw(st.uuids(allow_nil=True)))
    if logical == "duration":
        months, days, millis = draw(st.tuples(*[st.integers(0, 2**32 - 1)] * 3))
        return f"P{months}M{days}DT{millis // 1000}.{millis % 1000:03d}S"
    if logical == "date":
        far = st.sampled_from([-(2**31), 2**31 - 1, 2932897, -719163])
        return draw(st.dates().map(date.isoformat) | far)
    micros = 1000 if logical.endswith("millis") else 1
    if logical.startswith("time-"):
        clock = draw(st.times())
        clock = clock.replace(microsecond=clock.microsecond // micros * micros)
        return draw(st.just(clock.isoformat("microseconds")) | st.just(-1))
    if logical.endswith("nanos"):
        nanos = draw(st.integers(-(2**63), 2**63 - 1))
        text = (EPOCH + timedelta(microseconds=nanos // 1000)).isoformat(timespec="microseconds")
        text += f"{nanos % 1000:03d}" if nanos % 1000 else ""
    else:
        moment = draw(st.datetimes())
        moment = moment.replace(microsecond=moment.microsecond // micros * micros)
        text = moment.isoformat(timespec="microseconds")
    if not logical.startswith("local"):
        text += "Z"
    far = [] if logical.endswith("nanos") else [-(2**63), 2**63 - 1]
    return draw(st.sampled_from([text, *far]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema with a value of it."""
    schema = draw(schemas())
    return schema, values(draw, schema, named(schema))
