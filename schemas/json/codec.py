"""JSON Schema: values are JSON text; the schema says whether they fit.

Drafts 4, 6, 7, 2019-09 and 2020-12 by `$schema`, draft 7 without one, as Confluent's registry
does. `format` is an annotation only. Nothing is ever fetched: `$ref` finds what the caller gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kafkascope.schemas.json import values as json_values
from kafkascope.schemas.json.keywords import Exhausted, SchemaBounds, bounds, counted
from kafkascope.schemas.json.text import address_of, objects, schema_of
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Exact, Lookup, PayloadError, Piece, Selector, Value, misfit


def compile(text: str, dependencies: Mapping[str, str], lookup: Lookup) -> JsonCodec:
    """Compile a schema; `PayloadError` with reason `bad-schema`.

    `dependencies` has texts by `$ref`, as it is spelled or with the `$id` around it; `lookup` finds
    the others by address.
    """
    schema = schema_of(text)
    left = LIMITS.schema_chars - len(text)
    return JsonCodec(schema, _documents(schema, dependencies, lookup, left))


_DRAFTS: Final = ("http://json-schema.org/", "https://json-schema.org/")


def _documents(
    schema: Any, dependencies: Mapping[str, str], lookup: Lookup, left: int
) -> dict[str, Any]:
    root = next((base for _, base, _ in objects(schema, "")), "")
    by_address = {address_of(root, name): text for name, text in dependencies.items()}
    out: dict[str, Any] = {}
    known = {base for _, base, _ in objects(schema, "")} | {""}
    todo = [(schema, "")]
    while todo:
        document, base = todo.pop()
        for _, around, refs in objects(document, base):
            for ref in refs:
                address = address_of(around, ref)
                if address in known or address.startswith(_DRAFTS):
                    continue
                known.add(address)
                plain = ref.partition("#")[0]
                text = dependencies.get(plain)
                for source in (dependencies, by_address):
                    text = source.get(address) if text is None else text
                for name in (address, plain):
                    text = lookup(name) if text is None else text
                if text is None:
                    continue
                left -= len(text)
                if left < 0:
                    raise PayloadError(
                        "bad-schema", f"more than {LIMITS.schema_chars} characters with references"
                    )
                out[address] = schema_of(text)
                todo.append((out[address], address))
    return out


class JsonCodec:
    """A schema with all that it refers to: decodes text that fits to it."""

    def __init__(self, schema: Any, documents: dict[str, Any]) -> None:
        self._schema = schema
        self._bounds = SchemaBounds()
        self._failures = 0
        try:
            self._validator = self._made(documents)
        except _of_libraries() as error:
            raise _bad_schema(error) from None

    def _made(self, documents: dict[str, Any]) -> Any:
        from jsonschema import Draft7Validator, validators
        from referencing import Resource
        from referencing.jsonschema import DRAFT7

        said = self._schema.get("$schema") if isinstance(self._schema, dict) else None
        known = isinstance(said, str)
        draft = validators.validator_for(self._schema if known else {}, default=Draft7Validator)
        registry = _drafts()
        checking = counted(draft)(draft.META_SCHEMA, registry=registry)
        error = _first_error(checking, self._schema, SchemaBounds(), LIMITS.schema_steps)
        if error is not None:
            path = _path(error.absolute_path)
            place = f"{path}: " if path else ""
            raise PayloadError("bad-schema", f"{place}{error.validator}: {error.message[:200]}")
        resources = [
            (address, Resource.from_contents(each, default_specification=DRAFT7))
            for address, each in documents.items()
            if isinstance(each, dict)
        ]
        if resources:
            # It fetches nothing: what is not in it, is not there.
            registry = registry.with_resources(resources).crawl()
        return counted(draft)(self._schema, registry=registry)

    def codec(self, which: Selector = None, data: bytes = b"") -> JsonCodec:
        return self

    @property
    def type_name(self) -> str:
        """The title, or the `$id`."""
        if isinstance(self._schema, dict):
            for name in ("title", "$id", "id"):
                if isinstance(self._schema.get(name), str):
                    return str(self._schema[name])
        return ""

    def decode(self, data: bytes) -> Value:
        """Return the value; numbers that 64 bits or a double cannot hold are `Exact` text.

        `PayloadError` for what is no JSON, and, with the keyword, for what does not fit.
        """
        value, shown = json_values.parse(data)
        error = self._error(value, len(data))
        if error is not None:
            path = list(error.absolute_path)
            raise _refusal(error, json_values.place(data, path) if path else 0)
        return shown

    def encode(self, value: Value) -> bytes:
        """Return the text of a value that fits; text with digits is a number where the schema wants
        one, for `Exact` text becomes plain text on its way through JSON."""
        data = json_values.dump(value)
        checked, _ = json_values.parse(data)
        for _ in range(LIMITS.numbers_as_text):
            error = self._error(checked, len(data))
            if error is None:
                return data
            path = list(error.absolute_path)
            number = _as_number(error)
            if number is None:
                break
            value = _put(value, path, number)
            data = json_values.dump(value)
            checked, _ = json_values.parse(data)
        raise _refusal(error)

    def explain(self, data: bytes) -> Piece:
        return json_values.explain(data)

    def _error(self, value: Any, size: int) -> Any:
        from jsonschema.exceptions import best_match

        if self._failures >= LIMITS.slow_values:
            raise PayloadError("bad-schema", "the schema took too many steps for an earlier value")
        steps = min(LIMITS.value_steps + LIMITS.steps_per_byte * size, LIMITS.most_steps)
        try:
            error = _first_error(self._validator, value, self._bounds, steps)
            return error and best_match(iter([error]))
        except _of_libraries() as wrong:
            self._failures += isinstance(wrong, Exhausted)
            raise _bad_schema(wrong) from None


def _first_error(validator: Any, value: Any, bound: SchemaBounds, steps: int) -> Any:
    """Return the first reason why a value does not fit; `Exhausted` where that takes more steps."""
    before = bounds.set(bound)
    try:
        bound.start(steps)
        return next(validator.iter_errors(value), None)
    finally:
        bounds.reset(before)


@cache
def _drafts() -> Any:
    from jsonschema_specifications import REGISTRY

    return REGISTRY.crawl()


def _of_libraries() -> tuple[type[Exception], ...]:
    """Return what libraries raise for schemas that are none."""
    from jsonschema.exceptions import UndefinedTypeCheck, UnknownType
    from referencing.exceptions import CannotDetermineSpecification, NoInternalID, Unresolvable

    return (
        Exhausted,
        RecursionError,
        UndefinedTypeCheck,
        UnknownType,
        CannotDetermineSpecification,
        NoInternalID,
        Unresolvable,
        TypeError,
        ValueError,
        AttributeError,
        LookupError,
        ArithmeticError,
    )


def _refusal(error: Any, offset: int = 0) -> PayloadError:
    text = f"{error.validator or 'false'}: {error.message[:300]}"
    return misfit(text, path=_path(error.absolute_path), offset=offset)


def _bad_schema(error: Exception) -> PayloadError:
    if isinstance(error, Exhausted):
        return PayloadError("bad-schema", "the schema takes too many steps")
    if isinstance(error, RecursionError):
        return PayloadError("bad-schema", "schema or value refer to themselves, or nest too deep")
    ref = getattr(error, "ref", None)
    if isinstance(ref, str):
        return PayloadError("bad-schema", f"no schema has the ID {ref[:200]}")
    return PayloadError("bad-schema", f"{type(error).__name__}: {error!s:.200}")


def _path(parts: Any) -> str:
    out = ""
    for part in parts:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            out += f".{part}" if out else str(part)
    return out


def _as_number(error: Any) -> Exact | None:
    wanted = error.validator_value if error.validator == "type" else ()
    kinds = [wanted] if isinstance(wanted, str) else wanted
    text = error.instance
    if not isinstance(text, str) or not json_values.NUMBER.fullmatch(text):
        return None
    return Exact(text) if "number" in kinds or "integer" in kinds else None


def _put(value: Any, path: list[Any], new: Any) -> Any:
    if not path:
        return new
    out = value.copy()
    out[path[0]] = _put(value[path[0]], path[1:], new)
    return out
