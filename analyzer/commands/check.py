"""`kafkascope check`: what is worth knowing about a capture, with an exit code for CI."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap
from typing import Any, Final

import click

from analyzer.commands.counting import count
from analyzer.commands.grid import print_lines
from analyzer.commands.options import Wish, input_options
from analyzer.commands.output import Output
from analyzer.commands.reading import Reading
from analyzer.findings import RANK, RULES, Finding, Findings
from analyzer.render_list import safe
from analyzer.render_times import Times

FOUND: Final = 1
NEVER: Final = "never"
SIGNS: Final = {"error": "!", "warning": "?", "note": "~", "chat": "~"}
INDENT: Final = "    "
PIPE_WIDTH: Final = 10_000


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
        click.echo(f"{rule.name}\t{rule.severity}\t{rule.title}")
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
@input_options
def check(wish: Wish, fail_on: str, only: set[str], ignore: set[str]) -> int:
    """Findings, the worst first: what is wrong, how often, since when, and what to do about it.

    Ends with 1 when something is at least as bad as --fail-on says, 0 otherwise, 4 when the input
    was damaged and nothing was found.

    \b
      kafkascope check prod.pcapng
      kafkascope check ci-run.pcapng --fail-on error --ignore breaks-on-upgrade
      kafkascope check prod.pcapng --json | jq -r 'select(.severity=="error") | .text'
    """
    with Reading(wish) as reading:
        findings = Findings(only or None, ignore)
        count(reading, findings, watch=not wish.filter_text)
        times = Times(wish.time_format)
        times.saw(reading.first_ns)
        found = findings.told(reading.capture.context.names)
        with Output(wish) as output:
            if wish.form == "table" and not (wish.columns or wish.sort):
                _print_blocks(found[: wish.top], times, output)
            else:
                lines = [finding.line() for finding in found]
                print_lines(lines, Findings.COLUMNS, "finding/1", wish, output, times)
        code = reading.finish()
        if not wish.quiet and reading.told:
            click.echo(f"kafkascope: {_summary(found)}", err=True)
        if fail_on != NEVER and any(RANK[f.severity] <= RANK[fail_on] for f in found):  # type: ignore[index]
            return code if code not in (0, 4) else FOUND
        return code


def _summary(found: list[Finding]) -> str:
    counts = {word: sum(each.severity == word for each in found) for word in RANK}
    told = [f"{n} {word}{'s' * (n != 1)}" for word, n in counts.items() if n]
    return ", ".join(told) if told else "nothing found"


def _print_blocks(found: Iterable[Finding], times: Times, output: Output) -> None:
    for index, finding in enumerate(found):
        if index:
            output.line("")
        for text, style in block(finding, times, output.width or PIPE_WIDTH):
            output.line(text, style)


def block(finding: Finding, times: Times, width: int) -> Iterable[tuple[str, str]]:
    """(line, style): severity and sentence, then how often and when, evidence, advice."""
    head = f"{finding.severity}: {finding.text}"
    for part in wrap(head, width, subsequent_indent=INDENT, break_long_words=False):
        yield part, SIGNS[finding.severity]
    when = ""
    if finding.first_ns is not None:
        when = f", {times.text(finding.first_ns)}"
        if finding.last_ns not in (None, finding.first_ns):
            when += f" to {times.text(finding.last_ns or 0)}"
    yield f"{INDENT}{finding.name}, {finding.count:,} x{when}", ""
    if finding.filter:
        yield f"{INDENT}see: -Y {safe(_shell(finding.filter))}", ""
    yield from (
        (part, "")
        for part in wrap(
            f"do: {finding.advice}",
            width,
            initial_indent=INDENT,
            subsequent_indent=INDENT + "    ",
            break_long_words=False,
        )
    )
    if finding.link:
        yield f"{INDENT}more: kafkascope errors {finding.link}", ""


def _shell(text: str) -> str:
    import shlex

    return shlex.quote(text)


def listing() -> list[dict[str, Any]]:
    """All rules, for docs."""
    return [rule._asdict() for rule in RULES.values()]
