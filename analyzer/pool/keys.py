"""What the connections of one worker need to be decrypted, and what those of others could have told
them: see `captures.tls.sources.SharedKeys`. State without I/O.

A worker has the whole key log, which is a file or stands in the capture that all read. What it does
not know is of other connections: which session of TLS 1.2 one resumes, and which secrets are taken
where one is tried without a handshake. So it tells and asks names, and who reads together compares
(`Gathering`).
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING

from kafkascope.analyzer.pool.messages import Alone

if TYPE_CHECKING:
    from kafkascope.captures.model import Connection
    from kafkascope.captures.tls.keys.epoch import Epoch
    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.captures.tls.keys.sessions import Origin
    from kafkascope.captures.tls.records import TlsRecord
    from kafkascope.captures.tls.search import FoundKeys
    from kafkascope.captures.tls.sources import KeySources

_RANDOM, _SESSION = b"r", b"s"
Say = Callable[[bytes], None]


class WorkerKeys:
    """Gives what `keys` gives, and tells what that took of other connections."""

    growing = False

    def __init__(self, keys: KeySources, readers: int, tell: Say, ask: Say) -> None:
        """`readers`: how many read the input together. `tell` and `ask` are called with digests of
        names: those that connections have, and those whose meaning others may know."""
        self._keys = keys
        self._readers = readers
        self._tell, self._ask = tell, ask
        self.sequences = keys.sequences
        self._blind = False
        """Names were not asked for."""
        self.opened: Callable[[Connection, Epoch], None] | None = None

    @property
    def trials(self) -> int:
        """Secrets that may still be tried in vain."""
        return self._keys.trials

    @property
    def log(self) -> KeyLog | None:
        """The key log, as far as it was read."""
        return self._keys.log

    def log_for(self, epoch: Epoch) -> KeyLog | None:
        """Return the key log, to make keys for an epoch."""
        return self._keys.log

    def claim(self, client_random: bytes) -> None:
        """Tell that a connection has this secret."""
        log = self.log
        self._keys.claim(client_random)
        if log is not None and log.secrets(client_random) is not None:
            self._tell(_digest(_RANDOM, client_random))

    def origins(self, client_random: bytes, name: bytes) -> tuple[Origin, ...]:
        """Ask for a name, unless the key log has a secret for the connection itself."""
        log = self.log
        if log is not None and not log.other_names and log.secrets(client_random) is None:
            self._ask_for(name)
        return self._keys.origins(client_random, name)

    def resume(
        self, own: Origin, offered: tuple[bytes, ...], given: tuple[bytes, ...]
    ) -> tuple[Origin, ...]:
        """Ask for the names that are offered, unless the key log has the connection's own secret,
        and tell those that were given."""
        log = self.log
        if log is None:
            # Nobody asks before there is a key log, which rarely comes in the middle.
            self._blind |= any(offered)
        elif self._blind:
            raise Alone
        elif own.master(log) is None:
            for name in offered:
                self._ask_for(name)
        found = self._keys.resume(own, offered, given)
        for name in given:
            if name:
                self._tell(_digest(_SESSION, name))
        return found

    def _ask_for(self, name: bytes) -> None:
        if name:
            self._ask(_digest(_SESSION, name))

    def midstream(
        self,
        record: TlsRecord,
        tried: set[tuple[bytes, bool]],
        place: tuple[int, int],
        *,
        client: bool | None,
        epoch: Epoch | None,
    ) -> FoundKeys:
        """Try secrets on a record. What fits does so whoever else has secrets; what is told where
        none fits, and when to give up, depends on what others have: raises `Alone`."""
        log = self.log
        found = self._keys.midstream(record, tried, place, client=client, epoch=epoch)
        if epoch is not None or log is None or next(log.randoms(), None) is None:
            return found
        if found.epoch is None or self.limited():
            raise Alone
        name = _digest(_RANDOM, found.epoch.client_random)
        self._ask(name)
        self._tell(name)
        return found

    def limited(self) -> bool:
        """Return whether a limit for all connections may be near, were all readers like this."""
        self._keys.sequences = self.sequences
        return self._keys.limited(self._readers)


def _digest(kind: bytes, name: bytes) -> bytes:
    return blake2b(name, digest_size=16, person=kind).digest()
