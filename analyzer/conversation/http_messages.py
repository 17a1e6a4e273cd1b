"""HTTP/1.x messages in the bytes of one direction, with holes. State without I/O.

Not h11: it takes one role of a connection, wants each request sent before it reads a response, and
ends at the first error. Here both sides are overheard, from the middle on, with bytes missing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple

from kafkascope.analyzer.model import HttpHead

MAX_HEAD: Final = 64 * 1024
"""Start line and headers; servers take 8 kB as a rule."""
MAX_LINE: Final = 16 * 1024
"""A start line, where one is looked for."""
MAX_BODY: Final = 16 * 1024 * 1024
"""A body that is kept, as sent and as unpacked; registries take schemas of 1 MB by default."""
MAX_CHUNK_LINE: Final = 1024
"""Size and extensions of a chunk, a line of a trailer."""

TOO_LARGE: Final = f"a body of more than {MAX_BODY >> 20} MB"
IN_A_GAP: Final = "part of a body is missing from the capture"
CUT: Final = "the connection ended inside a body"
RELIEVED: Final = "evicted: other connections needed the memory"

_METHODS: Final = rb"GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE"
REQUEST_LINE: Final = re.compile(
    rb"(" + _METHODS + rb") ([\x21-\x7e\x80-\xff]{1,%d}) HTTP/1\.[01]\r?\n" % MAX_LINE
)
RESPONSE_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]{0,1000})?\r?\n")
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_SIZE: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;|\r?\n)")
_LENGTH: Final = re.compile(r"\d{1,15}")


_SHOWN: Final = re.compile(
    rb"(HTTP/1\.[01] \d\d\d[^\r\n]*|(?:" + _METHODS + rb") (?:/[^?#\s]*)?)"
    rb"([^\r\n]*?)( HTTP/1\.[01])?(?=\r|\n|\Z)"
)
"""First bytes: method and path, or the status; what else the address has; the version."""
_SPACES: Final = b" \r\n"


def without_credentials(data: bytes) -> bytes:
    """Return first bytes of HTTP with asterisks for what may be a secret: headers, queries, users
    and passwords in addresses, bodies. Others return as they are."""
    found = _SHOWN.match(data)
    if found is None:
        return data
    begin, hidden, version = found.groups(b"")
    return begin + _stars(hidden) + version + _stars(data[found.end() :])


def _stars(data: bytes) -> bytes:
    return bytes(each if each in _SPACES else 42 for each in data)


class Message(NamedTuple):
    """A message with its body, as far as it is there."""

    head: HttpHead
    body: bytes
    """Unpacked."""
    dropped: str
    """Why the body is empty though it was not."""


class Messages:
    """One direction: bytes in, messages out.

    It calls `began` with each head as soon as it is there, which returns whether the body is worth
    keeping, or None where there is none whatever the headers say; `done` with the message; `lost`
    where the begin of the next one has to be looked for.
    """

    def __init__(
        self,
        *,
        requests: bool,
        began: Callable[[HttpHead], bool | None],
        done: Callable[[Message], None],
        lost: Callable[[], None],
        hunting: bool,
    ) -> None:
        """`hunting`: the first bytes may be in the middle of something."""
        self._line: Final = REQUEST_LINE if requests else RESPONSE_LINE
        self._requests: Final = requests
        self._began: Final = began
        self._tell: Final = done
        self._lost: Final = lost
        self._buffer = bytearray()
        """A head or a line that is not whole."""
        self._searched = 0
        self._step: Callable[[memoryview], int] = self._hunt if hunting else self._in_head
        """Takes bytes and returns how many; it leaves some only where it set another step."""
        self._head: HttpHead | None = None
        self._body = bytearray()
        self._keep = False
        self._dropped = ""
        self._left = 0
        """Bytes of a body or chunk that are to come."""
        self._chunked = False
        self.dead = False
        """The direction speaks HTTP no more: it was upgraded."""

    @property
    def held(self) -> int:
        """Memory that a message takes that is not whole."""
        return len(self._buffer) + len(self._body)

    def end(self) -> None:
        """The direction speaks HTTP no more."""
        self.dead = True
        self._forget()

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        at = 0
        while at < len(view) and not self.dead:
            at += self._step(view[at:])

    def gap(self, size: int | None) -> None:
        """Take note that bytes are missing. Inside a body whose size is known, the message ends
        where it should, without its body."""
        inside = self._step == self._in_body
        if inside and size is not None and size <= self._left:
            self._drop(IN_A_GAP)
            self._left -= size
            if not self._left:
                self._body_done()
        elif self._step == self._in_rest:
            self._drop(IN_A_GAP)
        else:
            self.hunt()

    def close(self) -> None:
        """End the direction, and with it a body without a size."""
        if self._head is not None:
            if self._step != self._in_rest:
                self._drop(CUT)
            self._done()

    def relieve(self) -> None:
        """Forget the body that is being collected."""
        if self._head is not None:
            self._drop(RELIEVED)

    def hunt(self) -> None:
        """Look for the begin of a message from here on."""
        self._forget()
        self._step = self._hunt
        self._lost()

    def _forget(self) -> None:
        self._head = None
        self._buffer, self._body = bytearray(), bytearray()
        self._searched = 0
        self._dropped = ""

    def _drop(self, reason: str) -> None:
        self._body = bytearray()
        self._keep = False
        self._dropped = self._dropped or reason

    # --- steps

    def _hunt(self, view: memoryview) -> int:
        """Look for a start line, behind whatever is before it in its line."""
        data = bytes(view[:MAX_LINE])
        end = data.find(b"\n") + 1
        self._buffer += data[:end] if end else data
        if not end:
            del self._buffer[:-MAX_LINE]
            return len(data)
        if b"HTTP/1." not in self._buffer:
            self._buffer.clear()
            return end
        found = self._line.search(self._buffer)
        if found is None:
            self._buffer.clear()
            return end
        del self._buffer[: found.start()]
        self._searched = 0
        self._step = self._in_head
        return end

    def _in_head(self, view: memoryview) -> int:
        buffer = self._buffer
        room = MAX_HEAD - len(buffer)
        before = len(buffer)
        buffer += view[:room]
        if not before and bytes(buffer[:1]) in (b"\r", b"\n"):
            # Empty lines before a request are to be ignored (RFC 9112, 2.2).
            buffer.clear()
            return 1
        found = _HEAD_END.search(buffer, self._searched)
        if found is not None:
            used = found.end() - before
            self._begin(bytes(buffer[: found.end()]))
            return used
        taken = len(buffer) - before
        self._searched = max(0, len(buffer) - 2)
        if len(buffer) >= MAX_HEAD or not self._may_be_head():
            self.hunt()
        return taken

    def _may_be_head(self) -> bool:
        """Return whether the buffer does not begin with something else than a start line."""
        head = bytes(self._buffer[:MAX_LINE])
        if b"\n" in head:
            return self._line.match(head) is not None
        return len(self._buffer) < MAX_LINE

    def _begin(self, data: bytes) -> None:
        """Read a head and find out how long the body is."""
        self._forget()
        head = self._read(data)
        if head is None:
            self.hunt()
            return
        status = head.status
        if 100 <= status < 200 and status != 101:
            self._step = self._in_head  # the response itself is still to come
            return
        wanted = self._began(head)
        if self.dead:
            return
        self._head = head
        self._keep = bool(wanted)
        self._chunked = False
        codings = head.headers.get("transfer-encoding", "").lower()
        length = head.headers.get("content-length")
        if wanted is None or status in (204, 304):
            self._done()
        elif "chunked" in codings:
            self._chunked = True
            self._step = self._in_size
        elif length is not None:
            sizes = {part.strip() for part in length.split(",")}
            (size,) = sizes if len(sizes) == 1 else ("",)
            if not _LENGTH.fullmatch(size):
                self.hunt()
                return
            self._left = int(size)
            self._step = self._in_body
            if not self._left:
                self._done()
        elif self._requests:
            self._done()
        else:
            self._step = self._in_rest

    def _read(self, data: bytes) -> HttpHead | None:
        start = self._line.match(data)
        if start is None:
            return None
        headers: dict[str, str] = {}
        for line in data[start.end() :].split(b"\n"):
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                name, value = name.strip().lower(), value.strip()
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if self._requests:
            return HttpHead(start[1].decode(), start[2].decode("latin-1"), 0, headers)
        return HttpHead("", "", int(start[1]), headers)

    def _add(self, data: memoryview) -> None:
        if not self._keep:
            return
        if len(self._body) + len(data) > MAX_BODY:
            self._drop(TOO_LARGE)
        else:
            self._body += data

    def _in_body(self, view: memoryview) -> int:
        part = view[: self._left]
        self._add(part)
        self._left -= len(part)
        if not self._left:
            self._body_done()
        return len(part)

    def _body_done(self) -> None:
        if self._chunked:
            self._step = self._behind_chunk
        else:
            self._done()

    def _in_rest(self, view: memoryview) -> int:
        self._add(view)
        return len(view)

    def _one_line(self, view: memoryview) -> tuple[int, bytes | None]:
        """Return how many bytes were taken, and the line if it is whole; hunts when it is too
        long."""
        data = bytes(view[: MAX_CHUNK_LINE + 1])
        end = data.find(b"\n") + 1
        self._buffer += data[:end] if end else data
        if len(self._buffer) > MAX_CHUNK_LINE:
            self.hunt()
            return end or len(data), None
        if not end:
            return len(data), None
        line = bytes(self._buffer)
        self._buffer.clear()
        return end, line

    def _in_size(self, view: memoryview) -> int:
        used, line = self._one_line(view)
        if line is not None:
            found = _SIZE.match(line)
            if found is None:
                self.hunt()
            else:
                self._left = int(found[1], 16)
                self._step = self._in_body if self._left else self._in_trailer
        return used

    def _behind_chunk(self, view: memoryview) -> int:
        used, line = self._one_line(view)
        if line is not None:
            if line.strip():
                self.hunt()
            else:
                self._step = self._in_size
        return used

    def _in_trailer(self, view: memoryview) -> int:
        used, line = self._one_line(view)
        if line is not None and not line.strip():
            self._done()
        return used

    def _done(self) -> None:
        """Tell a message and expect the next one."""
        head, body, dropped = self._head, bytes(self._body), self._dropped
        assert head is not None
        self._forget()
        self._step = self._in_head
        if body:
            body, dropped = unpacked(body, head)
        self._tell(Message(head, body, dropped))


def unpacked(body: bytes, head: HttpHead) -> tuple[bytes, str]:
    """Return a body without its codings, or why that is not possible."""
    names = ",".join(
        head.headers.get(name, "") for name in ("content-encoding", "transfer-encoding")
    )
    for name in (each.strip().lower() for each in names.split(",")):
        if name in ("", "identity", "chunked"):
            continue
        if name not in ("gzip", "x-gzip", "deflate"):
            return b"", f"a body with the coding {name[:20]}, which is not supported"
        try:
            body = _inflated(body)
        except zlib.error:
            return b"", f"a body that is not {name}, as its header says"
        if len(body) > MAX_BODY:
            return b"", TOO_LARGE
    return body, ""


def _inflated(body: bytes) -> bytes:
    """Return what a body expands to, up to a byte more than the limit."""
    # Some send deflate as it is, without the frame of zlib (RFC 9110, 8.4.1.2).
    framed = body[:2] == b"\x1f\x8b" or (body[0] & 15 == 8 and not int.from_bytes(body[:2]) % 31)
    machine = zlib.decompressobj(47 if framed else -15)
    out = machine.decompress(body, MAX_BODY + 1)
    if not machine.eof and len(out) <= MAX_BODY:
        raise zlib.error("cut")
    return out
