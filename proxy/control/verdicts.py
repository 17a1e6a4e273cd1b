"""Holds recordings against expectations: the process beside the proxy that `expecting` asks.

One function for each kind of expectation reads the files and returns what matches; the sentence and
the answer are made alike for all.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafkascope.analyzer.exchanges.records import Chosen, Problem, record_lines
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.filter.bind import bind, fields_of
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.fields import DECODED
from kafkascope.analyzer.filter.language import compile_filter, parse
from kafkascope.analyzer.filter.syntax import And, Compare, Has, In, Not, Or, Tree
from kafkascope.analyzer.reading.options import ReadOptions, SchemaOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.listing import columns_of
from kafkascope.analyzer.render.times import Mark, Times
from kafkascope.analyzer.terminal import json_out
from kafkascope.analyzer.text import safe
from kafkascope.errors import Error
from kafkascope.proxy import answers
from kafkascope.proxy.control.expecting import Expected
from kafkascope.proxy.limits import LIMITS, Limits

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.findings import Cause
    from kafkascope.analyzer.model import Exchange


class _Term(NamedTuple):
    holds: Callable[[Row, Exchange], bool]
    names: tuple[str, ...]


class Nearest:
    """Looks at requests, and keeps the first of those that meet most terms."""

    def __init__(self, text: str) -> None:
        """`text`: a filter; only one whose terms all have to hold has something nearest."""
        self._terms = _terms(text)
        self._most = 0
        self._text = ""

    def __str__(self) -> str:
        return self._text

    def see(self, row: Row, exchange: Exchange) -> None:
        if not self._terms:
            return
        missed = [term for term in self._terms if not term.holds(row, exchange)]
        met = len(self._terms) - len(missed)
        if missed and met > self._most:
            self._most = met
            self._text = _line(row, exchange, missed)


def _terms(text: str) -> list[_Term]:
    tree = parse(text)
    if not isinstance(tree, And) or len(tree.terms) > LIMITS.nearest_terms:
        return []
    if fields_of(bind(text)) & DECODED:
        return []
    return [
        _Term(compile_filter(str(term)), tuple(dict.fromkeys(_names(term)))) for term in tree.terms
    ]


def _names(tree: Tree) -> Iterator[str]:
    match tree:
        case And() | Or():
            for term in tree.terms:
                yield from _names(term)
        case Not():
            yield from _names(tree.term)
        case Has() | Compare() | In():
            yield tree.name.text
        case _:
            pass  # a text, which any field may hold


def _line(row: Row, exchange: Exchange, missed: list[_Term]) -> str:
    had = "; ".join(_had(name, row, exchange) for term in missed for name in term.names)
    client = f" of {row.client_id}" if row.client_id else ""
    about = f": {had}" if had else ""
    text = f"{row.api} v{row.api_version}{client} (number {row.number}) came nearest{about}"
    return f"  {safe(text)}"  # it is printed in tests' reports


def _had(name: str, row: Row, exchange: Exchange) -> str:
    try:
        (column,) = columns_of((name,), Times("a"))
    except FilterError:
        return f"{name} is another"
    value = column.cell(row, exchange)
    if len(value) > LIMITS.value_chars:
        value = f"{value[: LIMITS.value_chars]}..."
    return f"{name} is {value}" if value else f"{name} has no value"


OTHERS: Final = "others"
NOUNS: Final = {"exchanges": "request", "records": "record", "findings": "finding"}


@dataclass(slots=True)
class Seen:
    """What a recording has."""

    limit: int
    """How many of those that match are kept."""
    found: int = 0
    there: Counter[str] = field(default_factory=Counter)
    """All that there is, whether it matches or not, by name."""
    listed: list[Any] = field(default_factory=list)
    """Those that match, as far as an answer may hold them."""
    remark: str = ""
    """A line after the sentence: what came nearest, or what is in the way."""
    size: int = 0
    limits: Limits = LIMITS

    def count(self, name: str) -> None:
        if name not in self.there and len(self.there) >= self.limits.expected_names:
            name = OTHERS
        self.there[name] += 1

    def add(self, line: bytes) -> None:
        self.found += 1
        if len(self.listed) < self.limit and self.size < self.limits.expected_bytes:
            self.size += len(line)
            self.listed.append(json.loads(line))


def verdict(files: Sequence[str], expected: Expected, schemas: SchemaOptions) -> dict[str, Any]:
    begin = Mark("absolute", expected.since_ns) if expected.since_ns else None
    options = ReadOptions(
        tuple(files), filter_text=expected.filter, begin=begin, quiet=True, jobs=1, schemas=schemas
    )
    look = {"exchanges": _exchanges, "records": _records, "findings": _findings}[expected.of]
    seen = look(options, expected)
    census = dict(sorted(seen.there.items()))
    met = expected.is_met_by(seen.found)
    return {
        "met": met,
        "found": seen.found,
        "text": "" if met else sentence(expected, seen.found, census, seen.remark),
        "sent": census,
        expected.of: seen.listed,
    }


def sentence(expected: Expected, found: int, there: dict[str, int], remark: str = "") -> str:
    """Return what is wrong with a number of matches, with what there was instead."""
    noun = NOUNS[expected.of]
    many = f"no {noun}" if not found else f"1 {noun}" if found == 1 else f"{found} {noun}s"
    if expected.of == "findings" and expected.level != "chat":
        many += f" of level {expected.level} or worse"
    if found and expected.of == "findings" and expected.wanted == 0:
        return f"{many}:\n{remark}"
    wanted = f", not {expected.wanted}," if found else ""
    which = f" with {expected.filter}" if expected.filter else ""
    of = "of " if expected.of == "records" else ""
    listing = ", ".join(f"{number} {of}{name}" for name, number in there.items())
    text = f"{many}{wanted}{which}; there were {listing or 'none at all'}"
    return f"{text}\n{remark}" if remark and not found else text


def _exchanges(options: ReadOptions, expected: Expected) -> Seen:
    seen = Seen(expected.limit)

    def every(row: Row, exchange: Exchange) -> None:
        if row.time_ns >= expected.since_ns:
            seen.count(f"{row.api} v{row.api_version}")
            nearest.see(row, exchange)

    with Reading(options) as reading:
        nearest = Nearest(expected.filter)  # a wrong filter has been refused
        reading.on_exchange = every
        for row, _ in reading.rows():
            seen.add(json_of_row(row))
    seen.remark = str(nearest)
    return seen


def _records(options: ReadOptions, expected: Expected) -> Seen:
    seen = Seen(expected.limit)

    def lines(exchange: Exchange, chosen: Chosen | None = None) -> Iterator[bytes]:
        problems: list[Problem] = []  # what cannot be read is no record
        names = reading.capture.context.names
        for piece in record_lines(exchange, names, problems, reading.payloads, chosen):
            yield from piece.splitlines()

    def every(row: Row, exchange: Exchange) -> None:
        if row.time_ns >= expected.since_ns:
            for record in map(json.loads, lines(exchange)):
                topic = record["topic"] or record["topic_id"]
                seen.count(f"{topic} ({record['source']})")
                seen.remark = seen.remark or _undecoded(record)

    with Reading(options, records=True) as reading:
        reading.on_exchange = every
        for _, exchange in reading.rows():
            for line in lines(exchange, reading.chosen):
                seen.add(line)
    return seen


def _undecoded(record: dict[str, Any]) -> str:
    """Return why a key or value could not be decoded; empty where nothing failed."""
    for side in ("key_error", "value_error"):
        if error := record.get(side):
            place = f"offset {record['offset']} of {safe(str(record['topic']))}"
            return f"  {side} {error['reason']} at {place}"
    return ""


def _findings(options: ReadOptions, expected: Expected) -> Seen:
    from kafkascope.analyzer.checks.judging import fails
    from kafkascope.analyzer.findings import RANK, RULES, Cause, Findings
    from kafkascope.analyzer.reading.counting import count
    from kafkascope.analyzer.statistics.table import json_line
    from kafkascope.dissectors.codec.jsonform import dumps

    if expected.level not in RANK:
        raise ValueError(f"`level` must be one of {', '.join(RANK)}, not {expected.level!r}")
    for name in expected.allow:
        if name not in RULES:
            raise ValueError(f"`allow`: unknown rule {name!r} (kafkascope check --rules)")
    seen = Seen(expected.limit)
    with Reading(options) as reading:
        payloads = reading.payloads
        findings = Findings(payloads=payloads)
        whole = Findings(payloads=payloads) if reading.is_piece else None
        count(reading, findings, watch=not reading.is_piece, whole=whole)
        causes = findings.causes(reading.capture.context.names, whole)
        bad: list[tuple[Cause, str]] = []
        for cause in causes:
            for finding in (cause.finding, *cause.consequences):
                seen.count(f"{finding.severity} {finding.name}")
                if fails(finding, expected.level) and finding.name not in expected.allow:
                    seen.add(dumps(json_line(Findings.COLUMNS, finding.line(), "finding/1")))
                    follows = finding is not cause.finding
                    bad.append((Cause(finding), cause.finding.text) if follows else (cause, ""))
        seen.remark = "\n".join(_finding_lines(bad, reading.times(), options.source()))
    return seen


def _finding_lines(bad: Sequence[tuple[Cause, str]], times: Times, source: str) -> Iterator[str]:
    """Yield the lines about findings: causes with what followed from them, and consequences whose
    cause is milder, or allowed, with the sentence of that."""
    from kafkascope.analyzer.checks.blocks import INDENT, UNBROKEN, block

    places = {cause.finding.id for cause, _ in bad}
    heads = [
        (cause, because)
        for cause, because in bad
        if not (because and places.intersection(cause.finding.because))
    ]
    for cause, because in heads[: LIMITS.shown_findings]:
        for text, _ in block(cause, times, UNBROKEN, source):
            yield text
        if because:
            yield f"{INDENT}because: {because}"
    if len(heads) > LIMITS.shown_findings:
        yield f"and {len(heads) - LIMITS.shown_findings} more"


def main() -> None:
    folders, assigned, *others = json.loads(sys.argv[1])
    schemas = SchemaOptions(tuple(folders), tuple(assigned), *others)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        files = request.pop("files")
        try:
            result = verdict(files, Expected(**request), schemas)
        except click.ClickException as error:
            result = {"error": error.format_message()}
        except (Error, OSError, ValueError) as error:
            result = {"error": str(error)}
        json_out(answers.written(result)[:-1])


if __name__ == "__main__":
    main()
