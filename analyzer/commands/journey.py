"""`kafkascope journey` and `kafkascope stats journeys`: the ways of records, and how long they
take."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from kafkascope.analyzer.commands.grid import print_lines
from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output, refuse_inputs
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.journeys.joins import LEGS, PERCENTS
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from kafkascope.analyzer.statistics.journeys.model import Fetched, Journey
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import plural, safe
from kafkascope.analyzer.times import iso_ms, iso_ns
from kafkascope.captures.inputs.private import PrivateFile
from kafkascope.dissectors.codec.jsonform import loads

MS: Final = 1_000_000
RECORD: Final = re.compile(r"(.+)-(\d{1,10})@(\d{1,19})")
MOST_RECORDS: Final = 10
"""Records of a key or a filter whose journeys are shown, without -n."""
MOST_TRACED: Final = 1_000
"""The same of `--otlp`: some 2 MB of spans."""
MOST_NAMED: Final = 10
"""Producers without a traceparent that are named."""
Place = tuple[str, int, int]
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
    encoding = None if otlp is None else _encoding(otlp, options)
    inputs, named = _split(options.inputs)
    if key is not None:
        text = key.replace("\\", "\\\\").replace('"', '\\"')
        chosen = f'record.key == "{text}"'
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
        named = list(dict.fromkeys(_chosen(options)))
        most = options.top or (MOST_RECORDS if otlp is None else MOST_TRACED)
        if len(named) > most and not options.quiet:
            say(f"{plural(len(named) - most, 'more record')} left out; -n shows more")
        named = named[:most]
        options = replace(options, filter_text="", top=None)
    found = Journeys(only=[(partition, offset) for _, partition, offset in named])
    with Reading(options) as reading:
        count(reading, found)
        names = reading.capture.context.names
        joins = found.joins(names)
        if otlp is not None and encoding is not None:
            _write_spans([joins.journey(*place) for place in named], otlp, encoding, options)
            return reading.finish()
        with Output(options) as output:
            times = reading.times()
            for place in named:
                one = joins.journey(*place)
                if options.form in ("json", "jsonl"):
                    output.element(json_of(one))
                    continue
                if place != named[0]:
                    output.line("")
                for line in text_of(one, times):
                    output.line(line)
            output.end()
        if not named:
            reading.lacks("records of this choice")
        return reading.finish()


def _split(words: tuple[str, ...]) -> tuple[tuple[str, ...], list[Place]]:
    """Return the inputs, and the records behind the first one."""
    inputs, named = [words[0]], list[Place]()
    for word in words[1:]:
        match = None if word == "-" or Path(word).exists() else RECORD.fullmatch(word)
        if match:
            named.append((match[1], int(match[2]), int(match[3])))
        else:
            inputs.append(word)
    return tuple(inputs), named


def _chosen(options: ReadOptions) -> Iterator[Place]:
    """Yield the records that a filter chooses, as far as they have an offset."""
    from kafkascope.analyzer.exchanges.records import Problem, record_lines

    problems: list[Problem] = []
    with Reading(replace(options, jobs=1, top=None), records=True) as reading:
        names, payloads = reading.capture.context.names, reading.payloads
        for _, exchange in reading.rows():
            for lines in record_lines(exchange, names, problems, payloads, reading.chosen):
                for line in lines.splitlines():
                    record = loads(line)
                    if record["offset"] is not None and not record["control"]:
                        yield record["topic"], record["partition"], record["offset"]


# --- spans


def _encoding(otlp: str, options: ReadOptions) -> str:
    """Return the encoding for the suffix of a file's name."""
    from kafkascope.analyzer.export.otlp import FORMATS

    refuse_inputs(otlp, options.inputs)
    suffix = Path(otlp).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise click.BadParameter(
            f'"{otlp}": the name ends with .json, or with .pb for protobuf', param_hint="--otlp"
        )
    return FORMATS[suffix]


def _write_spans(found: list[Journey], otlp: str, encoding: str, options: ReadOptions) -> None:
    from kafkascope.analyzer.export.journey_spans import spans_of, trace_parent
    from kafkascope.analyzer.export.otlp import encoded

    parents = [trace_parent(one.traceparent or "") for one in found]
    spans = [s for one, parent in zip(found, parents, strict=True) for s in spans_of(one, parent)]
    with PrivateFile(Path(otlp)) as file:
        file.write(encoded(spans, encoding))
    if options.quiet:
        return
    say(f"{plural(len(spans), 'span')} of {plural(len(found), 'record')} in {safe(otlp)}")
    lacking = Counter(
        "an unknown producer" if one.produced is None else one.produced.application
        for one, parent in zip(found, parents, strict=True)
        if parent is None
    )
    for application, count_ in lacking.most_common(MOST_NAMED):
        say(f"no traceparent: {plural(count_, 'record')} of {safe(application)}")
    if len(lacking) > MOST_NAMED:
        say(f"no traceparent: {plural(len(lacking) - MOST_NAMED, 'more producer')}")


# --- one record


def json_of(one: Journey) -> Line:
    """Return a journey as JSON."""
    produced = one.produced
    return {
        "schema": "journey/1",
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "key": one.key,
        "created": iso_ms(one.created_ms),
        "produced": produced
        and {
            "client_id": produced.client_id,
            "application": produced.application,
            "sent": iso_ns(produced.sent_ns),
            "acknowledged": _iso(produced.acknowledged_ns),
        },
        "visible": _iso(one.visible_ns),
        "stable": _iso(one.stable_ns),
        "replicated": [{"replica": node, "time": iso_ns(at)} for node, at in one.replicated],
        "fetched": [_fetched_json(each) for each in one.fetched],
        "hidden": [_fetched_json(each) for each in one.hidden],
        "transaction": one.transaction,
        "traceparent": one.traceparent,
    }


def _fetched_json(each: Fetched) -> Line:
    return {
        "client_id": each.client_id,
        "group": each.group,
        "application": each.application,
        "time": iso_ns(each.time_ns),
        "committed": _iso(each.committed_ns),
        "again": len(each.again_ns),
        "again_times": [iso_ns(time_ns) for time_ns in each.again_ns],
    }


def _iso(time_ns: int | None) -> str | None:
    return None if time_ns is None else iso_ns(time_ns)


def text_of(one: Journey, times: Times) -> Iterator[str]:
    """Yield the lines about a record: one for each leg, with its time and the time since the record
    was sent."""
    key = "" if one.key is None else f", key {safe(one.key)}"
    yield f"{safe(one.topic)}-{one.partition}@{one.offset}{key}"
    produced, lines = one.produced, list[tuple[int, str, str]]()
    origin = None if produced is None else produced.sent_ns
    if produced is not None:
        lines.append((produced.sent_ns, "sent", _who(produced.application, produced.client_id)))
        if produced.acknowledged_ns is not None:
            lines.append((produced.acknowledged_ns, "acknowledged", ""))
    for node, time_ns in one.replicated:
        lines.append((time_ns, "replicated", f"broker {node} fetched beyond it"))
    if one.visible_ns is not None:
        lines.append((one.visible_ns, "visible", "high watermark beyond it"))
    if one.transaction is not None and one.stable_ns is not None:
        lines.append((one.stable_ns, "stable", "last stable offset beyond it (read_committed)"))
    commits = set[tuple[int, str | None]]()
    for each in one.fetched:
        who = _who(each.application, each.client_id)
        group = "without a group" if each.group is None else f"group {safe(each.group)}"
        lines.append((each.time_ns, "fetched", f"{who}, {group}"))
        lines += [(time_ns, "again", f"{who}, {group}") for time_ns in each.again_ns]
        if each.committed_ns is not None:
            commits.add((each.committed_ns, each.group))
    for time_ns, group_ in commits:
        lines.append((time_ns, "committed", f"group {safe(group_ or '')}"))
    for each in one.hidden:
        who = _who(each.application, each.client_id)
        lines.append((each.time_ns, "hidden", f"{who}: its transaction was aborted"))
    lines.sort(key=lambda line: line[0])
    for time_ns, leg, text in lines:
        since = "" if origin is None else _since(time_ns - origin)
        yield f"  {leg:<13}{times.text(time_ns)}  {since:>12}  {text}".rstrip()
    if one.transaction is not None:
        yield f"  The transaction was {one.transaction}."
    yield from _clocks(one, origin, lines)
    yield from _absent(one)


def _who(application: str, client_id: str) -> str:
    if application == client_id:
        return safe(application)
    return f"{safe(application)} ({safe(client_id) or 'no client id'})"


def _since(ns: int) -> str:
    return f"{ns / MS:+,.3f} ms"


def _clocks(one: Journey, origin: int | None, lines: list[tuple[int, str, str]]) -> Iterator[str]:
    """Yield what is to be said of clocks: that of the producer, and those that disagree."""
    if one.created_ms is not None:
        text = f"  Created {iso_ms(one.created_ms)} by the producer's clock"
        if origin is not None:
            ahead = origin - one.created_ms * MS
            text += f", {abs(ahead) / MS:,.3f} ms {'before' if ahead >= 0 else 'after'} it was sent"
            if ahead < 0:
                text += ": that clock is ahead of the capture's"
        yield f"{text}."
    if origin is not None and any(time_ns < origin for time_ns, _, _ in lines):
        yield "  Legs are negative: clocks of the capture's hosts disagree, or it was sent again."


def _absent(one: Journey) -> Iterator[str]:
    """Yield what the capture does not have of a record."""
    produced = one.produced
    if produced is None:
        yield "  Not in this capture: its Produce request."
    elif produced.acknowledged_ns is None:
        yield "  Not in this capture: a response to its Produce request (acks=0, or it was lost)."
    if not one.fetched:
        yield "  Not in this capture: a Fetch response with it."
    silent = sorted(
        {each.group for each in one.fetched if each.committed_ns is None} - {None}, key=str
    )
    if silent:
        groups = ", ".join(safe(group or "") for group in silent)
        yield f"  Not in this capture: a commit beyond it by {groups}."


# --- all records


@command()
@input_options
def journeys(options: ReadOptions) -> int:
    """Measure how long records take from producers to groups.

    Produce is from the first byte of the Produce request to the last of its response, Deliver from
    the first byte of that request to the first Fetch response of the group that held the record,
    Commit from that response to the first commit beyond the record. Lag counts the records that a
    group has not committed (or fetched, where it never commits) at the end of the capture, Lag time
    the age of the oldest of them.

    \b
      kafkascope stats journeys prod.pcapng
      kafkascope stats journeys prod.pcapng --sort deliver_p95 -n 5
    """
    found = Journeys()
    with Reading(options) as reading:
        count(reading, found)
        lines = found.rows(reading.capture.context.names)
        with Output(options) as output:
            if options.form in ("json", "jsonl") and not options.columns and lines:
                for line in lines[: options.top]:
                    output.element(nested(line))
                output.end()
            else:
                priority = Priority(
                    ("topic", "group", "records", "produce_p50", "deliver_p50", "deliver_p95")
                )
                print_lines(
                    *(lines, Journeys.COLUMNS, "journeys/1", options, output, reading, priority)
                )
        code = reading.finish()
        if not options.quiet:
            for remark in _remarks(found, lines):
                say(remark)
        return code


def nested(line: Line) -> dict[str, Any]:
    """Return a line as JSON: percentiles of a leg are an object."""
    out: dict[str, Any] = {"schema": "journeys/1"}
    out |= {name: line[name] for name in ("producer", "topic", "group", "readers", "records")}
    for leg in LEGS:
        values = {f"p{each}": line[f"{leg}_p{each}"] for each in PERCENTS}
        out[f"{leg}_ms"] = {
            name: None if value is None else value / MS for name, value in values.items()
        }
    return {
        **out,
        "lag": line["lag"],
        "lag_ms": line["lag_time"] / MS,
        "negative": line["negative"],
    }


def _remarks(found: Journeys, lines: list[Line]) -> Iterator[str]:
    if found.dropped:
        yield f"{plural(found.dropped, 'older batch')} left out: there are too many"
    negative = sum(line["negative"] for line in lines)
    if negative:
        yield f"{plural(negative, 'record')} fetched before being sent: clocks of hosts disagree"
