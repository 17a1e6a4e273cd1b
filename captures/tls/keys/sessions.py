"""How the master secret of a session of TLS 1.2 is found, also of one that was resumed. Values and
state without I/O, and without secrets: those stay in the key log.

A resumed connection has the master secret of the one that gave out its session id (RFC 5246) or
ticket (RFC 5077); key logs have a line of its own for some clients only.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Final, NamedTuple, Self

from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.tls.keys.derive import extended_master_secret, master_secret
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.keys.suites import suite_of

MOST_SESSIONS: Final = 100_000
"""Tickets and session ids that are remembered; of more, the oldest go."""
MOST_ORIGINS: Final = 8


class Origin(NamedTuple):
    """A full handshake: each name under which a key log may have its secret."""

    suite: int
    client_random: bytes
    server_random: bytes
    session_id: bytes = b""
    premaster: bytes = b""
    """First 8 bytes of the encrypted premaster secret, with RSA key exchange."""
    session_hash: bytes = b""
    """Of RFC 7627, where both sides have that extension."""

    def master(self, log: KeyLog) -> bytes | None:
        """Return the master secret, where the key log has it under one of the names."""
        secrets = log.secrets(self.client_random)
        if secrets is not None and secrets.master is not None:
            return secrets.master
        if self.session_id and (found := log.by_session(self.session_id)) is not None:
            return found
        premaster = log.by_premaster(self.premaster) if self.premaster else None
        if premaster is None:
            return None
        suite = suite_of(self.suite)
        if self.session_hash:
            return extended_master_secret(suite, premaster, self.session_hash)
        return master_secret(suite, premaster, self.client_random, self.server_random)


class Sessions(Resumable):
    """Which handshakes gave out the tickets and session ids seen so far."""

    def __init__(self) -> None:
        self._origins: OrderedDict[bytes, tuple[Origin, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._origins)

    def dump(self) -> Dump:
        """Return the state, the oldest first."""
        return {"_origins": dict(self._origins)}

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        self._origins = OrderedDict(state["_origins"])
        return self

    def remember(self, name: bytes, origins: tuple[Origin, ...]) -> None:
        """Remember the handshakes behind a ticket or session id."""
        if not name:
            return
        key = _key(name)
        self._origins.pop(key, None)
        self._origins[key] = origins[:MOST_ORIGINS]
        if len(self._origins) > MOST_SESSIONS:
            self._origins.popitem(last=False)

    def of(self, name: bytes) -> tuple[Origin, ...]:
        """Return the handshakes behind a ticket or session id."""
        return self._origins.get(_key(name), ()) if name else ()


def _key(name: bytes) -> bytes:
    return blake2b(name, digest_size=16).digest()
