"""Finds where records of TLS go on behind a hole, or in a capture that begins behind the handshake.

A header is believed when the record behind it opens: the authentication tag tells. The sequence
number is one of those that the missing bytes allow. State without I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.model import Piece
from kafkascope.captures.resumable import Resumable
from kafkascope.captures.tls.keys.epoch import Epoch
from kafkascope.captures.tls.keys.suites import TLS_1_3, suite_of
from kafkascope.captures.tls.records import (
    APPLICATION_DATA,
    HEADER,
    LEAST_SEALED,
    MOST_RECORD,
    PIECE_BYTES,
    TlsRecord,
    beginning,
    shifted,
)

if TYPE_CHECKING:
    from kafkascope.captures.tls.sources import KeySources

SIGN: Final = bytes((APPLICATION_DATA, 3, 3))
"""How records of application data begin, in TLS 1.2 and 1.3."""
LEAST_RECORD: Final = HEADER + LEAST_SEALED
MOST_SEQUENCES: Final = 65_536
"""Sequence numbers that are tried for a record."""
MOST_TRIED: Final = 1 << 18
"""Sequence numbers that are tried in one search."""
USUAL_SUITES: Final = (0x1301, 0x1302)
"""Of TLS 1.3, those with AES-GCM: nearly all connections of Kafka have one of them."""
RARE_SUITES: Final = (0x1304, 0x1305, 0x1303)
"""The one with ChaCha20, which takes ten times as long to try, comes last."""
RARE_COST: Final = 12
"""What trying these takes, AES-GCM taking 1."""
MODERN_SUITES: Final = (*USUAL_SUITES, *RARE_SUITES)


class Search(Resumable):
    """The search in one direction."""

    STATE = ("_at", "_blocks", "_first", "_left", "_pieces", "_span", "tried_all")
    __slots__ = (*STATE, "tried")

    def __init__(self) -> None:
        self._blocks = b""
        """What came since, from the first place on where a record may begin."""
        self._pieces: list[Piece] = []
        self._at = 0
        """Of the candidate."""
        self._first = 0
        self._span = 1
        """How many sequence numbers are possible."""
        self._left = MOST_TRIED
        self.tried: set[tuple[bytes, bool]] = set()
        """Secrets of the key log, and whether as the client's, that do not fit the candidate."""
        self.tried_all = False
        """No secret fits: there is nothing more to look for."""

    @classmethod
    def behind(cls, sequence: int, lost: int | None) -> Search:
        """Search behind `lost` missing bytes, and the record that they cut."""
        search = cls()
        search._first = sequence
        search._span = MOST_SEQUENCES if lost is None else lost // LEAST_RECORD + 4
        return search

    @classmethod
    def anywhere(cls) -> Search:
        """Search from the start of a capture, without any idea."""
        search = cls()
        search._span = MOST_SEQUENCES
        return search

    @property
    def held(self) -> int:
        """Memory of what waits."""
        return len(self._blocks) + len(self._pieces) * PIECE_BYTES

    def add(self, data: bytes, pieces: list[Piece]) -> None:
        """Add the next bytes."""
        self._pieces += shifted(pieces, len(self._blocks))
        self._blocks += data
        self._span = min(self._span + len(data) // LEAST_RECORD, MOST_SEQUENCES)

    def gap(self, size: int | None) -> None:
        """Bytes are missing again."""
        more = MOST_SEQUENCES if size is None else (size + len(self._blocks)) // LEAST_RECORD + 2
        self._span = min(self._span + more, MOST_SEQUENCES)
        self._blocks, self._pieces, self._at = b"", [], 0

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
            if not LEAST_SEALED <= size <= MOST_RECORD:
                self._at = at + 1
                continue
            end = at + HEADER + size
            if end > len(data):
                self._drop(at)
                return None
            self._at = at
            body = data[at + HEADER : end]
            return TlsRecord(APPLICATION_DATA, 0x0303, size, body, self._pieces, at)
        self._drop(len(data))
        return None

    def reject(self) -> None:
        """The candidate was none."""
        self._at += 1

    def rest(self) -> tuple[bytes, list[Piece]]:
        """Return the bytes from the candidate on."""
        return self._blocks[self._at :], beginning(self._pieces, self._at)

    def sequences(self, most: int) -> range:
        """Return the sequence numbers that the candidate may have, `most` of them at most."""
        count = max(0, min(self._span, self._left, most))
        self._left -= count
        return range(self._first, self._first + count)

    def _drop(self, size: int) -> None:
        self._at = size
        if 2 * size < len(self._blocks):
            return  # what is left would be copied again and again
        self._pieces = beginning(self._pieces, size) if size < len(self._blocks) else []
        self._blocks = self._blocks[size:]
        self._at = 0


class FoundKeys(NamedTuple):
    """What trying the secrets of a key log gave."""

    epoch: Epoch | None = None
    client: bool = False
    """Whether the record is the client's."""
    sequence: int = 0
    text: str = ""
    """How far was tried."""


def midstream_keys(
    keys: KeySources,
    record: TlsRecord,
    tried: set[tuple[bytes, bool]],
    *,
    client: bool | None,
    epoch: Epoch | None,
) -> FoundKeys:
    """Try secrets of TLS 1.3 that no other connection has claimed on a record. `tried`: client
    randoms and sides whose secrets do not fit it; grows. `epoch`: what the other direction was
    found to use; `client`: who sent the record, where that is known."""
    from kafkascope.captures.tls.keys.midstream import find

    log = keys.log
    if log is None:
        return FoundKeys()
    # The other direction of a connection has one secret only, and costs nothing.
    randoms, left_out = keys.unclaimed() if epoch is None else ([epoch.client_random], 0)
    named: list[tuple[bytes, bool]] = []
    body = [(record.kind, record.body)]

    def offered() -> Iterator[bytes]:
        for random in randoms:
            known = log.secrets(random)
            if known is None:
                continue
            for mine, secret in ((True, known.client_traffic), (False, known.server_traffic)):
                if secret is None or client not in (None, mine) or (random, mine) in tried:
                    continue
                named.append((random, mine))
                secrets.append(secret)
                yield secret

    secrets: list[bytes] = []
    suites = USUAL_SUITES if epoch is None else (epoch.suite,)
    found = find(map(suite_of, suites), offered(), body, 0, MOST_SEQUENCES)
    rare: list[bytes] = []
    left = 0
    if found is None and epoch is None:
        most = max(0, keys.rare) // RARE_COST
        rare = [secret for secret in secrets if len(secret) == suite_of(RARE_SUITES[0]).secret_size]
        left, rare = len(rare[most:]), rare[:most]
        found = find(map(suite_of, RARE_SUITES), rare, body, 0, MOST_SEQUENCES)
        if found is not None:
            found = found._replace(which=secrets.index(rare[found.which]))
            keys.before -= RARE_COST * len(rare)
    if found is not None:
        random, mine = named[found.which]
        keys.before -= found.which + 1
        keys.found(random)
        return FoundKeys(Epoch(TLS_1_3, found.suite.number, random, b""), mine, found.sequence)
    keys.trials -= len(secrets)
    keys.rare -= RARE_COST * len(rare)
    tried.update(named)
    if not tried and not left_out:
        return FoundKeys(
            text="the key log has no unused TLS 1.3 secret, and TLS 1.2 cannot be decrypted "
            "without its handshake"
        )
    more = f" (those of {left_out} other connections were not tried)" if left_out else ""
    only = f"; {left} of them were tried with AES-GCM only" if left else ""
    count = f"{len(tried)} secret{'s' * (len(tried) != 1)}"
    return FoundKeys(
        text=f"{count} of the key log, with {MOST_SEQUENCES} sequence numbers each, do not "
        f"match{only}{more}"
    )
