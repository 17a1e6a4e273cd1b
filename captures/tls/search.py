"""Finds where records of TLS go on after a hole, or in a capture that begins after the handshake.

A header is believed when the record after it opens: its authentication tag is the proof. The
sequence number is one of those that the missing bytes allow. State without I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Piece
from kafkascope.captures.resumable import TRANSIENT, Resumable
from kafkascope.captures.tls.records import (
    APPLICATION_DATA,
    HEADER,
    LEAST_SEALED,
    PIECE_BYTES,
    TlsRecord,
    beginning,
    shifted,
)

SIGN: Final = bytes((APPLICATION_DATA, 3, 3))
"""How records of application data begin, in TLS 1.2 and 1.3."""
LEAST_RECORD: Final = HEADER + LEAST_SEALED


@dataclass(slots=True, eq=False)
class Search(Resumable):
    """The search in one direction."""

    _blocks: bytes = b""
    """What came since, from the first place on where a record may begin."""
    pieces: list[Piece] = field(default_factory=list)
    _at: int = 0
    """Offset of the candidate."""
    _first: int = 0
    _span: int = 1
    """How many sequence numbers are possible."""
    _left: int = LIMITS.search_sequences
    tried: set[tuple[bytes, bool]] = field(default_factory=set, metadata=TRANSIENT)
    """Secrets of the key log, and whether as the client's, that do not fit the candidate."""
    tried_all: bool = False
    """No secret fits: there is nothing more to look for."""

    @classmethod
    def behind(cls, sequence: int, lost: int | None) -> Search:
        """Search after `lost` missing bytes, and the record that they cut."""
        # Records have no number on the wire (RFC 5246, 6.1; RFC 8446, 5.3). Each takes some bytes
        # at least, so that what is missing bounds how many may have passed.
        span = LIMITS.sequences if lost is None else lost // LEAST_RECORD + 4
        return cls(_first=sequence, _span=span)

    @classmethod
    def anywhere(cls) -> Search:
        """Search from the start of a capture, without any idea."""
        return cls(_span=LIMITS.sequences)

    @property
    def held(self) -> int:
        """Memory of what waits."""
        return len(self._blocks) + len(self.pieces) * PIECE_BYTES

    def add(self, data: bytes, pieces: list[Piece]) -> None:
        self.pieces += shifted(pieces, len(self._blocks))
        self._blocks += data
        self._span = min(self._span + len(data) // LEAST_RECORD, LIMITS.sequences)

    def gap(self, size: int | None) -> None:
        """Bytes are missing again."""
        more = LIMITS.sequences if size is None else (size + len(self._blocks)) // LEAST_RECORD + 2
        self._span = min(self._span + more, LIMITS.sequences)
        self._blocks, self.pieces, self._at = b"", [], 0

    def candidate(self) -> TlsRecord | None:
        """Return the next record that may be one, when all of it is here."""
        data = self._blocks
        while not self.tried_all:
            at = data.find(SIGN, self._at)
            if at < 0:
                self._drop(max(self._at, len(data) - HEADER + 1))
                return None
            size = int.from_bytes(data[at + 3 : at + HEADER], "big")
            if at + HEADER > len(data):
                self._drop(at)
                return None
            # The same three bytes are in ciphertext once in 16 MB. Most have no size of a record
            # after them, and a trial with all sequence numbers costs much more than this.
            if not LEAST_SEALED <= size <= LIMITS.tls_record_bytes:
                self._at = at + 1
                continue
            end = at + HEADER + size
            if end > len(data):
                self._drop(at)
                return None
            self._at = at
            body = data[at + HEADER : end]
            return TlsRecord(APPLICATION_DATA, 0x0303, size, body, self.pieces, at)
        self._drop(len(data))
        return None

    def reject(self) -> None:
        self._at += 1

    def rest(self) -> tuple[bytes, list[Piece]]:
        """Return the bytes from the candidate on."""
        return self._blocks[self._at :], beginning(self.pieces, self._at)

    def sequences(self, most: int) -> range:
        """Return the sequence numbers that the candidate may have, `most` of them at most."""
        count = max(0, min(self._span, self._left, most))
        self._left -= count
        return range(self._first, self._first + count)

    def _drop(self, size: int) -> None:
        self._at = size
        if 2 * size < len(self._blocks):
            return  # what is left would be copied again and again
        self.pieces = beginning(self.pieces, size) if size < len(self._blocks) else []
        self._blocks = self._blocks[size:]
        self._at = 0
