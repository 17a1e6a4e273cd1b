"""`kafkascope diff`: two exchanges field by field, or two captures API by API."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.limits import LIMITS
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading, RowAndExchange
from kafkascope.analyzer.render.layout import GAP, laid_out, widths_of
from kafkascope.analyzer.render.tree import text_of
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import columns_taken, safe, wrapped
from kafkascope.analyzer.transform.compared import compared, decoder
from kafkascope.analyzer.transform.profiles import Profile, contrasts
from kafkascope.dissectors.registry import api_named
from kafkascope.errors import USAGE

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads

_ONE: Final = re.compile(r"(.*)#(\d{1,12})\Z", re.DOTALL)
DIFFERENT: Final = 1
LINE: Final = 100


class DiffArgument(NamedTuple):
    """One of the two arguments."""

    path: str
    number: int | None
    """Number of the exchange; None for the whole capture."""

    @property
    def title(self) -> str:
        """As the user wrote it, without the folder."""
        name = safe(Path(self.path).name)
        return name if self.number is None else f"{name} #{self.number}"


@command()
@reading_options(
    "output", "form", "as_json", helps={"form": "Output format: json, jsonl (default: text)"}
)
@setting("--api", "NAME", "Compare only this API (captures only)")
@setting(
    "--side",
    "SIDE",
    "Compare request, response, or both (default: request for captures, both for exchanges)",
    type=click.Choice(["request", "response", "both"]),
)
@setting("--strict", "", "Also compare times, IDs, and other volatile values")
@setting("--hex show_hex", "", "Show the bytes of each field (exchanges only)")
def diff(
    options: ReadOptions, api: str | None, side: str | None, strict: bool, show_hex: bool
) -> int:
    """Compare two captures, or two exchanges.

    Captures are compared API by API, exchanges (FILE#NUMBER) field by field. Exits with 1 if they
    differ.

    \b
      kafkascope diff java.pcapng librdkafka.pcapng --api Fetch
      kafkascope diff java.pcapng#12 librdkafka.pcapng#31 --hex
      kafkascope diff before.pcapng after.pcapng -Y 'client == orders-svc'
    """
    if len(options.inputs) != 2:
        raise click.UsageError(
            "diff compares two inputs: write A.pcap B.pcap, or A.pcap#12 B.pcap#31"
        )
    if options.form in ("tsv", "csv"):
        raise click.UsageError("diff prints text or JSON: leave out --format, or use --json")
    left, right = (_side(text) for text in options.inputs)
    if (left.number is None) != (right.number is None):
        raise click.UsageError(
            "one input is an exchange, the other a capture: write FILE#NUMBER twice, or FILE twice"
        )
    if left.number is None:
        sides = ("request", "response") if side == "both" else (side or "request",)
        return _captures(options, left, right, api, sides, strict)
    if api:
        raise click.UsageError("--api compares captures: leave it out for FILE#NUMBER")
    sides = (side,) if side in ("request", "response") else ("request", "response")
    return _exchanges(options, left, right, sides, strict, show_hex)


def _side(text: str) -> DiffArgument:
    found = _ONE.match(text)
    if found is None or Path(text).exists():
        return DiffArgument(text, None)
    return DiffArgument(found[1], int(found[2]))


# --- captures


def _captures(
    options: ReadOptions,
    left: DiffArgument,
    right: DiffArgument,
    api: str | None,
    sides: tuple[str, ...],
    strict: bool,
) -> int:
    wanted = api_named(api).name if api else ""
    (one, bad), (two, worse) = (_profile(options, side, sides, wanted) for side in (left, right))
    found = list(contrasts(one, two, strict=strict))
    with Output(options) as output:
        if options.form in ("json", "jsonl"):
            for each in found:
                output.json_line({"schema": "contrast/1", **each._asdict()})
        elif found:
            _print_contrasts(output, left, right, found)
    return bad or worse or _compared(options, bool(found))


def _profile(
    options: ReadOptions, side: DiffArgument, sides: tuple[str, ...], api: str
) -> tuple[Profile, int]:
    profile = Profile(sides)
    with Reading(replace(options, inputs=(side.path,)), once=True) as reading:
        for _, exchange in reading.rows():
            if not api or exchange.api == api:
                profile.add(exchange)
        return profile, reading.finish(tls=False)


def _print_contrasts(
    output: Output, left: DiffArgument, right: DiffArgument, found: list[Any]
) -> None:
    """APIs that one side alone uses on a line each, then what both do differently, API by API; a
    line for a thing where it fits, else one for each side."""
    names, room = (left.title, right.title), output.width or LINE
    output.line(f"{names[0]} | {names[1]}", "header")
    alone = [each for each in found if "-" in (each.left, each.right) and each.what == "requests"]
    for side, title in enumerate(names):
        only = [f"{each.api} ({each[2 + side]})" for each in alone if each[2 + side] != "-"]
        if only:
            output.line("")
            listed = f"only {title}: {', '.join(only)}"
            for part in wrapped(listed, room, hanging="  ") if output.width else [listed]:
                output.line(part)
    rest = [each for each in found if each not in alone]
    width = min(max((len(each.what) for each in rest), default=0), LIMITS.difference_columns)
    widths = widths_of([name, ""] for name in names)
    api = None
    for each in rest:
        if each.api != api:
            output.line("")
            output.line(each.api or "all of it", "header")
            api = each.api
        left_text, right_text = safe(each.left), safe(each.right)
        line = f"  {each.what:<{width}}  {left_text} | {right_text}"
        if columns_taken(line) <= room:
            output.line(line)
            continue
        output.line(f"  {each.what}")
        for cells in zip(names, (left_text, right_text), strict=True):
            text = "      " + laid_out(cells, widths, whole=True)
            hanging = " " * (6 + widths[0] + len(GAP))
            parts = wrapped(text, room, indent="      ", hanging=hanging, breaks=True)
            for part in parts if output.width else [text]:
                output.line(part)


# --- exchanges


def _exchanges(
    options: ReadOptions,
    left: DiffArgument,
    right: DiffArgument,
    sides: tuple[str, ...],
    strict: bool,
    show_hex: bool,
) -> int:
    (one, bad, ours), (two, worse, theirs) = (_exchange_of(options, side) for side in (left, right))
    if one is None or two is None:
        return bad or worse or USAGE
    different = False
    with Output(options) as output:
        for line in compared(one[1], two[1], sides, strict, show_hex, decoder(ours, theirs)):
            different = True
            if options.form in ("json", "jsonl"):
                output.json_line({"schema": "difference/1", **line})
                continue
            output.line(safe(f"{line['side']}.{line['path']}"))
            for mark, name, title in (("-", "left", left.title), ("+", "right", right.title)):
                octets = f"   {line[name + '_bytes']}" if line.get(name + "_bytes") else ""
                output.line(f"  {mark} {title}: {safe(text_of(line[name]))}{octets}")
    return bad or worse or _compared(options, different)


def _compared(options: ReadOptions, different: bool) -> int:
    if not different and not options.quiet and options.form == "table":
        say("no difference")
    return DIFFERENT if different else 0


def _exchange_of(
    options: ReadOptions, side: DiffArgument
) -> tuple[RowAndExchange | None, int, Payloads | None]:
    """Return the exchange of a side, the exit code, and what decodes its records."""
    with Reading(replace(options, inputs=(side.path,)), once=True) as reading:
        payloads = reading.payloads
        for row, exchange in reading.rows():
            if row.number == side.number:
                return (row, exchange), 0, payloads
        code = reading.finish(tls=False)
        say(reading.no_exchange(str(side.number), safe(side.path)))
        return None, code, None
