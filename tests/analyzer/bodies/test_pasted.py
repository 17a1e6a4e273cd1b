"""Bytes in each form that people paste, printed by other programs or written here from their
manuals, are the same bytes again."""

import base64
import json
import pprint
import shutil
import string
import struct
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.bodies.limits import LIMITS
from kafkascope.analyzer.bodies.pasted import FORMS, PasteError, accepted, pasted
from kafkascope.analyzer.bodies.standalone import read_whole, write_body, write_frame
from kafkascope.dissectors.errors import DissectError
from tests.kit.batches import batch
from tests.kit.run import run

HEX: Final = {*string.hexdigits}


def go_quoted(data: bytes) -> str:
    """As Go's %q: runes that print as they are, others by escapes, what is no UTF-8 by `\\x`."""
    short = dict(zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True))
    out = ""
    for char in data.decode("utf-8", "surrogateescape"):
        number = ord(char)
        if 0xDC80 <= number <= 0xDCFF:
            out += f"\\x{number - 0xDC00:02x}"
        elif char in short:
            out += "\\" + short[char]
        elif number < 0x20 or number == 0x7F:
            out += f"\\x{number:02x}"
        elif char.isprintable():
            out += char
        else:
            out += f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
    return f'"{out}"'


def printable(data: bytes) -> str:
    return "".join(chr(octet) if 0x20 <= octet < 0x7F else "." for octet in data)


def rows(data: bytes, size: int = 16) -> list[tuple[int, bytes]]:
    return [(at, data[at : at + size]) for at in range(0, len(data), size)]


def netty(data: bytes) -> str:
    """As ByteBufUtil.prettyHexDump."""
    line = "+--------+-------------------------------------------------+----------------+"
    head = " " * 9 + "|  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |"
    body = [f"|{at:08x}| {row.hex(' '):<48}|{printable(row):<16}|" for at, row in rows(data)]
    return "\n".join([" " * 9 + line[9:60], head, line, *body, line])


def wireshark(data: bytes) -> str:
    return "\n".join(f"{at:04x}   {row.hex(' '):<47}   {printable(row)}" for at, row in rows(data))


def tcpdump(data: bytes) -> str:
    return "\n".join(
        f"\t0x{at:04x}:  {row.hex(' ', -2):<39}  {printable(row)}" for at, row in rows(data)
    )


def hexdump(data: bytes) -> str:
    """As hexdump -C, with `*` for rows that are the row before."""
    lines, last = [], None
    for at, row in rows(data):
        if row == last and len(row) == 16:
            if lines[-1] != "*":
                lines.append("*")
            continue
        left, right = row[:8].hex(" "), row[8:].hex(" ")
        lines.append(f"{at:08x}  {left:<23}  {right:<23}  |{printable(row)}|")
        last = row
    return "\n".join([*lines, f"{len(data):08x}"])


def od(data: bytes, base: str = "07o") -> str:
    return "\n".join(
        [*(f"{at:{base}} {row.hex(' ')}" for at, row in rows(data)), f"{len(data):{base}}"]
    )


def xxd(data: bytes) -> str:
    return "\n".join(
        f"{at:08x}: {row.hex(' ', -2):<39}  {printable(row)}" for at, row in rows(data)
    )


WRITERS: Final[dict[str, Callable[[bytes], str]]] = {
    "Node Buffer": lambda data: f"<Buffer {data.hex(' ')}>",
    "JSON Buffer": lambda data: json.dumps({"type": "Buffer", "data": [*data]}),
    "JSON Buffer, indented": lambda data: json.dumps({"type": "Buffer", "data": [*data]}, indent=2),
    "Node inspect": lambda data: "{ type: 'Buffer', data: [ " + ", ".join(map(str, data)) + " ] }",
    "Uint8Array": lambda data: f"Uint8Array({len(data)}) [\n  {', '.join(map(str, data))}\n]",
    "Go %#v": lambda data: "[]byte{" + ", ".join(f"{octet:#x}" for octet in data) + "}",
    "Go %v": lambda data: f"[{' '.join(map(str, data))}]",
    "Go %q": go_quoted,
    "Python bytes": repr,
    "Python bytes, wrapped": lambda data: pprint.pformat(data, width=20),
    "Python bytearray": lambda data: repr(bytearray(data)),
    "Python list": lambda data: repr([*data]),
    "Python list of hex": lambda data: f"bytes([{', '.join(map(hex, data))}])",
    "Java": lambda data: str([octet - 256 * (octet > 127) for octet in data]),
    "Java source": lambda data: "new byte[] {" + ", ".join(f"(byte) {o:#04x}" for o in data) + "};",
    "Erlang": lambda data: f"<<{','.join(map(str, data))}>>",
    "C": lambda data: "{" + ", ".join(f"0x{octet:02X}" for octet in data) + "}",
    "JSON string": lambda data: json.dumps(data.decode("latin-1")),
    "escapes": lambda data: "".join(f"\\x{octet:02x}" for octet in data),
    "unicode escapes": lambda data: "".join(f"\\u{octet:04x}" for octet in data),
    "hex": bytes.hex,
    "hex, spaces": lambda data: data.hex(" ").upper(),
    "hex, colons": lambda data: data.hex(":"),
    "hex, dashes": lambda data: data.hex("-"),
    "hex, 0x": lambda data: f"0x{data.hex()}",
    "hex, words": lambda data: ", ".join(map(hex, data)),
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64, lines": lambda data: base64.encodebytes(data).decode(),
    "base64 in quotes": lambda data: json.dumps(base64.b64encode(data).decode()),
    "base64url": lambda data: base64.urlsafe_b64encode(data).decode(),
    "base64url, unpadded": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "Netty": netty,
    "Wireshark": wireshark,
    "tcpdump -X": tcpdump,
    "hexdump -C": hexdump,
    "od -t x1": od,
    "od -A d -t x1": lambda data: od(data, "07d"),
    "od -A x -t x1": lambda data: od(data, "06x"),
    "xxd": xxd,
}
TOOLS: Final = (
    ("xxd",),
    ("xxd", "-g1", "-u"),
    ("xxd", "-p"),
    ("xxd", "-i"),
    ("hexdump", "-C"),
    ("od", "-t", "x1"),
    ("od", "-A", "d", "-t", "x1"),
    ("od", "-A", "x", "-t", "x1"),
    ("od", "-v", "-A", "x", "-t", "x1z"),
)
MESSAGES: Final = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda head, size, tail: head + bytes(size) + tail,
        *[st.binary(max_size=9), st.integers(0, 200), st.binary(max_size=40)],
    ),
)
"""A size first, as in each frame: no text begins with it, and none is hexadecimal by chance."""


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=60)
@given(data=MESSAGES)
def test_each_form_is_the_same_bytes_again(name: str, data: bytes) -> None:
    data = framed(data)
    text = WRITERS[name](data)
    if name.startswith("base64"):
        assume(not {*text} - {'"', "\n", "="} <= HEX | {"-"})
    assert pasted(text.encode()) == data
    assert pasted(f"\n  {text.strip()}\n".encode()) == data or name in ("Wireshark", "tcpdump -X")


@pytest.mark.parametrize("command", TOOLS, ids=" ".join)
@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 200, 5000])
def test_what_the_tools_of_this_machine_print_is_read(command: tuple[str, ...], size: int) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    for data in (bytes(size), framed(bytes(range(256)) * 20)[:size] + b"\xff"):
        done = subprocess.run(command, input=data, capture_output=True, check=True)
        assert pasted(done.stdout) == data


def test_raw_bytes_are_themselves() -> None:
    for data in (b"", b"\0\0\0\1", b"\xff\xfe", framed(b"[1, 2]")):
        assert pasted(data) == data


def test_hexadecimal_comes_before_base64() -> None:
    assert pasted(b"AAAA") == b"\xaa\xaa"
    assert pasted(b"AAAB\nAAAC/w==") == base64.b64decode("AAABAAAC/w==")


def test_a_unicode_escape_is_a_byte_unless_bytes_have_escapes_of_their_own() -> None:
    assert pasted(rb'"\u0000\u00e9"') == b"\0\xe9"
    assert pasted(rb'"\x00\u00e9"') == b"\0\xc3\xa9"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("zzz!", 'column 4: "!"'),
        ("00 01 0g", "column 8"),
        ("001", "odd number of hexadecimal digits"),
        ("<Buffer 00 01 ... 12 more bytes>", "buffer.toString('hex')"),
        ("<Buffer 00 0x>", "column 11"),
        ("[0, 256]", 'column 5: "256]"'),
        ("[0, 1", "the text ends there"),
        ("[0, one]", "column 5"),
        (r"'\x0'", "column 2"),
        (r"b'\x00", "closing quote"),
        (r"b'\q'", "no such escape"),
        (r"b'\x00' and more", "after the closing quote"),
        ("00000000: 0001 0203\n00000010: 0405", "line 1"),
        ("0000000 0100 0302\n0000004", "byte order"),
    ],
)
def test_an_error_shows_where_reading_stopped_and_the_forms(text: str, where: str) -> None:
    done = run("decode", "Heartbeat", "0", "--request", text)
    assert done.exit_code == 2
    assert where in done.output
    for form in FORMS:
        assert form.name in done.output
    with pytest.raises(PasteError):
        pasted(text.encode())


def test_the_example_of_each_form_is_two_bytes() -> None:
    for form in FORMS:
        for example in form.example.split(" or "):
            assert pasted(example.encode()) == b"\0\x12", example
    assert len([*accepted()]) == len(FORMS)


def test_repeated_rows_have_a_limit() -> None:
    text = f"00000000: {'00 ' * 16}\n*\n{LIMITS.dump_bytes + 16:08x}:"
    with pytest.raises(PasteError):
        pasted(text.encode())


@settings(max_examples=300)
@given(text=st.text(st.sampled_from("<Buffer 0x1,[]{}()'\"\\xu|+-:=*\nazé"), max_size=60))
def test_any_text_is_bytes_or_an_error(text: str) -> None:
    with suppress(PasteError):
        assert isinstance(pasted(text.encode()), bytes)


# --- record batches


def decoded(*words: str) -> tuple[int, str, str]:
    done = run("decode", *words)
    return done.exit_code, done.stdout, done.stderr


def test_record_batches_are_decoded_by_name() -> None:
    data = batch([(b"k", b"v"), (None, b"\xff")])
    for words in (("RecordBatch", data.hex()), ("recordbatch", "2", (data + data).hex())):
        code, out, err = decoded(*words)
        assert (code, err) == (0, "")
        lines = [json.loads(line) for line in out.splitlines()]
        assert [line["at"] for line in lines] == [*range(0, len(data) * len(lines), len(data))]
        assert (lines[0]["magic"], lines[0]["crc_ok"], lines[0]["record_count"]) == (2, True, 2)
        assert [(r["key"], r["value"]) for r in lines[0]["records"]] == [
            ("aw==", "dg=="),
            (None, "/w=="),
        ]
    code, out, _ = decoded("RecordBatch", data.hex(), "--tree")
    assert code == 0
    assert "magic 2" in out.splitlines()[0]
    assert len(out.splitlines()) == 3


def test_a_damaged_or_cut_batch_and_one_of_another_magic_say_so() -> None:
    data = batch([(b"k", b"v")])
    for words, said in (
        ((data[:-1].hex(),), "is cut after"),
        ((data[:-1].hex() + "55",), "wrong checksum"),
    ):
        code, _, err = decoded("RecordBatch", *words)
        assert code == 4
        assert said in err
    code, _, err = decoded("MessageSet", data.hex())
    assert code == 4
    assert "it is a RecordBatch" in err
    code, _, err = decoded("MessageSet", "2", data.hex())
    assert code == 2
    assert "magic 0 and 1" in err


def test_a_message_set_is_decoded_by_name() -> None:
    entry = bytes.fromhex("0000000000000007 0000000e 0a5f3ad8 00 00 ffffffff ffffffff")
    code, out, err = decoded("MessageSet", entry.hex())
    line = json.loads(out)
    assert (line["magic"], line["base_offset"]) == (0, 7)
    assert [(r["offset"], r["key"], r["value"]) for r in line["records"]] == [(7, None, None)]
    assert (code, "wrong checksum" in err) == (4 * (not line["crc_ok"]), not line["crc_ok"])


# --- bytes that come alone ------------------------------------------------------------------------


BODY = {"group_id": "g", "generation_id": 1, "member_id": "m"}
ALONE = write_body("HeartbeatRequest", 0, BODY)
FRAME = write_frame("HeartbeatRequest", 0, {"correlation_id": 7, "client_id": "cl"}, BODY)
ANSWER = write_frame("MetadataResponse", 1, {"correlation_id": 7}, {"controller_id": 3})


@pytest.mark.parametrize(
    ("form", "data"), [("frame", FRAME), ("header and body", FRAME[4:]), ("body", ALONE)]
)
def test_each_form_is_known_by_fitting(form: str, data: bytes) -> None:
    whole = read_whole("HeartbeatRequest", 0, data)
    assert (whole.form, whole.body, whole.end) == (form, BODY, len(data))


@pytest.mark.parametrize(("form", "data"), [("frame", FRAME), ("header and body", FRAME[4:])])
def test_a_header_that_names_the_message_outweighs_bytes_left_over(form: str, data: bytes) -> None:
    whole = read_whole("HeartbeatRequest", 0, data + b"\xff\0\0")
    assert (whole.form, whole.body, whole.end) == (form, BODY, len(data))


def test_the_first_of_several_frames_is_read() -> None:
    whole = read_whole("HeartbeatRequest", 0, FRAME * 2)
    assert (whole.form, whole.end) == ("frame", len(FRAME))


@pytest.mark.parametrize("cut", range(21, len(FRAME)))
def test_a_cut_frame_is_refused_where_it_ends(cut: int) -> None:
    with pytest.raises(DissectError) as caught:
        read_whole("HeartbeatRequest", 0, FRAME[:cut])
    assert caught.value.path in BODY
    assert 16 <= caught.value.offset <= cut


def test_bytes_left_over_in_an_answer_with_its_size() -> None:
    data = struct.pack(">i", len(ANSWER) - 4 + 2) + ANSWER[4:] + b"ab"
    whole = read_whole("MetadataResponse", 1, data)
    assert (whole.form, whole.body["controller_id"], whole.end) == ("frame", 3, len(ANSWER))


def test_a_body_alone_may_have_bytes_left_over() -> None:
    whole = read_whole("HeartbeatRequest", 0, ALONE + b"\0")
    assert (whole.form, whole.body, whole.end) == ("body", BODY, len(ALONE))
