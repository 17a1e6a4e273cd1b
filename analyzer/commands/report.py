"""`kafkascope report`: what there is to know about a capture, as one file to send."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import (
    complete_releases,
    hosts_option,
    known_release,
    reading_options,
)
from kafkascope.analyzer.commands.output import refuse_inputs, target_of
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.report.collect import collect
from kafkascope.analyzer.report.disguise import Disguise
from kafkascope.analyzer.report.markdown import markdown, ticket
from kafkascope.analyzer.report.page import page
from kafkascope.analyzer.report.sections import sections
from kafkascope.analyzer.terminal import say
from kafkascope.captures.model import Resolved
from kafkascope.private import PrivateFile

SUFFIXES: Final = (".html", ".htm", ".md", ".markdown")
REDACTED: Final = {
    "none": "Secrets are redacted; a report has no keys and values of records.",
    "values": "Keys and values of records, and all secrets, are redacted.",
    "keys": "Keys and values of records, and all secrets, are redacted.",
    "all": "Keys and values of records, all secrets, and names are redacted: clients, topics,"
    " groups, users, and addresses are pseudonyms.",
}


@command()
@setting(
    "--for release",
    "RELEASE",
    "Judge clients against this Kafka release",
    default="4.0",
    callback=known_release,
    shell_complete=complete_releases,
)
@setting(
    "--redact",
    "LEVEL",
    "Redact none, values, keys, or all (clients, topics, groups, addresses, too)",
    type=click.Choice(list(REDACTED)),
    default="values",
)
@setting("--full", "", "Write all sections to Markdown, not only a ticket")
@hosts_option
@reading_options("output", helps={"output": "File to write: .html or .md"})
def report(
    options: ReadOptions, release: str, redact: str, full: bool, hosts: tuple[Resolved, ...]
) -> int:
    """Write an HTML or Markdown report of a capture.

    -o FILE.html is one page with findings, clients and upgrade risks, latency, errors, groups, and
    topics, without scripts or network access. -o FILE.md is a ticket of 30 lines; with --full it
    has all sections.

    \b
      kafkascope report prod.pcapng -o prod.html
      kafkascope report prod.pcapng -o upgrade.md --for 4.1
      kafkascope report prod.pcapng -Y 'client == billing' -o b.html --redact all
    """
    path = _target(options)
    with Reading(options) as reading:
        refuse_inputs(str(path), options.inputs)
        if redact == "all" and reading.stored is not None:
            raise click.UsageError("--redact all needs captures: tables hold the names already")
        hides = redact == "all"
        disguise = Disguise(reading.capture.context.names) if hides else None
        facts = collect(reading, disguise, hosts)
        if path.suffix.lower() not in (".md", ".markdown"):
            text = page(facts, sections(facts, release), release, REDACTED[redact])
        elif full:
            text = markdown(facts, sections(facts, release), REDACTED[redact])
        else:
            text = ticket(facts, REDACTED[redact])
        with PrivateFile(path) as file:
            file.write(text.encode("utf-8", "replace"))
        if not options.quiet:
            say(f"{facts.span.exchanges:,} exchanges, report in {path}")
        return reading.finish(tls=False)


def _target(options: ReadOptions) -> Path:
    path = target_of(options.output, "-o FILE.html or -o FILE.md")
    if path.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"{path.name}: the name of a report ends with .html or .md")
    return path
