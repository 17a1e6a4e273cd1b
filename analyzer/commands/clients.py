"""`kafkascope clients`: clients with their libraries, API versions, outcomes, and upgrade risks."""

from __future__ import annotations

from typing import Final

import click

from kafkascope.analyzer.commands.grid import CommandTable, print_lines
from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import (
    complete_releases,
    hosts_option,
    input_options,
    known_release,
)
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.outcomes import BREAKS, VERDICT, judged, of_selection, outcomes
from kafkascope.analyzer.findings.outcomes import COLUMNS as OUTCOME
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.clients import Clients
from kafkascope.captures.model import Resolved

OUTCOME_PRIORITY: Final = Priority(
    ("outcome", "failed", "breaks_at", "software"), ("worst_finding",)
)
VERDICT_PRIORITY: Final = Priority(("verdict", "breaks_at", "software"), ("why",))
VERSIONS: Final = CommandTable(
    *("versions", "client-api/1", Clients.API_COLUMNS),
    Priority(("api", "versions", "offered", "refused")),
)


@command()
@setting(
    "--for release",
    "RELEASE",
    "Judge clients against this Kafka release: 4.0, 4.0.0, 3.9.1",
    callback=known_release,
    shell_complete=complete_releases,
)
@setting("--apis", "", "List each client's APIs, with their versions")
@hosts_option
@input_options
def clients(
    options: ReadOptions, release: str | None, apis: bool, hosts: tuple[Resolved, ...]
) -> int:
    """List clients, their libraries, and upgrade risks.

    The outcome of a client is worked, gone, stuck, kept out (with the reason), or open at the end
    of the capture. It describes the whole capture, even with -Y, --from and --to; numbers describe
    the selected exchanges. With -c there is no outcome.

    The verdict of --for is ok, breaks, or unclear. It covers only the APIs the client used in the
    capture.

    \b
      kafkascope clients prod.pcapng --for 4.0
      kafkascope clients prod.pcapng --for 4.1 --sort verdict
      kafkascope clients prod.pcapng --apis -Y 'client == "orders-svc"'
    """
    if apis and release is not None:
        raise click.UsageError("--apis and --for print different tables: choose one")
    with Reading(options) as reading:
        # Outcomes need all exchanges; tables of a selection, and -c, do not have them.
        stored_filter = "" if reading.stored is None else reading.stored.filter
        payloads = None if reading.stored is not None else reading.payloads
        findings = None if apis or options.count or stored_filter else Findings(payloads=payloads)
        selects = bool(options.filter_text or options.begin or options.end)
        if findings is None or selects:
            counted = Clients()
            count(reading, counted, hosts=hosts, whole=findings)
        else:
            counted = findings.base.clients
            count(reading, findings, watch=True, hosts=hosts)
        with Output(options) as output:
            if apis:
                table = VERSIONS._replace(lines=counted.apis())
            else:
                extra = (BREAKS,) if release is None else VERDICT
                ends = {}
                if findings is not None:
                    ends = outcomes(findings, reading.capture.context.names)
                    if selects:
                        ends = of_selection(counted, ends, findings.base.clients)
                client, *rest = Clients.COLUMNS
                columns = (client, *extra, *rest, *OUTCOME)
                lines = judged(counted, release, ends)
                if options.count or stored_filter:
                    reason = f"only exchanges that match -Y {stored_filter!r} were counted"
                    reason = "-c stops before the end" if options.count else reason
                    lines = [{**line, "outcome_reason": f"unknown: {reason}"} for line in lines]
                priority = OUTCOME_PRIORITY if release is None else VERDICT_PRIORITY
                table = CommandTable("clients", "client/1", columns, priority, lines)
            print_lines(table, output, reading)
        return reading.finish()
