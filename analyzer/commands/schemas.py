"""`kafkascope schemas`: the schemas that are known, from where, and those that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands.grid import CommandTable, print_lines
from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.schemas import COLUMNS, schema_lines, without_texts
from kafkascope.analyzer.terminal import say

if TYPE_CHECKING:
    from kafkascope.schemas.known import KnownSchemas

TABLE: Final = CommandTable(
    *("schemas", "known-schema/1", COLUMNS),
    Priority(("format", "type", "topics", "source"), ("note",)),
)


@command()
@setting("-o --output folder", "DIR", "Write the schemas to a new folder")
@setting(
    "--redact",
    "all",
    "Remove docs, comments, defaults, examples, and origins from schemas, keep names",
    type=click.Choice(["all"]),
)
@reading_options(
    *("form", "as_json", "raw", "columns", "wide", "sort", "top"),
    *("schema_folders", "registry", "registry_ca"),
)
def schemas(options: ReadOptions, folder: str | None, redact: str | None) -> int:
    """List record schemas: used, known, and missing.

    Schemas come from --schemas, --schema, --registry, and the capture itself (HTTP with a registry,
    or its _schemas topic). -Y selects the records whose keys and values
    are counted.

    \b
      kafkascope schemas prod.pcapng
      kafkascope schemas prod.pcapng --registry http://localhost:8081 -o schemas/
      kafkascope records prod.pcapng --schemas schemas/
    """
    from kafkascope.analyzer.exchanges.seen_schemas import UsedSchemas
    from kafkascope.analyzer.reading.schemas import seen_with

    with Reading(options, records=True) as reading:
        if reading.stored is not None:
            raise reading.stored.no_exchanges()
        payloads, seen = seen_with(options, reading.capture)
        used = UsedSchemas(reading.capture.context.names, payloads)
        for _, exchange in reading.rows():
            used.add(exchange, reading.chosen)
        known = payloads.known
        for key in used.uses:
            known.find(key)  # the registry is asked, if there is one
        with Output(options) as output:
            lines = schema_lines(known, used.uses, seen.missing(), redact=redact is not None)
            print_lines(TABLE._replace(lines=lines), output, reading)
        if folder is not None:
            count = _write(folder, known, redact=redact is not None)
            if not options.quiet:
                say(f"{count} schemas written to {folder}")
        return reading.finish()


def _write(folder: str, known: KnownSchemas, *, redact: bool) -> int:
    from kafkascope.schemas.folder import write_folder

    if not redact:
        return write_folder(folder, known)
    bare = list(without_texts(known))
    count = write_folder(folder, filter(None, bare))
    if left_out := bare.count(None):
        say(f"{left_out} schemas left out: they cannot be read, so nothing can be hidden")
    return count
