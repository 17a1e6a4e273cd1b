"""What all connections of a reading share to decrypt TLS: the key log, the sessions that may be
resumed, and how much may be tried. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.formats.records import TLS_KEY_LOG, DecryptionSecrets
from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.extras import installed

if TYPE_CHECKING:
    from kafkascope.captures.model import Connection
    from kafkascope.captures.resumable import Dump
    from kafkascope.captures.tls.keys.epoch import Epoch, FullHandshake, Sessions
    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.captures.tls.records import TlsRecord

USUAL_SUITES: Final = (0x1301, 0x1302)
"""Suites of TLS 1.3, those with AES-GCM: nearly all connections of Kafka have one of them."""
RARE_SUITES: Final = (0x1304, 0x1305, 0x1303)
"""The one with ChaCha20, which takes ten times as long to try, comes last."""
# What trying these takes, AES-GCM taking 1.
RARE_COST: Final = 12
MODERN_SUITES: Final = (*USUAL_SUITES, *RARE_SUITES)
# Lines before and after the one that was found last, which are tried first: programs write them in
# the order of their connections.
NEAR: Final = 8


class FoundKeys(NamedTuple):
    """What trying the secrets of a key log gave."""

    epoch: Epoch | None = None
    client: bool = False
    """Whether the record is the client's."""
    sequence: int = 0
    text: str = ""
    """How far was tried."""


class KeySources:
    """Secrets that connections request and offer. All that one connection learns from another
    passes here, so that a task with only some of the connections can be given what it requests.
    `log` is None without a key log, given or inside a file."""

    def __init__(
        self,
        log: KeyLog | None = None,
        blocks: Sequence[DecryptionSecrets] = (),
        *,
        growing: bool = False,
        limits: CaptureLimits = LIMITS,
    ) -> None:
        """`blocks`: the key logs that the input itself holds; it grows while that is read.
        `growing`: `log` may get more lines, so records wait for a secret that it lacks."""
        self._log = log
        self.limits = limits
        self.growing = growing and log is not None
        self._sessions: Sessions | None = None
        self.claimed: set[bytes] = set()
        """Client randoms of connections whose handshake was seen."""
        self.trials = self.limits.secret_trials
        """Secrets that may still be tried without success."""
        self.rare = self.limits.rare_trials
        self.before = self.limits.fitting_trials
        self.sequences = self.limits.gap_sequences
        """Sequence numbers that may still be tried after holes."""
        self.opened: Callable[[Connection, Epoch], None] | None = None
        """Called with the handshakes of a connection whose secrets are known."""
        self._blocks = blocks
        self._taken = 0
        """How many of them were taken."""
        self._free: list[bytes] = []
        """Client randoms that no connection had claimed when they came, the oldest first."""
        self._place: int | None = None
        """Where in it the one stands that was found last."""
        self._looked: KeyLog | None = None
        """The log of which they are."""

    def next_shard(self) -> KeySources:
        """Return the sources of other connections: the same log, and the trials that are left."""
        made = KeySources(self._log, limits=self.limits)
        made.trials, made.rare = self.trials, self.rare
        made.before, made.sequences = self.before, self.sequences
        return made

    def dump(self) -> Dump:
        """Return what later connections need to know of earlier ones, for another process: names
        of handshakes, no secrets."""
        sessions = None if self._sessions is None else self._sessions.dump()
        return {"sessions": sessions, "claimed": self.claimed}

    def load(self, state: Dump) -> None:
        self.claimed = state["claimed"]
        if state["sessions"] is not None:
            self.sessions.load(state["sessions"])

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
            if len(self._free) > 2 * self.limits.unclaimed_randoms:
                self._free = self._free[-self.limits.unclaimed_randoms :]
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
        if passed > self.limits.claimed_randoms:
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
        last = range(
            end - 1, max(-1, end - 1 - self.limits.claimed_randoms - self.limits.fitting_trials), -1
        )
        places = (place for each in (near, last) for place in each)
        self._place = next((each for each in places if self._free[each] == client_random), at)

    def limited(self, readers: int) -> bool:
        """Return whether a limit may be near where so many `readers` of one input each try as much
        as was tried here."""
        limits = self.limits
        secrets = 2 * len(self._free)
        rare = RARE_COST * secrets
        return (
            readers * (limits.secret_trials - self.trials) + secrets > limits.secret_trials
            or readers * (limits.rare_trials - self.rare) + rare > limits.rare_trials
            or readers * (limits.fitting_trials - self.before) + rare > limits.fitting_trials
            or 2 * readers * (limits.gap_sequences - self.sequences) > limits.gap_sequences
        )

    @property
    def sessions(self) -> Sessions:
        """The sessions of TLS 1.2 that connections may resume."""
        if self._sessions is None:
            from kafkascope.captures.tls.keys.epoch import Sessions

            self._sessions = Sessions()
        return self._sessions

    def log_for(self, epoch: Epoch) -> KeyLog | None:
        """Return the key log, to make keys for an epoch."""
        return self.log

    def claim(self, client_random: bytes) -> None:
        """Keep the secrets of a connection whose handshake was seen from being tried on others."""
        log = self.log
        if log is not None and log.secrets(client_random) is not None:
            self.claimed.add(client_random)

    def origins(self, client_random: bytes, name: bytes) -> tuple[FullHandshake, ...]:
        """Return the handshakes behind a ticket or session id that the client with this random
        offers."""
        return self.sessions.of(name)

    def resume(
        self, own: FullHandshake, offered: tuple[bytes, ...], given: tuple[bytes, ...]
    ) -> tuple[FullHandshake, ...]:
        """Return the handshakes whose master secret a connection uses: its own, and those behind
        the names that it resumes. They are behind the names that its server gave out, too."""
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
        """Try the secrets of TLS 1.3 that no other connection has claimed on a record of a
        connection without a handshake. `tried`: client randoms and sides whose secrets do not fit
        it; grows. `place`: number of the connection, direction. `client`: who sent the record,
        where that is known. `epoch`: what the other direction was found to use."""
        log = self.log
        if log is None:
            return FoundKeys()
        from kafkascope.captures.tls.keys.epoch import Epoch
        from kafkascope.captures.tls.keys.midstream import find
        from kafkascope.captures.tls.keys.suites import TLS_1_3, suite_of

        # The other direction of a connection has one secret only, and costs nothing.
        randoms, left_out = self.unclaimed() if epoch is None else ([epoch.client_random], 0)
        named: list[tuple[bytes, bool]] = []
        secrets: list[bytes] = []

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

        suites = USUAL_SUITES if epoch is None else (epoch.suite,)
        found = find(map(suite_of, suites), offered(), record.body)
        rare: list[bytes] = []
        left = 0
        if found is None and epoch is None:
            most = max(0, self.rare) // RARE_COST
            size = suite_of(RARE_SUITES[0]).secret_size
            rare = [secret for secret in secrets if len(secret) == size]
            left, rare = len(rare[most:]), rare[:most]
            found = find(map(suite_of, RARE_SUITES), rare, record.body)
            if found is not None:
                found = found._replace(which=secrets.index(rare[found.which]))
                self.before -= RARE_COST * len(rare)
        if found is not None:
            random, mine = named[found.which]
            self.before -= found.which + 1
            self.found(random)
            return FoundKeys(Epoch(TLS_1_3, found.suite.number, random, b""), mine, found.sequence)
        self.trials -= len(secrets)
        self.rare -= RARE_COST * len(rare)
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
            text=f"{count} of the key log, with {self.limits.sequences} sequence numbers each, "
            f"do not match{only}{more}"
        )
