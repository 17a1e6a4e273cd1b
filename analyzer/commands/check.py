"""`kafkascope check`: what is worth knowing about a capture, with an exit code for CI."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any, Final

import click

from kafkascope.analyzer.commands.grid import print_lines
from kafkascope.analyzer.commands.hosts import hosts_option
from kafkascope.analyzer.commands.options import input_options, known_release
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.findings import RANK, RULES, Cause, Findings
from kafkascope.analyzer.findings.causes import apart, counted, names_of
from kafkascope.analyzer.findings.causes import unfolded as flat
from kafkascope.analyzer.findings.view import plural
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.terminal import row, say
from kafkascope.analyzer.text import packed, safe, wrapped
from kafkascope.captures.model import Resolved

FOUND: Final = 1
NEVER: Final = "never"
SIGNS: Final = {"error": "!", "warning": "?", "note": "~", "chat": "~"}
INDENT: Final = "    "
PIPE_WIDTH: Final = 10_000
_WORD: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"]|")+')
"""Of a filter: a blank inside of a string is a part of it."""


def _rules(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> set[str]:
    names = {name.strip() for text in value for name in text.split(",") if name.strip()}
    for name in sorted(names):
        if name not in RULES:
            from difflib import get_close_matches

            near = get_close_matches(name, RULES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise click.BadParameter(f'there is no rule "{name}"{hint} (list: check --rules)')
    return names


def _list_rules(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    for rule in RULES.values():
        row((rule.name, rule.severity, rule.title))
    ctx.exit(0)


@click.command()
@click.option(
    "--fail-on",
    type=click.Choice([*RANK, NEVER]),
    default="warning",
    show_default=True,
    help="The mildest severity that makes the exit code 1.",
)
@click.option("--rule", "only", multiple=True, metavar="ID", callback=_rules, help="Only these.")
@click.option("--ignore", multiple=True, metavar="ID", callback=_rules, help="All but these.")
@click.option(
    "--rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_rules,
    help="List the rules and leave.",
)
@click.option(
    "--for",
    "release",
    metavar="RELEASE",
    callback=known_release,
    help="A Kafka release that all clients have to work with: 4.0, 4.1.2.",
)
@click.option(
    "--all", "unfolded", is_flag=True, help="Consequences and chats in full, each on its own."
)
@hosts_option
@input_options
def check(
    options: ReadOptions,
    fail_on: str,
    only: set[str],
    ignore: set[str],
    release: str | None,
    unfolded: bool,
    hosts: tuple[Resolved, ...],
) -> int:
    """Causes, the worst and earliest first: what is wrong, how often, since when, what to do about
    it, and what followed from it.

    Ends with 1 when something is at least as bad as --fail-on says, 0 otherwise, 4 when the input
    was damaged and nothing was found.

    \b
      kafkascope check prod.pcapng
      kafkascope check ci-run.pcapng --fail-on error --ignore redelivered
      kafkascope check prod.pcapng --for 4.1
      kafkascope check prod.pcapng --json | jq -r 'select(.severity=="error") | .text'
    """
    with Reading(options) as reading:
        payloads = None if reading.stored is not None else reading.payloads

        def empty() -> Findings:
            return Findings(only or None, ignore, release=release or "", payloads=payloads)

        findings, whole = empty(), empty() if reading.is_piece else None
        count(reading, findings, watch=not options.filter_text, hosts=hosts, whole=whole)
        times = reading.times()
        causes = findings.causes(reading.capture.context.names, whole)
        found = flat(causes)
        with Output(options) as output:
            if options.form == "table" and not (options.columns or options.sort):
                told = list(map(Cause, found)) if unfolded else causes
                _print_blocks(told[: options.top], times, output, unfolded)
            else:
                lines = [finding.line() for finding in found]
                print_lines(lines, Findings.COLUMNS, "finding/1", options, output, times)
        code = reading.finish(tls=all(each.name != "tls-opaque" for each in found))
        if not options.quiet:
            for sentence in findings.beyond():
                say(sentence)
        if not options.quiet and reading.exchanges_read:
            say(f"{_summary(causes)}")
        if fail_on != NEVER and any(RANK[f.severity] <= RANK[fail_on] for f in found):  # type: ignore[index]
            return code if code not in (0, 4) else FOUND
        return code


def _summary(causes: list[Cause]) -> str:
    counts = [plural(n, word) for word, n in counted(causes).items() if n]
    return ", ".join(counts) if counts else "nothing found"


def _print_blocks(causes: Iterable[Cause], times: Times, output: Output, chats_too: bool) -> None:
    """Blocks of causes, and chats in one line at the end unless they are wanted as blocks."""
    width = output.width or PIPE_WIDTH
    shown, chats = (list(causes), []) if chats_too else apart(list(causes))
    between = False
    for cause in shown:
        if between:
            output.line("")
        between = True
        for text, style in block(cause, times, width):
            output.line(text, style)
    if chats:
        if between:
            output.line("")
        names = names_of(chats)
        said = f"chat: normal, and often taken for trouble: {names} (--all tells them)"
        for part in wrapped(said, width, hanging=INDENT):
            output.line(part, SIGNS["chat"])


def block(cause: Cause, times: Times, width: int) -> Iterable[tuple[str, str]]:
    """(line, style): severity and sentence, how often and when, what followed, evidence, advice."""
    finding = cause.finding
    for part in wrapped(f"{finding.severity}: {finding.text}", width, hanging=INDENT):
        yield part, SIGNS[finding.severity]
    when = ""
    if finding.first_ns is not None:
        when = f", {times.text(finding.first_ns)}"
        if finding.last_ns not in (None, finding.first_ns):
            when += f" to {times.text(finding.last_ns or 0)}"
    parts = [f"{finding.name}, {finding.count:,} x{when}".split()]
    if cause.consequences:
        parts.append(f"therefore: {cause.therefore()}".split())
    if finding.filter:
        # Blanks between the words of a filter mean nothing: it can be copied with its line breaks.
        parts.append(["see:", "-Y", *_WORD.findall(safe(shlex.quote(finding.filter)))])
    if finding.connects:
        command = ["see:", "kafkascope", "stats", "connections", "INPUT", "-Y"]
        parts.append([*command, *_WORD.findall(safe(shlex.quote(finding.connects)))])
    parts.append(f"do: {finding.advice}".split())
    if finding.link:
        parts.append(f"more: kafkascope errors {finding.link}".split())
    for words in parts:
        for part in packed(words, width, indent=INDENT, hanging=INDENT * 2):
            yield part, ""


def listing() -> list[dict[str, Any]]:
    """All rules, for docs."""
    return [rule._asdict() for rule in RULES.values()]
