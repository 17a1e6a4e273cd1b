"""`kafkascope check`: what is worth knowing about a capture, with an exit code for CI."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from kafkascope.analyzer.checks.blocks import blocks, commands
from kafkascope.analyzer.checks.judging import NEVER, Checked, judged, summary
from kafkascope.analyzer.commands.grid import CommandTable, print_lines
from kafkascope.analyzer.commands.help import command, complete_from, setting
from kafkascope.analyzer.commands.limits import LIMITS
from kafkascope.analyzer.commands.options import (
    complete_releases,
    formatting_options,
    hosts_option,
    known_release,
)
from kafkascope.analyzer.commands.output import Output, refuse_inputs
from kafkascope.analyzer.findings import RANK, RULES, Cause, Findings
from kafkascope.analyzer.findings.causes import unfolded as flat
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import REPORTS, ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.terminal import row, say
from kafkascope.analyzer.text import suggestion
from kafkascope.captures.model import Resolved
from kafkascope.private import PrivateFile

FOUND: Final = 1
TABLE: Final = CommandTable(
    *("check", "finding/1", Findings.COLUMNS),
    Priority(("name", "count", "number"), ("text",)),
)
"""Where columns or an order are asked for, and in JSON."""


def _rules(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> set[str]:
    names = {name.strip() for text in value for name in text.split(",") if name.strip()}
    for name in sorted(names):
        if name not in RULES:
            hint = f"{suggestion(name, RULES)} (list: kafkascope check --rules)"
            raise click.BadParameter(f'there is no rule "{name}"{hint}')
    return names


def _known(
    ctx: click.Context, parameter: click.Parameter, value: Path | None
) -> frozenset[str] | None:
    if value is None:
        return None
    from kafkascope.analyzer.checks.baseline import WrongBaseline, read_baseline

    try:
        return read_baseline(value)
    except FileNotFoundError:
        raise click.BadParameter(
            f"there is no {value}; write it with --write-baseline {value}"
        ) from None
    except OSError as error:
        raise click.BadParameter(f"{value}: {error.strerror}") from None
    except WrongBaseline as error:
        raise click.BadParameter(f"{value}: {error}") from None


def _list_rules(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    for rule in RULES.values():
        row((rule.name, rule.severity, rule.title))
    ctx.exit(0)


_IDS: Final[dict[str, Any]] = {
    "multiple": True,
    "callback": _rules,
    "shell_complete": complete_from(lambda: RULES),
}
_ci_option, _rules_option = (partial(setting, section=name) for name in ("CI", "Rules"))


@command()
@_ci_option(
    "--fail-on",
    "SEVERITY",
    "Minimum severity that causes exit code 1: error, warning, note, chat, never",
    type=click.Choice([*RANK, NEVER]),
    default="warning",
)
@_rules_option("--rule only", "ID", "Run only this rule", **_IDS)
@_rules_option("--ignore", "ID", "Skip this rule", **_IDS)
@_rules_option(
    "--rules", "", "List rules and exit", is_eager=True, expose_value=False, callback=_list_rules
)
@setting(
    "--for release",
    "RELEASE",
    "Also report clients that do not work with this Kafka release: 4.0, 4.1.2",
    callback=known_release,
    shell_complete=complete_releases,
)
@setting("--all unfolded", "", "Show consequences and chats in full")
@_ci_option(
    "--baseline known",
    "FILE",
    "Report, and fail on, only findings that are not in FILE (of --write-baseline or --json)",
    type=click.Path(path_type=Path),
    callback=_known,
)
@_ci_option(
    "--write-baseline baseline",
    "FILE",
    "Accept current findings as the baseline: write FILE, and exit with 0",
    type=click.Path(path_type=Path),
)
@hosts_option
@formatting_options(*REPORTS)
def check(
    options: ReadOptions,
    fail_on: str,
    only: set[str],
    ignore: set[str],
    release: str | None,
    unfolded: bool,
    known: frozenset[str] | None,
    baseline: Path | None,
    hosts: tuple[Resolved, ...],
) -> int:
    """Find problems, most severe first; exit 1 for CI.

    A finding has symptom, cause, consequences, and fix.

    Exits with 1 if a finding has at least the severity of --fail-on, with 4 if the input was
    damaged and nothing was found, else with 0.

    \b
      kafkascope check prod.pcapng
      kafkascope check ci-run.pcapng --fail-on error --ignore redelivered
      kafkascope check prod.pcapng --for 4.1
      kafkascope check prod.pcapng --json | jq 'select(.severity=="error")'
      kafkascope check ci.pcapng --format junit -o kafka.xml
    """
    if options.form in REPORTS and (options.columns or options.sort or options.fields):
        raise click.UsageError(f"--format {options.form} takes no --columns, --sort, or -e")
    if baseline is not None:
        refuse_inputs(str(baseline), options.inputs)
    with Reading(options) as reading:
        payloads = None if reading.stored is not None else reading.payloads

        def empty() -> Findings:
            return Findings(only or None, ignore, release=release or "", payloads=payloads)

        findings, whole = empty(), empty() if reading.is_piece else None
        count(reading, findings, watch=not options.filter_text, hosts=hosts, whole=whole)
        causes = findings.causes(reading.capture.context.names, whole, reading.span())
        found = judged(causes, known or (), NEVER if baseline is not None else fail_on)
        new = [each.cause for each in found if not each.known] if known else causes
        every = flat(causes)
        old = [each for each in every if each.key in (known or ())]
        rules = [name for name in RULES if name in findings.wanted]
        with Output(options, log=True) as output:
            if options.form in REPORTS:
                _report(found, new, rules, options, reading.times(), output, known is not None)
            elif options.form == "table" and not (options.columns or options.sort):
                shown = list(map(Cause, flat(new))) if unfolded else new
                how = reading.times(), output.width, options.source()
                for text, style in blocks(shown[: options.top], *how, chats_too=unfolded):
                    output.line(text, style)
            else:
                lines = [each.line() for each in every if each.key not in (known or ())]
                print_lines(TABLE._replace(lines=lines), output, reading)
        if baseline is not None:
            from kafkascope.analyzer.checks.baseline import baseline_lines

            with PrivateFile(baseline) as file:
                file.write(baseline_lines(each.key for each in every))
        code = reading.finish(tls=all(each.name != "tls-opaque" for each in every))
        if not options.quiet:
            for sentence in findings.truncation_notes():
                say(sentence)
            if reading.capture.logs is not None and findings.of_logs:
                say(reading.capture.logs.left_out())
            if known is not None:
                from kafkascope.analyzer.checks.baseline import gone_line

                found_keys = (each.key for each in every)
                if text := gone_line(known, found_keys, rules, LIMITS.gone_keys):
                    say(text)
            if reading.exchanges_read:
                say(summary(new, len(old)))
        if any(each.failing for each in found):
            return code if code not in (0, 4) else FOUND
        return code


def _report(
    found: list[Checked],
    causes: list[Cause],
    rules: list[str],
    options: ReadOptions,
    times: Times,
    output: Output,
    compared: bool,
) -> None:
    found, causes = found[: options.top], causes[: options.top]
    match options.form:
        case "junit":
            from kafkascope.analyzer.checks.junit import junit

            for line in junit(found, rules, times, options.source()).split("\n"):
                output.line(line)
        case "sarif":
            from kafkascope.analyzer.checks.sarif import sarif

            output.json_line(sarif(found, rules, options.inputs, compared))
        case _:
            for line in commands(causes, times, options.source()):
                output.command(line)
