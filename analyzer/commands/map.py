"""`kafkascope map`: applications, the topics that they write, and who reads these."""

from __future__ import annotations

from typing import Any, Final, get_args

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.statistics.journeys.applications import Applications
from kafkascope.analyzer.statistics.journeys.model import Application, By
from kafkascope.analyzer.times import iso_ns

TIMES: Final = {"first_ns": "first", "last_ns": "last"}


@command()
@setting(
    "--by",
    "NAME",
    f"Make a node for each {', '.join(get_args(By))}",
    type=click.Choice(get_args(By)),
    default="application",
)
@input_options
def map(options: ReadOptions, by: By) -> int:
    """Map applications and the topics between them.

    Client ids that differ by a number or a random part are one application. Replication between
    brokers is left out.

    \b
      kafkascope map prod.pcapng
      kafkascope map prod.pcapng --by user --json
    """
    found = Applications()
    with Reading(options) as reading:
        count(reading, found)
        with Output(options) as output:
            applications = found.applications(reading.capture.context.names, by)
            output.element(
                {"schema": "map/1", "applications": [json_of(each) for each in applications]}
            )
            output.end()
        return reading.finish()


def json_of(application: Application) -> dict[str, Any]:
    """Return an application as JSON."""
    fields = application._asdict()
    for way in ("writes", "reads"):
        fields[way] = [
            {
                TIMES.get(name, name): iso_ns(value) if name in TIMES else value
                for name, value in edge._asdict().items()
            }
            for edge in fields[way]
        ]
    return fields
