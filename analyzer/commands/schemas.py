"""`kafkascope schemas`: the schemas that are known, from where, and those that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands.grid import print_lines
from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.payloads.model import PayloadError, Schema, SchemaKey
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.terminal import say

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.seen_schemas import Use
    from kafkascope.analyzer.payloads.known import KnownSchemas

COLUMNS: Final = (
    Column("id"),
    Column("format"),
    Column("type"),
    Column("subjects", "list"),
    Column("keys", "count"),
    Column("values", "count"),
    Column("topics", "list"),
    Column("source"),
    Column("origin"),
    Column("ids", "list", wide=True),
    Column("references", "list", wide=True),
    Column("note"),
)
PRIORITY: Final = Priority(("format", "type", "topics", "source"), ("note",))
MISSING: Final = "missing"
"""In place of a source."""


@command()
@setting("-o --output folder", "DIR", "Write the schemas to a new folder")
@setting(
    "--redact",
    "all",
    "Remove docs, comments, defaults, examples, and origins from schemas; names stay",
    type=click.Choice(["all"]),
)
@reading_options(
    *("form", "as_json", "raw", "columns", "wide", "sort", "top"),
    *("schema_folders", "registry", "registry_ca"),
)
def schemas(options: ReadOptions, folder: str | None, redact: str | None) -> int:
    """List record schemas: used, known, and missing.

    Schemas come from --schemas, --schema, --registry, and the capture itself (HTTP with a registry,
    or its _schemas topic). Keys and values are counted of the records that -Y selects.

    \b
      kafkascope schemas prod.pcapng
      kafkascope schemas prod.pcapng --registry http://localhost:8081 -o schemas/
      kafkascope records prod.pcapng --schemas schemas/
    """
    from kafkascope.analyzer.exchanges.seen_schemas import UsedSchemas
    from kafkascope.analyzer.reading.schemas import seen_with

    with Reading(options, records=True) as reading:
        payloads, seen = seen_with(options, reading.capture)
        used = UsedSchemas(reading.capture.context.names, payloads)
        for _, exchange in reading.rows():
            used.add(exchange, reading.chosen)
        known = payloads.known
        for key in used.uses:
            known.find(key)  # the registry is asked, if there is one
        with Output(options) as output:
            lines = [*_known(known, used.uses), *_missing(known, used.uses, seen.missing())]
            if redact:
                lines = list(map(_without_places, lines))
            print_lines(lines, COLUMNS, "known-schema/1", options, output, reading, PRIORITY)
        if folder is not None:
            count = _write(folder, known, redact=redact is not None)
            if not options.quiet:
                say(f"{count} schemas written to {folder}")
        return reading.finish()


def _write(folder: str, known: KnownSchemas, *, redact: bool) -> int:
    from kafkascope.analyzer.payloads.folder import write_folder

    if not redact:
        return write_folder(folder, known)
    bare = list(_bare(known))
    count = write_folder(folder, filter(None, bare))
    if left_out := bare.count(None):
        say(f"{left_out} schemas left out: they cannot be read, so nothing can be hidden")
    return count


def _bare(schemas: Iterable[Schema]) -> Iterator[Schema | None]:
    """Yield schemas without what people wrote into them (docs, comments, defaults, examples) and
    without the place that they came from; None for one that cannot be read. Values are decoded as
    before."""
    from kafkascope.analyzer.payloads.known import function_of

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
