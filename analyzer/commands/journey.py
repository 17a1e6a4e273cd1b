"""`kafkascope journey`: the way of a record from its producer to its readers, as text, JSON, or
OpenTelemetry spans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.limits import LIMITS
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output, refuse_inputs
from kafkascope.analyzer.export.otlp import FORMATS, encoded, spans_of, trace_parent
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.statistics.journeys.joins import Joins
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from kafkascope.analyzer.statistics.journeys.model import Journey
from kafkascope.analyzer.statistics.journeys.printed import as_json, journey_lines
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import plural, safe
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.private import PrivateFile

RECORD: Final = re.compile(r"(.+)-(\d{1,10})@(\d{1,19})")
RecordPosition = tuple[str, int, int]
"""Topic, partition, and offset."""


@command(also="[TOPIC-PARTITION@OFFSET]...")
@setting("--key", "TEXT", "Follow the records with this key")
@setting(
    "--otlp", "FILE", "Write the legs as OpenTelemetry spans: FILE.json, or FILE.pb (protobuf)"
)
@input_options
def journey(options: ReadOptions, key: str | None, otlp: str | None) -> int:
    """Show where a record went, from producer to readers.

    Shows when the record was sent, acknowledged, visible, replicated, fetched by each group, and
    committed, by the packets of the capture. Name the record by topic, partition, and offset, or
    choose records by --key or -Y. With --otlp each leg is a span, in the trace that the record's
    header traceparent names.

    \b
      kafkascope journey prod.pcapng orders-3@88123
      kafkascope journey prod.pcapng --key customer-4711
      kafkascope journey prod.pcapng -Y 'record.value contains "4711"' -n 3 --json
      kafkascope journey prod.pcapng -Y 'topic == orders' --otlp orders.json
    """
    encoding = None
    if otlp is not None:
        refuse_inputs(otlp, options.inputs)
        encoding = FORMATS.get(Path(otlp).suffix.lower()[1:])
        if encoding is None:
            raise click.BadParameter(
                f'"{otlp}": the name ends with .json, or with .pb for protobuf', param_hint="--otlp"
            )
    inputs, named = _inputs_and_records(options.inputs)
    if key is not None:
        chosen = f"record.key == {quoted(key)}"
        both = f"({options.filter_text}) and {chosen}" if options.filter_text else chosen
        options = replace(options, filter_text=both)
    if named and options.filter_text:
        raise click.UsageError("name a record, or choose records by --key or -Y, not both")
    if not named and not options.filter_text:
        raise click.UsageError("name a record as TOPIC-PARTITION@OFFSET, or use --key or -Y")
    options = replace(options, inputs=inputs)
    if not named:
        if "-" in inputs:
            raise click.UsageError("--key and -Y read the input twice: use a file, not -")
        named = list(dict.fromkeys(_matching_records(options)))
        most = options.top or (LIMITS.journeys if otlp is None else LIMITS.traced_journeys)
        if len(named) > most and not options.quiet:
            say(f"{plural(len(named) - most, 'more record')} left out; -n shows more")
        named = named[:most]
        options = replace(options, filter_text="", top=None)
    counted = Journeys(only=[(partition, offset) for _, partition, offset in named])
    with Reading(options) as reading:
        count(reading, counted)
        joins = Joins(counted, reading.capture.context.names)
        journeys = (journey for record in named for journey in joins.journeys(*record))
        if otlp is not None and encoding is not None:
            _write_spans(list(journeys), otlp, encoding, options)
            return reading.finish()
        with Output(options) as output:
            times = reading.times()
            for index, each in enumerate(journeys):
                if options.form in ("json", "jsonl"):
                    output.element({"schema": "journey/1", **as_json(each)})
                    continue
                if index:
                    output.line("")
                for line in journey_lines(each, times):
                    output.line(line)
            output.end()
        if not named:
            reading.lacks("records of this choice")
        for topic in dict.fromkeys(topic for topic, _, _ in named):
            if topic not in joins.topics:
                reading.lacks(f"topic {safe(topic)}")
        return reading.finish()


def _inputs_and_records(words: tuple[str, ...]) -> tuple[tuple[str, ...], list[RecordPosition]]:
    """Split the arguments into inputs and records; the first argument is an input."""
    inputs, named = [words[0]], list[RecordPosition]()
    for word in words[1:]:
        match = None if word == "-" or Path(word).exists() else RECORD.fullmatch(word)
        if match:
            named.append((match[1], int(match[2]), int(match[3])))
        else:
            inputs.append(word)
    return tuple(inputs), named


def _matching_records(options: ReadOptions) -> Iterator[RecordPosition]:
    """Yield the records that match the filter and have an offset."""
    from kafkascope.analyzer.exchanges.records import Problem, record_lines

    problems: list[Problem] = []
    with Reading(replace(options, jobs=1, top=None), records=True) as reading:
        about = reading.capture.context.names, problems, reading.payloads, reading.chosen
        for _, exchange in reading.rows():
            for lines in record_lines(exchange, *about):
                for record in map(loads, lines.splitlines()):
                    if record["offset"] is not None and not record["control"]:
                        yield record["topic"], record["partition"], record["offset"]


def _write_spans(journeys: list[Journey], otlp: str, encoding: str, options: ReadOptions) -> None:
    spans = [span for each in journeys for span in spans_of(each)]
    with PrivateFile(Path(otlp)) as file:
        file.write(encoded(spans, encoding))
    if options.quiet:
        return
    say(f"{plural(len(spans), 'span')} of {plural(len(journeys), 'record')} in {safe(otlp)}")
    untraced = Counter(
        "an unknown producer" if each.produced is None else each.produced.application
        for each in journeys
        if trace_parent(each.traceparent) is None
    )
    for application, records in untraced.most_common(LIMITS.untraced_producers):
        say(f"no traceparent: {plural(records, 'record')} of {safe(application)}")
    if (more := len(untraced) - LIMITS.untraced_producers) > 0:
        say(f"no traceparent: {plural(more, 'more producer')}")
