"""What all connections of a reading share to decrypt TLS: the key log, the sessions that may be
resumed, and how much may be tried. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kafkascope.extras import installed

if TYPE_CHECKING:
    from kafkascope.captures.formats.records import DecryptionSecrets
    from kafkascope.captures.model import Connection
    from kafkascope.captures.tls.keys.epoch import Epoch
    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.captures.tls.keys.sessions import Origin, Sessions
    from kafkascope.captures.tls.records import TlsRecord
    from kafkascope.captures.tls.search import FoundKeys

TLS_KEY_LOG: Final = 0x544C534B
"""Type of a Decryption Secrets Block that holds a key log."""
MOST_TRIALS: Final = 1200
"""Secrets that are tried in vain on all connections without a handshake together, each with all its
sequence numbers: some 2 s."""
MOST_RARE: Final = 1800
"""What trying other suites than AES-GCM may take in vain: as many times as trying one secret with
that, which takes 2 ms. Enough for the secrets of 75 connections."""
MOST_BEFORE: Final = 15_000
"""Secrets that are tried on those of which one is found to fit: 30 s with AES."""
NEAR: Final = 8
"""Lines before and behind the one that was found last, which are tried first: programs write them
in the order of their connections."""
MOST_FREE: Final = 100_000
"""Client randoms that no connection has claimed, of which is known; of more, the oldest go."""
MOST_PASSED: Final = 1000
"""Client randoms with a connection that are passed over before the list of others is made anew."""
MOST_SEQUENCES: Final = 10_000_000
"""Sequence numbers that are tried behind holes, on all connections together: some 30 s."""


class SharedKeys(Protocol):
    """What a connection asks for and tells. All that one connection learns of another passes here,
    so that a task that has some of the connections only can be told what it asks."""

    growing: bool
    """Whether the key log may get more lines, so that records wait for a secret that it lacks."""
    sequences: int
    """Sequence numbers that may still be tried behind holes."""
    opened: Callable[[Connection, Epoch], None] | None
    """Called with the handshakes of a connection whose secrets are known."""

    @property
    def trials(self) -> int:
        """Secrets that may still be tried in vain."""

    @property
    def log(self) -> KeyLog | None:
        """The key log, as far as it was read."""

    def log_for(self, epoch: Epoch) -> KeyLog | None:
        """Return the key log, to make keys for an epoch."""

    def claim(self, client_random: bytes) -> None:
        """Keep the secrets of a connection whose handshake was seen from being tried on others."""

    def origins(self, client_random: bytes, name: bytes) -> tuple[Origin, ...]:
        """Return the handshakes behind a ticket or session id that the client with this random
        offers."""

    def resume(
        self, own: Origin, offered: tuple[bytes, ...], given: tuple[bytes, ...]
    ) -> tuple[Origin, ...]:
        """Return the handshakes whose master secret a connection uses: its own, and those behind
        the names that it resumes. They are behind the names that its server gave out, too."""

    def midstream(
        self,
        record: TlsRecord,
        tried: set[tuple[bytes, bool]],
        place: tuple[int, int],
        *,
        client: bool | None,
        epoch: Epoch | None,
    ) -> FoundKeys:
        """Try the secrets that no other connection has claimed on a record of a connection without
        a handshake: see `search.midstream_keys`. `place`: number of the connection, direction."""


class KeySources:
    """`log` is None as long as nobody gave one, and no file had one inside."""

    def __init__(
        self,
        log: KeyLog | None = None,
        blocks: Sequence[DecryptionSecrets] = (),
        *,
        growing: bool = False,
    ) -> None:
        """`blocks`: the key logs that the input itself holds; it grows while that is read.
        `growing`: `log` may get more lines, so records wait for a secret that it lacks."""
        self._log = log
        self.growing = growing and log is not None
        self._sessions: Sessions | None = None
        self.claimed: set[bytes] = set()
        """Client randoms of connections whose handshake was seen."""
        self.trials = MOST_TRIALS
        self.rare = MOST_RARE
        self.before = MOST_BEFORE
        self.sequences = MOST_SEQUENCES
        self.opened: Callable[[Connection, Epoch], None] | None = None
        self._blocks = blocks
        self._taken = 0
        """How many of them were taken."""
        self._free: list[bytes] = []
        """Client randoms that no connection had claimed when they came, the oldest first."""
        self._place: int | None = None
        """Where in it the one stands that was found last."""
        self._looked: KeyLog | None = None
        """The log of which they are."""

    @property
    def log(self) -> KeyLog | None:
        """The key log, with what the input holds of its own by now."""
        while self._taken < len(self._blocks):
            block = self._blocks[self._taken]
            self._taken += 1
            if block.kind == TLS_KEY_LOG and installed("tls"):
                if self._log is None:
                    from kafkascope.captures.tls.keys.keylog import KeyLog

                    self._log = KeyLog()
                self._log.add(block.data)
                self._log.finish()
        return self._log

    def unclaimed(self) -> tuple[list[bytes], int]:
        """Return the client randoms of TLS 1.3 that no connection has claimed, the newest first, as
        many as may be tried; and how many more there are."""
        log = self.log
        most = min(self.trials, self.before)
        if log is not None and most > 0:
            if log is not self._looked:
                self._looked = log
                log.fresh = [*log.randoms()]
            fresh, log.fresh = log.fresh, []
            self._free += [each for each in fresh or () if each not in self.claimed]
            if len(self._free) > 2 * MOST_FREE:
                self._free = self._free[-MOST_FREE:]
                self._place = None
        found = self._near()[: max(0, most) // 2]
        near = set(found)
        passed = 0
        for random in reversed(self._free):
            if 2 * len(found) >= most:
                break
            if random in self.claimed:
                passed += 1
            elif random not in near:
                found.append(random)
        if passed > MOST_PASSED:
            self._free = [each for each in self._free if each not in self.claimed]
            self._place = None
            passed = 0
        return found, len(self._free) - passed - len(found)

    def _near(self) -> list[bytes]:
        """Return the client randoms beside the one that was found last, the nearest first."""
        at = self._place
        if at is None:
            return []
        places = sorted(
            range(max(0, at - NEAR), min(len(self._free), at + NEAR + 1)),
            key=lambda place: (abs(place - at), -place),
        )
        return [self._free[place] for place in places if self._free[place] not in self.claimed]

    def found(self, client_random: bytes) -> None:
        """A connection without a handshake has this client random."""
        self.claimed.add(client_random)
        at, end = self._place, len(self._free)
        near = () if at is None else range(max(0, at - NEAR), min(end, at + NEAR + 1))
        last = range(end - 1, max(-1, end - 1 - MOST_PASSED - MOST_BEFORE), -1)
        places = (place for each in (near, last) for place in each)
        self._place = next((each for each in places if self._free[each] == client_random), at)

    def limited(self, readers: int) -> bool:
        """Return whether a limit may be near where so many `readers` of one input each try as much
        as was tried here."""
        secrets = rare = 2 * len(self._free)
        if secrets:
            from kafkascope.captures.tls.search import RARE_COST

            rare *= RARE_COST
        return (
            readers * (MOST_TRIALS - self.trials) + secrets > MOST_TRIALS
            or readers * (MOST_RARE - self.rare) + rare > MOST_RARE
            or readers * (MOST_BEFORE - self.before) + rare > MOST_BEFORE
            or 2 * readers * (MOST_SEQUENCES - self.sequences) > MOST_SEQUENCES
        )

    @property
    def sessions(self) -> Sessions:
        """The sessions of TLS 1.2 that connections may resume."""
        if self._sessions is None:
            from kafkascope.captures.tls.keys.sessions import Sessions

            self._sessions = Sessions()
        return self._sessions

    def log_for(self, epoch: Epoch) -> KeyLog | None:
        """See `SharedKeys`."""
        return self.log

    def claim(self, client_random: bytes) -> None:
        """See `SharedKeys`."""
        log = self.log
        if log is not None and log.secrets(client_random) is not None:
            self.claimed.add(client_random)

    def origins(self, client_random: bytes, name: bytes) -> tuple[Origin, ...]:
        """See `SharedKeys`."""
        return self.sessions.of(name)

    def resume(
        self, own: Origin, offered: tuple[bytes, ...], given: tuple[bytes, ...]
    ) -> tuple[Origin, ...]:
        """See `SharedKeys`."""
        sessions = self.sessions
        found = [each for name in offered for each in sessions.of(name)]
        origins = (own, *(each for each in found if each != own))
        for name in given:
            sessions.remember(name, origins)
        return origins

    def midstream(
        self,
        record: TlsRecord,
        tried: set[tuple[bytes, bool]],
        place: tuple[int, int],
        *,
        client: bool | None,
        epoch: Epoch | None,
    ) -> FoundKeys:
        """See `SharedKeys`."""
        from kafkascope.captures.tls.search import midstream_keys

        return midstream_keys(self, record, tried, client=client, epoch=epoch)
