"""The schemas of keys and values as lines: those that are known, from where, and those that are
missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.statistics.model import Line, columns
from kafkascope.schemas.model import PayloadError, Schema, SchemaKey

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.seen_schemas import Use
    from kafkascope.schemas.known import KnownSchemas

COLUMNS: Final = columns(
    "id format type subjects keys values topics source origin (ids) (references) note",
    kinds={
        **dict.fromkeys(("subjects", "topics", "ids", "references"), "list"),
        **dict.fromkeys(("keys", "values"), "count"),
    },
)
MISSING: Final = "missing"
"""In place of a source."""


def schema_lines(
    known: KnownSchemas,
    uses: dict[SchemaKey, Use],
    denied: dict[SchemaKey, str],
    *,
    redact: bool = False,
) -> list[Line]:
    """Return the schemas that are known, and those that are missing. `denied`: those of which a
    registry said that it has none. `redact`: without addresses, paths, and what errors quote."""
    lines = [*_known(known, uses), *_missing(known, uses, denied)]
    return list(map(_without_places, lines)) if redact else lines


def without_texts(schemas: Iterable[Schema]) -> Iterator[Schema | None]:
    """Yield schemas without what people wrote into them (docs, comments, defaults, examples) and
    without the place that they came from; None for one that cannot be read. Values are decoded as
    before."""
    from kafkascope.schemas.known import function_of

    for schema in schemas:
        try:
            text = function_of(schema.format, "bare")(schema.text)
            yield replace(schema, text=text, origin="")
        except PayloadError:
            yield None


def _without_places(line: Line) -> Line:
    """Return a line without addresses and paths, and what errors quote of a schema."""
    out = {**line, "note": "it cannot be used" if line.get("note") else None}
    return {**out, "origin": None} if "origin" in line else out


def _known(known: KnownSchemas, uses: dict[SchemaKey, Use]) -> Iterator[Line]:
    by_schema: dict[int, list[Use]] = {}
    for key, use in uses.items():
        # An id that several know is decoded by the first of them.
        for schema in known.find(key)[:1]:
            by_schema.setdefault(id(schema), []).append(use)
    for schema in sorted(known, key=_place):
        line = _line(schema)
        used = next((each for key in schema.keys for each in known.find(key)[:1]), schema)
        if used is not schema and id(schema) not in by_schema:
            if used.text.strip() == schema.text.strip():
                continue
            line["note"] = f"another one is used, from {used.origin}"
        try:
            line["type"] = known.compiled(schema).codec().type_name
        except PayloadError as error:
            line["note"] = error.text
        yield {**line, **_counts(by_schema.get(id(schema), []))}


def _place(schema: Schema) -> tuple[bool, str, int, str]:
    """Return the place of a schema in the list: by its first id."""
    if not schema.keys:
        return True, "", 0, ""
    space, value = schema.keys[0]
    number = value if isinstance(value, int) else 0
    return False, space, number, str(value)


def _missing(
    known: KnownSchemas, uses: dict[SchemaKey, Use], denied: dict[SchemaKey, str]
) -> Iterator[Line]:
    for key in {**uses, **denied}:
        if not known.knows(key):
            line: Line = {"id": str(key), "ids": [str(key)], "source": MISSING}
            if key in denied:
                line["note"] = f"{denied[key]} said that it has none"
            yield {**line, **_counts([uses[key]] if key in uses else [])}


def _counts(uses: list[Use]) -> Line:
    return {
        "keys": sum(use.counts["key"] for use in uses),
        "values": sum(use.counts["value"] for use in uses),
        "topics": list(dict.fromkeys(topic for use in uses for topic in use.topics)),
    }


def _line(schema: Schema) -> Line:
    ids = [str(key) for key in schema.keys]
    subjects = [f"{name} v{number}" if number else name for name, number in schema.subjects]
    return {
        "id": ids[0] if ids else "",
        "format": schema.format,
        "subjects": subjects,
        "source": schema.source,
        "origin": schema.origin,
        "ids": ids,
        "references": [each.name for each in schema.references],
    }
