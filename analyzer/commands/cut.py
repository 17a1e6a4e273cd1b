"""`kafkascope cut`: writes part of a capture as a capture, part of a request log as a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.output import refuse_inputs, target_of
from kafkascope.analyzer.filter.bind import fields_of
from kafkascope.analyzer.filter.fields import MARKS
from kafkascope.analyzer.filter.language import bind
from kafkascope.analyzer.findings.evidence import Evidence
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading, findings_of
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import plural
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.cut_choice import Choice
from kafkascope.analyzer.transform.cut_remarks import (
    composed_of,
    counted,
    in_wireshark,
    left_out,
    original,
)
from kafkascope.analyzer.transform.cut_rewrites import Anonymous, Masked
from kafkascope.analyzer.transform.marks import BadMarks, marks_of
from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.captures.build import MSS
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.errors import INTERRUPTED
from kafkascope.private import PrivateFile

if TYPE_CHECKING:
    from kafkascope.analyzer.transform.cut_originals import Originals

DECRYPTED: Final = (
    "the selected exchanges were decrypted: add --decrypt to write plaintext, or --secrets to"
    " write the encrypted packets with their secrets"
)


@command()
@reading_options("output", helps={"output": "File to write, pcapng; text of a log"})
@setting("--decrypt", "", "Write decrypted traffic in place of TLS")
@setting("--secrets", "", "Write packets as captured, whole connections, with their TLS secrets")
@setting(
    "--anonymize",
    "",
    "Replace addresses and names (topics, groups, clients, users); remove contents",
)
@setting(
    "--comments commented",
    "",
    "Add Wireshark comments: the result of each request, and its findings",
)
@setting(
    "--mss",
    "BYTES",
    f"Maximum payload of a packet (default: {MSS})",
    type=click.IntRange(min=64, max=CAPTURE_LIMITS.mss_bytes),
)
def cut(
    options: ReadOptions,
    decrypt: bool,
    secrets: bool,
    anonymize: bool,
    commented: bool,
    mss: int | None,
) -> int:
    """Extract or anonymize part of a capture.

    Writes the exchanges that -Y, --from, --to and -c select to a valid pcapng file, with TCP
    handshakes and complete streams. Secrets are masked. Marks and comments made in `kafkascope
    open` are fields of -Y; comments are copied. From request logs
    cut writes the selected lines; with --anonymize, as JSON (the format of Kafka 2.8 and later).

    \b
      kafkascope cut prod.pcapng -Y 'group == billing' -o billing.pcapng
      kafkascope cut prod.pcapng --from 12:03 --to 12:05 -o part.pcapng
      kafkascope cut prod.pcapng -Y marked -o marked.pcapng
      kafkascope cut prod.pcapng --anonymize -o to-share.pcapng
      kafkascope cut prod.pcapng --comments -o for-wireshark.pcapng
      kafkascope cut kafka-request.log --anonymize -o to-share.log
      kafkascope cut tls.pcapng --keylog keys.log --decrypt -o plain.pcapng
      kafkascope cut tls.pcapng --keylog keys.log --secrets -o one.pcapng
    """
    path = target_of(options.output, "-o FILE.pcapng")
    if secrets:
        _refuse_with_secrets(decrypt, anonymize, mss)
    if commented and anonymize:
        raise click.UsageError("--comments shows names, --anonymize hides them: choose one")
    try:
        known = marks_of(options.inputs)
    except BadMarks as error:
        raise click.UsageError(str(error)) from None
    if known is None and fields_of(bind(options.filter_text)) & MARKS:
        raise click.UsageError("nothing is marked: mark exchanges in `kafkascope open` first")
    comments = known.comments if known is not None and not anonymize else {}
    result_comments = None
    with Reading(options, spool=True, known=known) as reading:
        if _reads_logs(reading):
            given = {"decrypt": decrypt, "secrets": secrets, "comments": commented, "mss": mss}
            _refuse_with_logs(given | {"keylog": options.keylog})
            return _cut_lines(reading, path, anonymize)
        if commented:
            from kafkascope.analyzer.checks.comments import Comments

            result_comments = Comments(Evidence(findings_of(options)), comments)
            comments = result_comments.texts
        capture = reading.capture
        cutting: Cutting | Originals
        if secrets:
            from kafkascope.analyzer.transform.cut_originals import Originals

            cutting = originals = Originals(comments)
            capture.context.keys.opened = originals.opened
        else:
            cutting = composed = Cutting(capture.plaintext, decrypt=decrypt)
            capture.named = composed.named
        capture.listener = cutting
        refuse_inputs(str(path), options.inputs)
        try:
            for row, exchange in reading.rows():
                if exchange.connection.decrypted and not (decrypt or secrets):
                    raise click.UsageError(DECRYPTED)
                if result_comments is not None:
                    result_comments.add(row, exchange)
                cutting.add(exchange)
                del exchange  # frees its bodies, which `write` reads again
        except KeyboardInterrupt:
            reading.code = INTERRUPTED
        choice = Choice(reading.bound_filter, cutting.clients, *reading.span())
        # Where -c ended the reading, what has no exchange may have one in the rest.
        wants = () if reading.is_counted else (capture.context.expects, choice)
        others = cutting.add_others(*wants)
        rewrite = Anonymous() if anonymize else Masked()
        with PrivateFile(path) as file:
            if secrets:
                originals.write(file, capture.source, capture.context.keys.log)
            else:
                read = capture.source.read
                composed.write(file, read, rewrite=rewrite, comments=comments, mss=mss or MSS)
        if not options.quiet:
            written = original(originals, path) if secrets else composed_of(composed, others, path)
            remarks = rewrite.redaction.names.remarks
            rest = in_wireshark(cutting.ports, secrets=secrets)
            for line in (*written, *left_out(cutting.others), *remarks, *rest):
                say(line)
        return reading.finish(tls=False)


def _reads_logs(reading: Reading) -> bool:
    """Return whether the inputs are request logs; a usage error for logs among captures."""
    source = reading.capture.source
    logs = source.text_inputs()
    if 0 < len(logs) < len(source.names):
        raise click.UsageError(
            "the inputs are captures and request logs: cut them one after the other"
        )
    return bool(logs)


def _refuse_with_logs(options: dict[str, object]) -> None:
    for name, given in options.items():
        if given:
            raise click.UsageError(
                f"--{name} needs packets, and request logs have none: leave it out"
            )


def _cut_lines(reading: Reading, path: Path, anonymize: bool) -> int:
    """Write the lines of the selected exchanges of request logs; return the exit code."""
    from kafkascope.analyzer.transform.cut_lines import CutLines

    redaction = Redaction("all" if anonymize else "none")
    lines = CutLines(redaction)
    refuse_inputs(str(path), reading.options.inputs)
    try:
        for _, exchange in reading.rows():
            lines.add(exchange)
    except KeyboardInterrupt:
        reading.code = INTERRUPTED
    with PrivateFile(path) as file:
        lines.write(file, reading.capture.source.read)
    if not reading.options.quiet:
        say(f"{plural(lines.written, 'line')} written to {path}")
        not_understood = (lines.left_out, "{} left out: not understood", "line")
        for text in (*counted([not_understood]), *redaction.names.remarks):
            say(text)
    return reading.finish(tls=False)


def _refuse_with_secrets(decrypt: bool, anonymize: bool, mss: int | None) -> None:
    for given, reason in (
        (decrypt, "--decrypt writes plaintext, --secrets the original packets: choose one"),
        (
            anonymize,
            "--secrets keeps the original packets with all names: use --anonymize with --decrypt",
        ),
        (mss is not None, "--secrets keeps the original packets: leave out --mss"),
    ):
        if given:
            raise click.UsageError(reason)
