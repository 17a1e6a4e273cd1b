"""`kafkascope decode` and `encode`: bytes of one message to JSON, and back."""

from __future__ import annotations

import base64
import json
import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from kafkascope.analyzer.bodies.json_lines import decode_line, encode_line, too_much
from kafkascope.analyzer.bodies.limits import LIMITS as BODY_LIMITS
from kafkascope.analyzer.bodies.limits import BodyLimits
from kafkascope.analyzer.bodies.pasted import PasteError, accepted, pasted
from kafkascope.analyzer.bodies.standalone import read_whole, write_body, write_frame
from kafkascope.analyzer.commands.help import (
    Function,
    command,
    complete_files,
    complete_from,
    flags,
    setting,
)
from kafkascope.analyzer.commands.limits import LIMITS
from kafkascope.analyzer.terminal import document, json_for_log, json_out, out, say, stdout_bytes
from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.jsonform import dumps, dumps_indented

BATCHES: Final = {"recordbatch": (2,), "messageset": (0, 1)}
"""Magics by the name of what a records field contains."""
NO_VERSION: Final = "NAME and VERSION are missing: write, for example, Fetch 12 --request"
# The most that one read takes from the stdin of --batch. A pipe returns what it has.
READ_BYTES: Final = 1 << 20


def read_input(text: str | None, noun: str, most: int = LIMITS.message_bytes) -> bytes:
    """Return the content of the file that an argument names, or else the argument itself; stdin for
    `-` and without an argument. `noun`: the name of the argument in errors."""
    data = _read(text, noun, most + 1)
    if len(data) > most:
        raise click.UsageError(f"{noun} is larger than the limit of {most:,} bytes")
    return data


def _read(text: str | None, noun: str, most: int) -> bytes:
    if text is None or text == "-":
        if text is None and sys.stdin.isatty():
            raise click.UsageError(f"{noun} is missing: write it, name a file, or pipe it to stdin")
        return sys.stdin.buffer.read(most)
    try:
        path = Path(text)
        is_path = path.is_file() or path.is_dir()
    except (OSError, ValueError):
        is_path = False  # too long for a path
    if is_path:
        with path.open("rb") as file:
            return file.read(most)
    return text.encode("utf-8", "surrogateescape")


def serve(
    answer: Callable[[bytes], bytes], source: int, sink: int, limits: BodyLimits = BODY_LIMITS
) -> None:
    """Answer each line of the file descriptor `source` on `sink`, until the end of input. What one
    read brings is answered at once, so that a peer may wait for each answer, or send all lines
    first."""
    for lines in available_lines(source, limits):
        answers = b"".join([answer(line) + b"\n" for line in lines if line.strip()])
        view = memoryview(json_for_log(answers))
        while view:
            view = view[os.write(sink, view) :]


def available_lines(source: int, limits: BodyLimits) -> Iterator[list[bytes]]:
    """Yield the whole lines that each read completes; the end of input completes the last one. Of a
    line beyond the limit little more is kept, enough for `answer` to refuse it."""
    pieces: list[bytes] = []
    size = 0
    while data := os.read(source, READ_BYTES):
        if b"\n" in data:
            *lines, rest = b"".join((*pieces, data)).split(b"\n")
            pieces, size = [rest], len(rest)
            yield lines
        elif size <= limits.json_bytes:
            pieces.append(data)
            size += len(data)
    yield [b"".join(pieces)]


def message_option(text: str) -> Callable[[Function], Function]:
    """Declare --request and --response; `text`: their help, with {} for the side."""
    return flags("side", {side: text.format(side) for side in ("request", "response")})


def message_names() -> Iterator[str]:
    """Yield the values of NAME: APIs, then messages."""
    yield from registry.api_names()
    yield from registry.message_names()


def full_name(name: str, side: str | None) -> str:
    """Return the name of the message for NAME and a side: `Fetch --request`, `FetchRequest`,
    `OffsetCommitValue`."""
    from kafkascope.analyzer.filter.errors import nearest

    messages = {message.lower(): message for message in registry.message_names()}
    lower = name.lower()
    exact = messages.get(lower + (side or "")) or messages.get(lower)
    if exact is not None:
        if side and not exact.lower().endswith(side):
            raise click.UsageError(f"{exact} is no {side}: leave out --{side}")
        return exact
    if name.isdecimal() and int(name) in registry.APIS:
        return full_name(registry.APIS[int(name)].name, side)
    if f"{lower}request" in messages:
        raise click.UsageError(f"{name} has a request and a response: add --request or --response")
    near = nearest(name, list(message_names()))
    hint = f"; did you mean {near}?" if near else ""
    raise click.UsageError(f'there is no message "{name}"{hint} (list: kafkascope grammar)')


def print_json(value: Any, pretty: bool | None) -> None:
    """Print JSON, on one line or indented; None: indented on a terminal."""
    if pretty is None:
        pretty = sys.stdout.isatty()
    json_out(dumps_indented(value) if pretty else dumps(value))


@command()
@click.argument("name", required=False, shell_complete=complete_from(message_names))
@click.argument("version", required=False)
@click.argument("data", required=False, shell_complete=complete_files)
@message_option("Use the {} of the API NAME")
@setting("--frame", "", 'Print {"header", "body"} instead of the body')
@setting("--tree", "", "Print a tree of fields")
@setting("--hex show_hex", "", "Print the tree with the bytes of each field")
@setting("--pretty/--no-pretty", "", "Indent the JSON (default: on a terminal)", default=None)
@setting("--batch", "", "Answer JSON lines from stdin, see docs/json.md")
def decode(
    name: str | None,
    version: str | None,
    data: str | None,
    side: str | None,
    frame: bool,
    tree: bool,
    show_hex: bool,
    pretty: bool | None,
    batch: bool,
) -> int:
    """Decode the bytes of a message to JSON.

    NAME is an API with --request or --response, or a message (FetchRequest, OffsetCommitValue).
    RecordBatch and MessageSet decode the batches of a records field and need no VERSION.
    DATA is an argument, a file, or stdin: a whole frame with its size, header and body, or a body
    alone, whichever fits to the last byte. It may be bytes, or what programs print: hexadecimal,
    base64, Node's Buffer, Go's []byte and %q, Python's bytes, lists of numbers, strings with
    escapes, and dumps of xxd, hexdump, od, tcpdump, Wireshark and Netty (docs/commands.md).

    \b
      kafkascope decode Metadata 0 --response 00000000...
      kafkascope decode HeartbeatRequest 0 '<Buffer 00 01 67 00 00 00 07 00 00>'
      kafkascope decode RecordBatch batch.hex --tree
      xxd -p frame.bin | kafkascope decode Fetch 12 --request --tree
    """
    if batch:
        serve(decode_line, sys.stdin.fileno(), sys.stdout.fileno())
        return 0
    if name is not None and name.lower() in BATCHES and side is None:
        if data is None and version not in (None, "0", "1", "2"):
            version, data = None, version
        if show_hex or frame:
            raise click.UsageError("--hex and --frame show messages: use --tree for batches")
        return _decode_batches(name, version, octets_of(data), tree=tree, pretty=pretty)
    if name is None or version is None:
        raise click.UsageError(NO_VERSION)
    if not version.removeprefix("-").isdecimal():
        raise click.BadParameter(f'"{version}" is no version: write a number', param_hint="VERSION")

    message = full_name(name, side)
    raw = octets_of(data)
    whole = read_whole(message, int(version), raw)
    if tree or show_hex:
        from kafkascope.analyzer.render.tree import render_message

        document(render_message(whole.layouts, raw, show_hex=show_hex).rstrip("\n"))
    elif frame:
        print_json({"header": whole.header, "body": whole.body}, pretty)
    else:
        if whole.header is not None:
            header = ", ".join(f"{key} {value!r}" for key, value in whole.header.items())
            say(f"{whole.form}: {header}", bare=True)
        print_json(whole.body, pretty)
    if whole.note:
        say(f"note: {whole.note}", bare=True)
    if whole.end < len(raw):
        rest = len(raw) - whole.end
        say(f"{rest} bytes left over from byte {whole.end} on")
        return 4
    return 0


def octets_of(data: str | None) -> bytes:
    """Return the bytes of DATA; the usage error shows where reading stopped, and all forms."""
    try:
        return pasted(read_input(data, "DATA"))
    except PasteError as error:
        forms = "\n".join(f"  {line}" for line in accepted())
        raise click.UsageError(f"DATA: {error}\nForms, in the order of trial:\n{forms}") from None


def _decode_batches(
    name: str, version: str | None, raw: bytes, *, tree: bool, pretty: bool | None
) -> int:
    """Print the batches of a records field: a JSON object each, or the tree."""
    from kafkascope.dissectors.records.records import Batch, batches, crc_ok, open_batch

    magics = BATCHES[name.lower()]
    if version is not None and version not in map(str, magics):
        possible = " and ".join(map(str, magics))
        raise click.UsageError(f"{name} has magic {possible}, not {version}: leave out VERSION")
    code = 0
    if tree:
        from kafkascope.analyzer.render.records import lines_inside
        from kafkascope.dissectors.codec.tree import Node

        for line in lines_inside(Node("records", 0, len(raw), raw)):
            document(line)
    for batch in batches(raw):
        if not isinstance(batch, Batch):
            say(f"the batch at byte {batch.at} is cut after {batch.size} bytes")
            code = 4
            continue
        opened, checksum_ok = open_batch(raw, batch), crc_ok(raw, batch)
        other = "RecordBatch" if batch.magic == 2 else "MessageSet"
        problems = {
            f" has magic {batch.magic}: it is a {other}": batch.magic not in magics,
            " has a wrong checksum": not checksum_ok,
            f": {opened.error and opened.error.reason}": opened.error is not None,
        }
        for problem, present in problems.items():
            if present:
                say(f"the batch at byte {batch.at}{problem}")
                code = 4
        if not tree:
            records = [
                {
                    **record._asdict(),
                    "headers": [{"name": name, "value": value} for name, value in record.headers],
                }
                for record in opened.records
            ]
            header = {"codec": batch.codec_name, "crc_ok": checksum_ok, **batch._asdict()}
            print_json({**header, "records": records}, pretty)
    return code


@command()
@click.argument("name", required=False, shell_complete=complete_from(message_names))
@click.argument("version", type=int, required=False)
@click.argument("json_text", metavar="[JSON]", required=False, shell_complete=complete_files)
@message_option("Use the {} of the API NAME")
@setting("--base64 as_base64", "", "Print base64 instead of hexadecimal")
@setting("--raw", "", "Write raw bytes")
@setting("--frame correlation_id", "ID", "Write a frame with this correlation ID", type=int)
@setting("--client-id", "TEXT", "Client ID in the header of the frame", default=None)
@setting("--batch", "", "Answer JSON lines from stdin, see docs/json.md")
def encode(
    name: str | None,
    version: int | None,
    json_text: str | None,
    side: str | None,
    as_base64: bool,
    raw: bool,
    correlation_id: int | None,
    client_id: str | None,
    batch: bool,
) -> int:
    """Encode a message from JSON to bytes.

    NAME is an API with --request or --response, or a message (FetchRequest, OffsetCommitValue).
    JSON is the body as `decode` prints it, a file, or stdin. Missing fields get their defaults.
    {"header", "body"}, as `decode --frame` prints it, makes a frame.

    \b
      kafkascope encode Metadata 12 --request '{"topics": null}'
    """
    if batch:
        serve(encode_line, sys.stdin.fileno(), sys.stdout.fileno())
        return 0
    if name is None or version is None:
        raise click.UsageError(NO_VERSION)

    message = full_name(name, side)
    text = read_input(json_text, "JSON", BODY_LIMITS.json_bytes)
    if reason := too_much(text):
        raise click.UsageError(reason)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"JSON cannot be read: {error}") from None

    header: Any = None
    if isinstance(value, dict) and value.keys() == {"header", "body"}:
        header, value = value["header"], value["body"]
    if correlation_id is not None:
        header = {**(header or {}), "correlation_id": correlation_id}
    if client_id is not None:
        header = {**(header or {"correlation_id": 0}), "client_id": client_id}
    try:
        if header is None:
            data = write_body(message, version, value)
        else:
            data = write_frame(message, version, header, value)
    except struct.error as error:
        raise click.UsageError(str(error)) from None
    if raw:
        stdout_bytes().write(data)
    else:
        out(base64.b64encode(data).decode("ascii") if as_base64 else data.hex())
    return 0
