"""`kafkascope clients`: who is there, with which library and versions, and what breaks where."""

from __future__ import annotations

from typing import Final

import click

from analyzer.commands.counting import count
from analyzer.commands.grid import print_lines
from analyzer.commands.options import Wish, input_options, known_release
from analyzer.commands.output import Output
from analyzer.commands.reading import Reading
from analyzer.render_times import Times
from analyzer.statistics.clients import Clients, line_of
from analyzer.statistics.model import Column, Line
from analyzer.terminal import say
from analyzer.verdict import RANK, breaks_at, verdict_of
from dissectors.releases import RELEASES, release_key

BREAKS: Final = Column("breaks_at", "breaks at")
VERDICT: Final = (Column("verdict", "verdict"), BREAKS, Column("why", "why", "list"))


@click.command()
@click.option(
    "--for",
    "release",
    metavar="RELEASE",
    callback=known_release,
    help="Judge by what this Kafka release has: 4.0, 4.0.0, 3.9.1.",
)
@click.option("--apis", is_flag=True, help="One line per client and API, with its versions.")
@input_options
def clients(wish: Wish, release: str | None, apis: bool) -> int:
    """Clients: id, address, library, user, roles, and where their API versions end.

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
        found = Clients()
        count(reading, found)
        times = Times(wish.time_format)
        times.saw(reading.first_ns)
        if release is not None and not wish.quiet:
            _remark(release)
        with Output(wish) as output:
            if apis:
                columns, lines, name = Clients.API_COLUMNS, found.apis(), "client-api"
            else:
                extra = (BREAKS,) if release is None else VERDICT
                columns, lines, name = (*Clients.COLUMNS, *extra), judged(found, release), "client"
            print_lines(lines, columns, f"{name}/1", wish, output, times)
        return reading.finish()


def judged(found: Clients, release: str | None) -> list[Line]:
    """The clients with where they break; with a release, those that break on it first."""
    lines = []
    for usage in found.usages():
        line = {**line_of(usage), "breaks_at": breaks_at(usage)}
        if release is not None:
            verdict = verdict_of(usage, release)
            line["verdict"] = verdict.word
            line["why"] = [reason.text for reason in verdict.reasons]
        lines.append(line)
    if release is not None:
        lines.sort(key=lambda line: RANK[line["verdict"]])
    return lines + found.rows()[len(lines) :]


def _remark(release: str) -> None:
    last = RELEASES[-1]
    if release_key(release)[:2] > release_key(last)[:2]:
        say(f"releases are known up to {last}; {release} is judged as {last}")
