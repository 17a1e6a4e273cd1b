"""What the connections of one worker need to be decrypted, as far as no other connection has to be
asked. State without I/O.

A worker has the whole key log, which is a file or stands in the capture that all read. What it does
not have is of other connections: the session of TLS 1.2 that one resumes, and which secrets are
taken where one is tried without a handshake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.captures.streams.shares import NeedsSingleProcess
from kafkascope.captures.tls.sources import FoundKeys, KeySources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkascope.analyzer.conversation.context import CrossCheck
    from kafkascope.captures.formats.records import DecryptionSecrets
    from kafkascope.captures.tls.keys.epoch import Epoch, FullHandshake
    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.captures.tls.records import TlsRecord


SESSION: Final = "session"


class WorkerKeys(KeySources):
    """Gives what `KeySources` gives, and notes where others may know more; raises
    `NeedsSingleProcess` where that cannot be compared."""

    def __init__(
        self,
        log: KeyLog | None,
        blocks: Sequence[DecryptionSecrets],
        readers: int,
        cross_checks: set[CrossCheck],
    ) -> None:
        """`readers`: how many read the input together. `cross_checks` gets the names of sessions
        whose handshakes others may have."""
        super().__init__(log, blocks)
        self._readers = readers
        self._cross_checks = cross_checks
        self.given: list[CrossCheck] = []
        """Names of sessions that connections got."""
        self._blind = False
        """Sessions were offered before there was a key log."""

    def origins(self, client_random: bytes, name: bytes) -> tuple[FullHandshake, ...]:
        log = self.log
        if name and log is not None and not log.other_names and log.secrets(client_random) is None:
            self._cross_checks.add((SESSION, name))
        return super().origins(client_random, name)

    def resume(
        self, own: FullHandshake, offered: tuple[bytes, ...], given: tuple[bytes, ...]
    ) -> tuple[FullHandshake, ...]:
        log = self.log
        if log is None:
            self._blind |= any(offered)
        elif self._blind:
            raise NeedsSingleProcess
        elif own.master(log) is None:
            self._cross_checks.update((SESSION, name) for name in offered if name)
        self.given += [(SESSION, name) for name in given if name]
        return super().resume(own, offered, given)

    def midstream(
        self,
        record: TlsRecord,
        tried: set[tuple[bytes, bool]],
        place: tuple[int, int],
        *,
        client: bool | None,
        epoch: Epoch | None,
    ) -> FoundKeys:
        """See `KeySources`. A secret that fits does so whatever other workers have; the reason
        where none fits depends on what others have taken."""
        log = self.log
        found = super().midstream(record, tried, place, client=client, epoch=epoch)
        lacks = epoch is None and found.epoch is None
        if lacks and log is not None and next(log.randoms(), None) is not None:
            raise NeedsSingleProcess
        return found

    def check(self) -> None:
        """Raise `NeedsSingleProcess` where a limit may be near, were all readers like this."""
        if self.limited(self._readers):
            raise NeedsSingleProcess
