"""`kafkascope clients`: who is there, with which library and versions, and what breaks where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from analyzer.commands.counting import count
from analyzer.commands.grid import print_lines
from analyzer.commands.hosts import hosts_option
from analyzer.commands.options import Wish, input_options, known_release
from analyzer.commands.output import Output
from analyzer.commands.reading import Reading
from analyzer.findings import Findings
from analyzer.findings.outcomes import COLUMNS as OUTCOME
from analyzer.findings.outcomes import Outcome, outcomes
from analyzer.render_times import Times
from analyzer.statistics.clients import Clients, Usage, line_of
from analyzer.statistics.model import Column, Line
from analyzer.terminal import say
from analyzer.verdict import RANK, breaks_at, verdict_of
from dissectors.releases import RELEASES, release_key

if TYPE_CHECKING:
    from analyzer.identity import Identity
    from captures.model import Resolved

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
@hosts_option
@input_options
def clients(wish: Wish, release: str | None, apis: bool, hosts: tuple[Resolved, ...]) -> int:
    """Clients: id, address, library, user, roles, what became of them, and where their API versions
    end.

    An outcome is `worked`, `gone` (how, and right after what), `stuck`, `kept out` (why), or `open`
    when the capture ends. With -Y, --from and --to it is that of the whole capture; all numbers are
    of what they select. Where -c stops, none is told.

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
        findings = None if apis or wish.count else Findings()
        selects = bool(wish.filter_text or wish.begin or wish.end)
        if findings is None or selects:
            found = Clients()
            count(reading, found, watch=findings is not None, hosts=hosts, whole=findings)
        else:
            found = findings.base.clients
            count(reading, findings, watch=True, hosts=hosts)
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
                ends = {} if findings is None else outcomes(findings, names)
                if findings is not None and selects:
                    ends = _of(found, ends, findings.base.clients)
                columns, name = (*Clients.COLUMNS, *extra, *OUTCOME), "client"
                lines = judged(found, release, ends)
                if wish.count:
                    reason = "not told: -c stops before the end"
                    lines = [{**line, "outcome_reason": reason} for line in lines]
            print_lines(lines, columns, f"{name}/1", wish, output, times)
        return reading.finish()


def _of(
    found: Clients, ends: Mapping[Identity, Outcome], whole: Clients
) -> dict[Identity, Outcome]:
    """What became of the clients of a selection. There a client may not have said its library or
    user, which all exchanges tell."""
    target = whole.targets()
    clients = [usage.identity for usage in found.usages()]
    pairs = [(each, target.get(each, each)) for each in clients]
    return {each: ends[whole_one] for each, whole_one in pairs if whole_one in ends}


def judged(
    found: Clients, release: str | None, ends: Mapping[Identity, Outcome] | None = None
) -> list[Line]:
    """The clients with where they break, and what became of them; with a release, those that break
    on it first. Behind them hosts that never came to a request."""
    ends = dict(ends or {})
    lines = []
    for usage in found.usages():
        line = {**line_of(usage), "breaks_at": breaks_at(usage)}
        if release is not None:
            verdict = verdict_of(usage, release)
            line["verdict"] = verdict.word
            line["why"] = [reason.text for reason in verdict.reasons]
        end = ends.pop(usage.identity, None)
        lines.append(line if end is None else {**line, **end.line()})
    if release is not None:
        lines.sort(key=lambda line: RANK[line["verdict"]])
    strangers = [{**line_of(Usage(each)), **end.line()} for each, end in ends.items()]
    return lines + found.rows()[len(lines) :] + strangers


def _remark(release: str) -> None:
    last = RELEASES[-1]
    if release_key(release)[:2] > release_key(last)[:2]:
        say(f"releases are known up to {last}; {release} is judged as {last}")
