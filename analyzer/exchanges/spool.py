"""JSON of records beyond some megabytes: in a temporary file until its line is written."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import BinaryIO, Final

# Bytes of JSON for the records of an exchange that are held in memory. A line of JSON is encoded,
# escaped and written, and each step would hold a copy.
HELD: Final = 8 << 20

_TOKEN: Final = secrets.token_hex(16).encode()
"""Nobody can foresee it: it is in no message."""
_MARK: Final = re.compile(b'"%b:(\\d+)"' % _TOKEN)


class Spool:
    """Texts that are written to a file, each with a mark in its place in the line."""

    def __init__(self) -> None:
        self._file: BinaryIO = TemporaryFile()  # noqa: SIM115
        self._texts: list[tuple[int, list[int]]] = []
        """Where each begins, and the bytes of its pieces."""

    def begin(self) -> bytes:
        """Begin a text; return its mark, a string of JSON."""
        self._texts.append((self._file.tell(), []))
        return b'"%b:%d"' % (_TOKEN, len(self._texts) - 1)

    def add(self, pieces: Iterable[bytes]) -> None:
        sizes = self._texts[-1][1]
        for piece in pieces:
            sizes.append(self._file.write(piece))

    def line(self, marked: bytes) -> Iterator[bytes]:
        """Yield a line, in which texts have marks, in pieces; none ends inside a character."""
        at = 0
        for mark in _MARK.finditer(marked):
            yield marked[at : mark.start()]
            start, sizes = self._texts[int(mark[1])]
            self._file.seek(start)
            yield from map(self._file.read, sizes)
            at = mark.end()
        yield marked[at:]
        self._file.close()
