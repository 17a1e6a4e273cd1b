"""Undoes what a terminal did to a capture that was written through it, and what PowerShell's `>`
did to a text.

A terminal writes CR LF for each LF (`docker run -t`, `kubectl exec -t`, `ssh -t`, text mode), and
what a program says on stderr comes between its packets. Every LF then has a CR before it that was
not in the capture, so removing one before each LF gives back exactly what was written.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final, Protocol, runtime_checkable

from kafkascope.captures.formats.pcap import OTHER_CAPTURE, Pcap, size_of_header
from kafkascope.captures.inputs.inflate import ByteStream, Pieces, is_compressed

# Bytes at the beginning of a file that show how it was written. Binary data of that size have 256
# line feeds.
LOOKED_BYTES: Final = 1 << 16
# Line feeds, all after a carriage return, that are no chance.
SURE: Final = 8
PCAPNG: Final = b"\n\r\r\n"
PCAPNG_CHANGED: Final = b"\r\n\r\r\r\n"
LINE_FEEDS: Final = (
    "each LF of the capture has become CR LF, as in a terminal (docker run -t, kubectl exec -t) or "
    "in text mode"
)
_BEGIN: Final = re.compile(
    rb"(?:\xd4\xc3\xb2\xa1|\x4d\x3c\xb2\xa1|\x34\xcd\xb2\xa1)\x02\x00\x04\x00"
    rb"|(?:\xa1\xb2\xc3\xd4|\xa1\xb2\x3c\x4d|\xa1\xb2\xcd\x34)\x00\x02\x00\x04"
    rb"|(?:\r\n\r\r\r\n|\n\r\r\n)....(?:\x4d\x3c\x2b\x1a|\x1a\x2b\x3c\x4d)",
    re.DOTALL,
)
"""First bytes of captures, with what follows the magic in all of them."""
MAGIC_BYTES: Final = 16
_TEXT: Final = re.compile(rb"[\t\r\n\x08\x1b\x20-\x7e]*")
_PROGRAM: Final = re.compile(
    rb"tcpdump|dumpcap|tshark|listening on|[Cc]apturing on|packets? (?:captured|received|dropped)"
)
"""Words of programs that capture; other text may be what was captured."""


@runtime_checkable
class Peekable(Protocol):
    """A stream whose first bytes can be looked at before they are read."""

    def peek(self, size: int) -> bytes:
        """Return up to `size` bytes of the beginning; nothing for one that cannot be read twice."""


class Restored(Pieces):
    """A stream without what a terminal added."""

    def __init__(self, head: bytes, stream: ByteStream, *, line_feeds: bool, text: int = 0) -> None:
        """`head`: the first bytes, which were read already."""
        pieces = _raw(head, stream)
        super().__init__(_with_line_feeds(pieces) if line_feeds else pieces, stream.close)
        self.line_feeds = line_feeds
        """Each LF was CR LF."""
        self.text = text
        """Bytes of text before the capture."""

    def remarks(self) -> Iterator[str]:
        if self.line_feeds:
            yield f"{LINE_FEEDS}; undone"
        if self.text:
            yield f"{self.text} bytes of text before the capture were skipped"


def _raw(head: bytes, stream: ByteStream) -> Iterator[bytes | None]:
    yield head
    room = memoryview(bytearray(LOOKED_BYTES))
    while (size := stream.readinto(room)) != 0:
        yield None if size is None else bytes(room[:size])


def _with_line_feeds(pieces: Iterator[bytes | None]) -> Iterator[bytes | None]:
    carriage = b""
    for piece in pieces:
        if piece is None:
            yield None
            continue
        data = carriage + piece
        carriage = b"\r" if data.endswith(b"\r") else b""
        if whole := data[: len(data) - len(carriage)]:
            yield whole.replace(b"\r\n", b"\n")
    if carriage:
        yield carriage


def _as_utf8(pieces: Iterator[bytes | None]) -> Iterator[bytes | None]:
    """Yield a text of UTF-16 as UTF-8: `kubectl logs ... > FILE` in Windows PowerShell 5 writes
    it."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for piece in pieces:
        if piece is None:
            yield None
        elif text := decoder.decode(piece):
            yield text.encode("utf-8", "replace")


def restored(stream: ByteStream, head: bytes) -> ByteStream | None:
    """Return the capture inside a stream whose first bytes are `head`, from its beginning, where a
    terminal changed it; None where that is not so. Streams that cannot be read twice are looked at
    only where `head` is odd."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Pieces(_as_utf8(_raw(head, stream)), stream.close)
    if head.startswith(PCAPNG_CHANGED):
        return Restored(head, stream, line_feeds=True)
    if head.startswith(PCAPNG) or size_of_header(head) or is_compressed(head):
        sample = stream.peek(LOOKED_BYTES) if isinstance(stream, Peekable) else b""
        if sample and _has_changed_lines(sample):
            return Restored(head, stream, line_feeds=True)
        return None
    return _behind_text(stream, head)


def has_line_feeds_changed(data: bytearray, end: int) -> bool:
    """Return whether each LF before `end` is after a CR, and there are enough to be no chance."""
    count = data.count(b"\n", 0, end)
    return count >= SURE and count == data.count(b"\r\n", 0, end)


def _has_changed_lines(sample: bytes) -> bool:
    """Return whether each LF was made CR LF."""
    count = sample.count(b"\n")
    if not count or count != sample.count(b"\r\n"):
        return False
    if count >= SURE and not size_of_header(sample):
        return True
    plain, without = (_records_in(data) for data in (sample, sample.replace(b"\r\n", b"\n")))
    return without > plain


def _records_in(sample: bytes) -> int:
    """Return how many bytes of a pcap file's beginning can be read as records; 0 for another
    format."""
    if not 0 < size_of_header(sample) <= len(sample):
        return 0
    buffer = bytearray(sample) + bytes(64)
    format_ = Pcap(sample, 0)
    return format_.walk(buffer, format_.header, len(sample))[1]


def _behind_text(stream: ByteStream, head: bytes) -> ByteStream | None:
    data = bytearray(head)
    room = memoryview(bytearray(4096))
    end = 0
    while True:
        text = _TEXT.match(data, end)
        assert text is not None
        # A magic may begin in what looked like text, or be cut off by the end of what was read.
        first = max(end - MAGIC_BYTES, 0)
        end = text.end()
        begin = _BEGIN.search(data, first, end + MAGIC_BYTES)
        if begin is not None:
            break
        if len(data) >= LOOKED_BYTES or end + MAGIC_BYTES < len(data) or not end:
            return None
        size = stream.readinto(room)
        if not size:
            return None
        data += room[:size]
    at = begin.start()
    lines = data.count(b"\r\n", 0, at) == data.count(b"\n", 0, at) > 0
    if data.startswith(PCAPNG, at):
        lines = False
    elif lines and isinstance(stream, Peekable) and (sample := stream.peek(2 * LOOKED_BYTES)):
        lines = data.startswith(PCAPNG_CHANGED, at) or _has_changed_lines(sample[at:])
    return Restored(bytes(data[at:]), stream, line_feeds=lines, text=at)


def text_in_place(data: bytes) -> str:
    """Return what to call bytes in place of a record: the beginning of a capture, words of a
    program that captures, or text; nothing for other bytes."""
    if _BEGIN.match(data):
        return OTHER_CAPTURE
    text = _TEXT.match(data)
    if text is None or text.end() < SURE:
        return ""
    whose = "messages of the capturing program" if _PROGRAM.search(data, 0, text.end()) else "text"
    return f"{whose} in place of a record"


def is_epilogue(data: bytes) -> bool:
    """Return whether bytes are what a capturing program says at its end, after its packets."""
    return _TEXT.fullmatch(data) is not None and _PROGRAM.search(data) is not None
