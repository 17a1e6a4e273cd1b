"""Opens one input: from a path to a stream of uncompressed bytes and the format that reads it.

The content of a file decides its format, never its name.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from contextlib import suppress
from hashlib import blake2b
from io import FileIO
from typing import Final, Protocol, runtime_checkable

from kafkascope.captures.errors import CutShort, NotACapture
from kafkascope.captures.formats.pcap import Pcap, size_of_header
from kafkascope.captures.formats.pcapng import Pcapng
from kafkascope.captures.formats.records import Format
from kafkascope.captures.formats.text import LOOKED_BYTES, Text, is_log, is_text
from kafkascope.captures.inputs.inflate import ByteStream, Pieces, inflate
from kafkascope.captures.inputs.restored import PCAPNG, restored
from kafkascope.captures.inputs.spool import Spool

# Bytes that are enough to tell a file's format.
_HEAD_BYTES: Final = 28
_TEXT_BYTES: Final = 1 << 12
# Bytes at the head of a file that tell it from others.
FINGERPRINT_BYTES: Final = 1 << 16
# Bytes of a spool that are read at once.
_KEPT_BYTES: Final = 1 << 20
STDIN: Final = "-"


def spoken(name: str) -> str:
    return "standard input" if name == STDIN else name


def fingerprint(head: bytes) -> bytes:
    """Return the identity of a file, by its first `FINGERPRINT_BYTES`. Of a capture, only the bytes
    up to the end of its first packet count: a recording is the same file while it grows."""
    end = len(head)
    if is_capture(head):
        with suppress(NotACapture):
            found, buffer = format_of(head, 0, ""), bytearray(head)
            positions, _ = found.walk(buffer, found.header, end)
            if positions:
                first = found.record(buffer, positions[0])
                end = first.start + first.captured
    return blake2b(head[:end], digest_size=16).digest()


def is_capture(head: bytes) -> bool:
    return head[:4] == PCAPNG or size_of_header(head) > 0


def is_regular(name: str) -> bool:
    """Whether the input is a file that can be read again; raises NotACapture when there is none."""
    if name == STDIN:
        return False
    try:
        mode = os.stat(name).st_mode  # noqa: PTH116
    except OSError as error:
        raise unreadable(name, error) from None
    return stat.S_ISREG(mode)


def is_live(name: str) -> bool:
    """Whether bytes arrive while they are read: through a pipe, or from a terminal."""
    try:
        mode = (os.fstat(0) if name == STDIN else os.stat(name)).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)


def is_once(name: str) -> bool:
    """Return whether an input cannot be read a second time."""
    return name == STDIN or is_live(name)


def unreadable(name: str, error: OSError) -> NotACapture:
    """Return the error for a path that cannot be read, as a sentence."""
    if error.errno == errno.ENOENT:
        return NotACapture(f"{name}: no such file or folder")
    if error.errno in (errno.EACCES, errno.EPERM):
        return NotACapture(f"{name} cannot be read: permission denied")
    return NotACapture(f"{name} cannot be read: {error.strerror or error}")


class StoredFile:
    """A file that is open at an offset, for its bytes as stored; raises our errors."""

    def __init__(self, name: str, start: int = 0) -> None:
        self._name = name
        try:
            self._raw = FileIO(0, closefd=False) if name == STDIN else FileIO(name)
            if start:
                self._raw.seek(start)
        except OSError as error:
            raise unreadable(spoken(name), error) from None
        self.close = self._raw.close

    def wait(self, seconds: float) -> bool:
        return has_come(self._raw.fileno(), seconds)

    def peek(self, size: int) -> bytes:
        """Return up to `size` bytes of the file's beginning; nothing of a pipe."""
        descriptor = self._raw.fileno()
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.pread(descriptor, size, 0) if regular else b""

    def readinto(self, buffer: memoryview, /) -> int | None:
        try:
            return self._raw.readinto(buffer)
        except OSError as error:
            raise unreadable(spoken(self._name), error) from None


def has_come(descriptor: int, seconds: float) -> bool:
    """Wait until a descriptor can be read without waiting; return whether it can."""
    return bool(select.select([descriptor], [], [], seconds)[0])


@runtime_checkable
class Live(ByteStream, Protocol):
    """A stream of bytes that is produced while it is read."""

    def wait(self, seconds: float) -> bool:
        """Wait for something to read, or the end; return whether there is."""


class Impatient:
    """A live stream that signals when nothing comes for some seconds."""

    def __init__(self, stream: Live, seconds: float) -> None:
        self._stream, self._seconds = stream, seconds
        self.close = stream.close

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of `buffer`; None where nothing came."""
        return self._stream.readinto(buffer) if self._stream.wait(self._seconds) else None


def open_stream(name: str, opened: ByteStream | None = None) -> tuple[ByteStream, bytes, bool]:
    """Open an input. Returns a stream of uncompressed bytes after the first ones, those first
    bytes, and whether it is compressed, or was changed by a terminal: whether offsets are not those
    of the file."""
    raw: ByteStream = opened or StoredFile(name)
    head = _head(raw)
    if is_text(head):
        head = _text_head(raw, head)
        if is_log(head):
            return raw, head, False
    whole = restored(raw, head)
    if whole is not None:
        raw = whole
        head = _head(raw)
    stream, changed = raw, whole is not None
    for _ in range(2):  # .gz in .zst exists; deeper is malice
        inner = inflate(head, stream, spoken(name))
        if inner is None:
            break
        stream, changed = inner, True
        try:
            head = _head(stream)
        except CutShort as error:
            stream.close()
            raise NotACapture(str(error)) from None
    if changed and is_text(head):
        head = _text_head(stream, head)
    return stream, head, changed


def head_of(name: str) -> tuple[bytes, bool]:
    """Return the first bytes of an input that can be read again, and whether it is compressed or
    changed: see `open_stream`."""
    stream, head, changed = open_stream(name)
    stream.close()
    return head, changed


def _text_head(stream: ByteStream, head: bytes) -> bytes:
    """Read on in a text until it is known what it is: a request log, or what a program says before
    a capture. What comes through a pipe is not waited for longer than that."""
    room = memoryview(bytearray(_TEXT_BYTES))
    while not is_log(head) and b"\0" not in head and len(head) < LOOKED_BYTES:
        size = stream.readinto(room)
        if size == 0:
            break
        head += room[: size or 0]
    return head


def _head(stream: ByteStream) -> bytes:
    """Read as many bytes as it takes to tell the format."""
    head = b""
    buffer = memoryview(bytearray(_HEAD_BYTES))
    while (want := size_of_header(head) or _HEAD_BYTES) > len(head):
        size = stream.readinto(buffer[: want - len(head)])
        if size == 0:
            break
        head += buffer[: size or 0]
    return head


def format_of(head: bytes, file: int, name: str) -> Format:
    """Return the format of a file by its first bytes; NotACapture says what they are instead."""
    path, name = name, spoken(name)
    if not head:
        raise NotACapture(f"{name} is empty")
    size = size_of_header(head)
    if size and len(head) >= size:
        return Pcap(head, file)
    if size or head[:4] == PCAPNG[: len(head)]:
        if not size and len(head) >= _HEAD_BYTES:
            return Pcapng(file)
        raise NotACapture(f"{name} is cut short inside its file header")
    if is_log(head, sure=False):
        return Text(file)
    start = head[:12]
    printed = all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start)
    shown = repr(start.decode("ascii")) if printed else start[:8].hex(" ")
    advice = "write packets with tcpdump -w, or convert a hex dump with text2pcap"
    if not printed or b"\0" in head:
        convert = f"editcap -F pcapng {path} {path}.pcapng"
        advice = f"unpack it, or, if Wireshark opens it, convert it with: {convert}"
    raise NotACapture(f"{name} is not a capture: it starts with {shown}; {advice}")


def kept_stream(spool: Spool, start: int, end: int | None) -> ByteStream:
    """Return a stream of the bytes of a file in a spool, from the file's start. Reading raises
    NotKept when they were overwritten."""
    stop = spool.written if end is None else end
    places = range(start, stop, _KEPT_BYTES)
    return Pieces(spool.read(at, min(_KEPT_BYTES, stop - at)) for at in places)
