"""HTTP/1.x messages in the bytes of one direction, with holes. State without I/O.

Not h11: it takes one role of a connection, wants each request sent before it reads a response, and
ends at the first error. Here both sides are overheard, from the middle on, with bytes missing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Final, NamedTuple

from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.schemas.http_head import HttpHead

TOO_LARGE: Final = f"a body of more than {LIMITS.http_body_bytes >> 20} MB"
IN_A_GAP: Final = "part of a body is missing from the capture"
CUT: Final = "the connection ended inside a body"
RELIEVED: Final = "evicted: other connections needed the memory"

_METHODS: Final = rb"GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE"
REQUEST_LINE: Final = re.compile(
    rb"(" + _METHODS + rb") ([\x21-\x7e\x80-\xff]{1,%d}) HTTP/1\.[01]\r?\n" % LIMITS.http_line_bytes
)
RESPONSE_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-9]\d\d)(?: [^\r\n]{0,1000})?\r?\n")
_HEAD_END: Final = re.compile(rb"\n\r?\n")
_SIZE: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;|\r?\n)")
_LENGTH: Final = re.compile(r"\d{1,15}")

# Size of a body that ends with the connection: longer than any that has one.
UNKNOWN: Final = 1 << 62

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


class _Lost(Exception):
    """These bytes are no message."""


class Messages:
    """One direction: bytes in, messages out.

    It calls `began` with each head as soon as it is there, which returns whether the body is worth
    keeping, or None where there is none whatever the headers say; `done` with the message; `lost`
    where the start of the next one has to be looked for.
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
        """Bytes that were not read yet."""
        self._reading = self._read(hunting)
        """Goes on whenever there are more bytes."""
        self._head: HttpHead | None = None
        """Head of the message that is being read."""
        self._body = bytearray()
        self._keep = False
        self._dropped = ""
        self._left = 0
        """Bytes of a body or chunk that are to come; `UNKNOWN` for all that comes."""
        self.dead = False
        """The direction speaks HTTP no more: it was upgraded."""

    @property
    def held(self) -> int:
        return len(self._buffer) + len(self._body)

    def end(self) -> None:
        """The direction speaks HTTP no more."""
        self.dead = True
        self._forget()
        self._buffer.clear()

    def feed(self, data: bytes) -> None:
        if not self.dead:
            self._buffer += data
            next(self._reading, None)

    def gap(self, size: int | None) -> None:
        """Take note that bytes are missing. Inside a body whose size is known, the message ends
        where it should, without its body."""
        if self._left == UNKNOWN:
            self._drop(IN_A_GAP)
        elif self._left and size is not None and size <= self._left:
            self._drop(IN_A_GAP)
            self._left -= size
            next(self._reading, None)
        else:
            self._buffer.clear()
            self._lose()
            self._reading = self._read(hunting=True)

    def close(self) -> None:
        """End the direction, and with it a body without a size."""
        if self._head is not None:
            if self._left != UNKNOWN:
                self._drop(CUT)
            self._done()

    def evict(self) -> None:
        """Forget the body that is being collected."""
        if self._head is not None:
            self._drop(RELIEVED)

    def _lose(self) -> None:
        self._forget()
        self._lost()

    def _forget(self) -> None:
        self._head = None
        self._body = bytearray()
        self._dropped = ""
        self._left = 0

    def _drop(self, reason: str) -> None:
        self._body = bytearray()
        self._keep = False
        self._dropped = self._dropped or reason

    # --- what reads the buffer, and yields where it needs more

    def _read(self, hunting: bool) -> Iterator[None]:
        while not self.dead:
            try:
                if hunting:
                    yield from self._start()
                yield from self._message()
                hunting = False
            except _Lost:
                self._lose()
                hunting = True

    def _start(self) -> Iterator[None]:
        """Look for a start line, after whatever is before it in its line."""
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched) + 1
            if not end:
                del self._buffer[: -LIMITS.http_line_bytes]
                searched = len(self._buffer)
                yield
                continue
            line = self._buffer[max(0, end - 2 * LIMITS.http_line_bytes) : end]
            found = self._line.search(line) if b"HTTP/1." in line else None
            if found is not None:
                del self._buffer[: end - len(line) + found.start()]
                return
            del self._buffer[:end]
            searched = 0

    def _message(self) -> Iterator[None]:
        """Read a message, or the head of a response that another one follows."""
        data = yield from self._head_bytes()
        head = self._parsed(data)
        status = head.status
        if 100 <= status < 200 and status != 101:
            return  # the response itself is still to come
        wanted = self._began(head)
        if self.dead:
            return
        self._head, self._keep = head, bool(wanted)
        length = head.headers.get("content-length")
        if wanted is None or status in (204, 304):
            pass
        elif "chunked" in head.headers.get("transfer-encoding", "").lower():
            yield from self._chunks()
        elif length is not None:
            sizes = {part.strip() for part in length.split(",")}
            (size,) = sizes if len(sizes) == 1 else ("",)
            if not _LENGTH.fullmatch(size):
                raise _Lost
            yield from self._content(int(size))
        elif not self._requests:
            yield from self._content(UNKNOWN)
        self._done()

    def _head_bytes(self) -> Generator[None, None, bytes]:
        buffer = self._buffer
        # Empty lines before a request are to be ignored (RFC 9112, 2.2).
        while not buffer or buffer[0] in b"\r\n":
            if not buffer:
                yield
            else:
                del buffer[:1]
        searched = 0
        while (found := _HEAD_END.search(buffer, searched, LIMITS.http_head_bytes)) is None:
            if len(buffer) >= LIMITS.http_head_bytes or not self._may_be_head():
                del buffer[: LIMITS.http_head_bytes]
                raise _Lost
            searched = max(0, len(buffer) - 2)
            yield
        data = bytes(buffer[: found.end()])
        del buffer[: found.end()]
        return data

    def _may_be_head(self) -> bool:
        """Return whether the buffer does not begin with something else than a start line."""
        head = bytes(self._buffer[: LIMITS.http_line_bytes])
        if b"\n" in head:
            return self._line.match(head) is not None
        return len(self._buffer) < LIMITS.http_line_bytes

    def _parsed(self, data: bytes) -> HttpHead:
        start = self._line.match(data)
        if start is None:
            raise _Lost
        headers: dict[str, str] = {}
        for line in data[start.end() :].split(b"\n"):
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                name, value = name.strip().lower(), value.strip()
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if self._requests:
            return HttpHead(start[1].decode(), start[2].decode("latin-1"), 0, headers)
        return HttpHead("", "", int(start[1]), headers)

    def _chunks(self) -> Iterator[None]:
        size = -1
        while size:
            found = _SIZE.match((yield from self._one_line()))
            if found is None:
                raise _Lost
            size = int(found[1], 16)
            yield from self._content(size)
            if size and (yield from self._one_line()).strip():
                raise _Lost
        while (yield from self._one_line()).strip():
            pass  # a trailer

    def _content(self, size: int) -> Iterator[None]:
        """Read so many bytes of a body, those that a gap swallows among them."""
        self._left = size
        while self._left:
            if not self._buffer:
                yield
                continue
            part = self._buffer[: self._left]
            del self._buffer[: self._left]
            if self._left != UNKNOWN:
                self._left -= len(part)
            if self._keep and len(self._body) + len(part) > LIMITS.http_body_bytes:
                self._drop(TOO_LARGE)
            elif self._keep:
                self._body += part

    def _one_line(self) -> Generator[None, None, bytes]:
        """Read a line of a chunked body, with its end."""
        while not (end := self._buffer.find(b"\n", 0, LIMITS.http_chunk_line_bytes) + 1):
            if len(self._buffer) > LIMITS.http_chunk_line_bytes:
                del self._buffer[: LIMITS.http_chunk_line_bytes]
                raise _Lost
            yield
        line = bytes(self._buffer[:end])
        del self._buffer[:end]
        return line

    def _done(self) -> None:
        """Tell a message and expect the next one."""
        head, body, dropped = self._head, bytes(self._body), self._dropped
        assert head is not None
        self._forget()
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
        if len(body) > LIMITS.http_body_bytes:
            return b"", TOO_LARGE
    return body, ""


def _inflated(body: bytes) -> bytes:
    """Return what a body expands to, up to a byte more than the limit."""
    # Some send deflate as it is, without the frame of zlib (RFC 9110, 8.4.1.2).
    framed = body[:2] == b"\x1f\x8b" or (body[0] & 15 == 8 and not int.from_bytes(body[:2]) % 31)
    machine = zlib.decompressobj(47 if framed else -15)
    out = machine.decompress(body, LIMITS.http_body_bytes + 1)
    if not machine.eof and len(out) <= LIMITS.http_body_bytes:
        raise zlib.error("cut")
    return out
