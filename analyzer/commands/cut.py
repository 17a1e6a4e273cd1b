"""`kafkascope cut`: part of a capture as a capture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.targets import refuse_inputs
from kafkascope.analyzer.filter.bind import fields_of
from kafkascope.analyzer.filter.fields import MARKS
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings.view import plural
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import INTERRUPTED, Reading
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.cut_choice import Choice
from kafkascope.analyzer.transform.cut_rewrites import Anonymous, Masked
from kafkascope.analyzer.transform.marks import BadMarks, marks_of
from kafkascope.captures.build import MAX_MSS, MSS
from kafkascope.captures.inputs.private import PrivateFile


@click.command()
@reading_options("output", without=["keylog"])
@click.option(
    "--anonymize",
    is_flag=True,
    help="Other addresses and names (topics, groups, clients, users), no contents.",
)
@click.option(
    "--mss",
    type=click.IntRange(min=64, max=MAX_MSS),
    default=MSS,
    metavar="BYTES",
    help="Payload of a packet at most.",
)
def cut(options: ReadOptions, anonymize: bool, mss: int) -> int:
    """Write the exchanges that -Y, --from, --to and -c choose as a pcapng of their own: TCP
    handshakes kept, streams complete, secrets hidden. Marks and comments of `kafkascope open`
    can be asked for; comments go along.

    \b
      kafkascope cut prod.pcapng -Y 'group == billing' -o billing.pcapng
      kafkascope cut prod.pcapng -Y 'conn == 17' --from 12:03 --to 12:05 -o one.pcapng
      kafkascope cut prod.pcapng -Y marked -o marked.pcapng
      kafkascope cut prod.pcapng --anonymize -o to-share.pcapng
    """
    path = _target(options)
    try:
        known = marks_of(options.inputs)
    except BadMarks as error:
        raise click.UsageError(str(error)) from None
    if known is None and fields_of(compile_filter(options.filter_text, Known()).bound) & MARKS:
        raise click.UsageError("nothing is marked: `kafkascope open` kept nothing beside the input")
    with Reading(options, spool=True, known=known) as reading:
        cutting = Cutting(reading.capture.plaintext)
        reading.capture.listener = cutting
        refuse_inputs(str(path), options.inputs)
        try:
            for _, exchange in reading.rows():
                cutting.add(exchange)
                del exchange  # its bodies may be large, and are read again below
        except KeyboardInterrupt:
            reading.code = INTERRUPTED
        context = reading.capture.context
        choice = Choice(reading.wanted, cutting.clients, *reading.span())
        others = cutting.add_others(context.expects, choice)
        rewrite = Anonymous() if anonymize else Masked()
        with PrivateFile(path) as file:
            comments = known.comments if known is not None and not anonymize else None
            read = reading.capture.source.read
            cutting.write(file, read, rewrite=rewrite, comments=comments, mss=mss)
        if not options.quiet:
            for line in _said(cutting, others, path):
                say(line)
        return reading.finish(tls=False)


def _said(cutting: Cutting, others: int, path: Path) -> Iterator[str]:
    """What was written, and what was not."""
    kept = plural(cutting.exchanges - cutting.left_out, "exchange")
    if others:
        kept += f" and {plural(others, 'connection')} without any (failed, TLS, other protocols)"
    yield f"{kept} written to {path}"
    if cutting.left_out:
        yield f"{plural(cutting.left_out, 'exchange')} left out: nobody can tell what is in them"
    elsewhere, beyond = cutting.others.elsewhere, cutting.others.beyond
    if elsewhere:
        yield f"{plural(elsewhere, 'connection')} left out: without Kafka, and not to its ports"
    if beyond:
        yield f"not looked at, for there were too many: {plural(beyond, 'connection')}"
    if cutting.resent:
        yield f"written once, though it was sent again: {plural(cutting.resent, 'segment')}"


def _target(options: ReadOptions) -> Path:
    if options.output in (None, "-"):
        raise click.UsageError("where to? -o FILE.pcapng")
    assert options.output is not None
    return Path(options.output)
