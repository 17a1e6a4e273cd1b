"""`kafkascope map`: applications, the topics that they write, and the readers of these."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final, get_args

import click

from kafkascope.analyzer.commands.grid import NO_LINES, CommandTable, print_lines
from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import formatting_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import DRAWINGS, ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.journeys.applications import Applications, edge_lines
from kafkascope.analyzer.statistics.journeys.drawing import dot, graph_of, map_lines, mermaid
from kafkascope.analyzer.statistics.journeys.model import By
from kafkascope.analyzer.statistics.journeys.printed import as_json
from kafkascope.analyzer.statistics.topics import Topics

LANGUAGES: Final = {"dot": dot, "mermaid": mermaid}
TABLE: Final = CommandTable(
    *("map", "map/1", Applications.COLUMNS),
    Priority(("way", "topic", "group", "records", "peers")),
)


@command()
@setting(
    "--by",
    "NAME",
    f"Make a node for each {', '.join(get_args(By))}",
    type=click.Choice(get_args(By)),
    default="application",
)
@setting("--brokers", "", "Show replication between brokers, too")
@formatting_options(*DRAWINGS)
def map(options: ReadOptions, by: By, brokers: bool) -> int:
    """Show applications and the topics between them.

    Client ids that differ by a number, a random part or a role are one application; the rule that
    joined them is shown. Replication between brokers is left out. --format csv, --columns, and
    --sort print a table of all edges; asyncapi includes the schemas of the records.

    \b
      kafkascope map prod.pcapng
      kafkascope map prod.pcapng --by user --json
      kafkascope map prod.pcapng --format mermaid -o map.mmd
      kafkascope map prod.pcapng --format dot | dot -Tsvg > map.svg
      kafkascope map prod.pcapng --format asyncapi > asyncapi.json
    """
    applications, topics = Applications(), Topics()
    with Reading(options) as reading:
        as_asyncapi, names = options.form == "asyncapi", reading.capture.context.names
        if as_asyncapi and reading.stored is None:
            topics.payloads = reading.payloads  # tables hold no records
        count(reading, *((applications, topics) if as_asyncapi else (applications,)))
        app_map = applications.map_of(names, by, brokers=brokers)
        with Output(options) as output:
            if as_asyncapi:
                from kafkascope.analyzer.export.asyncapi import asyncapi, schemas_by_topic

                title = ", ".join(PurePath(name).name or name for name in options.inputs)
                schemas = schemas_by_topic(topics, names)
                output.json_line(asyncapi(f"Kafka traffic: {title}", app_map, schemas))
            elif options.form in ("csv", "tsv") or options.columns or options.sort:
                print_lines(TABLE._replace(lines=edge_lines(app_map)), output, reading)
            elif options.form in ("json", "jsonl"):
                output.json_line({"schema": "map/1", **as_json(app_map)})
            elif options.form == "table":
                for line in map_lines(app_map, None if options.wide else output.width):
                    output.line(*line)
            else:
                for text in LANGUAGES[options.form](graph_of(app_map)).splitlines():
                    output.line(text)
        if not (app_map.applications or as_asyncapi):
            reading.lacks(NO_LINES["map/1"])
        return reading.finish()
