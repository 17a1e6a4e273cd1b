"""`kafkascope clients`: who is there, with which library and versions, and what breaks where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kafkascope.analyzer.commands.grid import print_lines
from kafkascope.analyzer.commands.hosts import hosts_option
from kafkascope.analyzer.commands.options import input_options, known_release
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.clients import BREAKS, VERDICT, judged
from kafkascope.analyzer.findings.outcomes import COLUMNS as OUTCOME
from kafkascope.analyzer.findings.outcomes import outcomes
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.clients import Clients
from kafkascope.analyzer.terminal import say
from kafkascope.dissectors.reference.releases import RELEASES, release_key

if TYPE_CHECKING:
    from kafkascope.captures.model import Resolved


@click.command()
@click.option(
    "--for",
    "release",
    metavar="RELEASE",
    callback=known_release,
    help="Judge by what this Kafka release has: 4.0, 4.0.0, 3.9.1.",
)
@click.option("--apis", is_flag=True, help="One line per client and API, with its versions.")
@hosts_option
@input_options
def clients(wish: ReadOptions, release: str | None, apis: bool, hosts: tuple[Resolved, ...]) -> int:
    """Clients: id, address, library, user, roles, what became of them, and where their API versions
    end.

    An outcome is `worked`, `gone` (how, and right after what), `stuck`, `kept out` (why), or `open`
    when the capture ends. A part of a capture (-Y, --from, --to, -c) tells none, and says so.

    A verdict is `ok`, `breaks`, or `unclear` when the capture cannot tell, and judges only the APIs
    that the client used in it.

    \b
      kafkascope clients prod.pcapng --for 4.0
      kafkascope clients prod.pcapng --for 4.1 --json | jq -r 'select(.verdict=="breaks") | .client'
      kafkascope clients prod.pcapng --apis -Y 'client == "orders-svc"'
    """
    if apis and release is not None:
        raise click.UsageError("--apis and --for are two tables: choose one")
    with Reading(wish) as reading:
        left_out = _left_out(wish)
        whole = not (apis or left_out)
        findings = Findings() if whole else None
        found = Clients() if findings is None else findings.base.clients
        count(reading, found if findings is None else findings, watch=whole, hosts=hosts)
        times = Times(wish.time_format)
        times.saw(reading.first_ns)
        if release is not None and not wish.quiet:
            _remark(release)
        with Output(wish) as output:
            if apis:
                columns, lines, name = Clients.API_COLUMNS, found.apis(), "client-api"
            else:
                extra = (BREAKS,) if release is None else VERDICT
                names = reading.capture.context.names
                ends = None if findings is None else outcomes(findings, names)
                columns, name = (*Clients.COLUMNS, *extra, *OUTCOME), "client"
                lines = judged(found, release, ends)
                if left_out:
                    reason = f"not told: {left_out} may leave out what decides"
                    lines = [{**line, "outcome_reason": reason} for line in lines]
            print_lines(lines, columns, f"{name}/1", wish, output, times)
        return reading.finish()


def _left_out(wish: ReadOptions) -> str:
    """The options that leave out exchanges; empty where all are there."""
    given = {
        "-Y": wish.filter_text,
        "--from": wish.begin,
        "--to": wish.end,
        "-c": wish.count,
    }
    return ", ".join(option for option, value in given.items() if value)


def _remark(release: str) -> None:
    last = RELEASES[-1]
    if release_key(release)[:2] > release_key(last)[:2]:
        say(f"releases are known up to {last}; {release} is judged as {last}")
