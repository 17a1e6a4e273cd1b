"""Which keys protect the records of a connection: values that hold no secret, and what makes keys
of them with a key log. State (the sessions of TLS 1.2) without I/O.

A state that is stored, or goes to another process, has epochs in it; the key log goes its own way.
A resumed connection of TLS 1.2 has the master secret of the one that gave out its session id (RFC
5246) or ticket (RFC 5077); key logs have a line of its own for some clients only.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple, Self

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.tls.keys.derive import (
    extended_master_secret,
    key_block,
    master_secret,
    next_secret,
)
from kafkascope.captures.tls.keys.keylog import KeyLog, log_line
from kafkascope.captures.tls.keys.protection import Protection, protection_12, protection_13
from kafkascope.captures.tls.keys.suites import TLS_1_2, TLS_1_3, suite_of


class FullHandshake(NamedTuple):
    """A full handshake: each name under which a key log may have its secret."""

    suite: int
    client_random: bytes
    server_random: bytes
    session_id: bytes = b""
    premaster: bytes = b""
    """First 8 bytes of the encrypted premaster secret, with RSA key exchange."""
    session_hash: bytes = b""
    """Session hash of RFC 7627, where both sides have that extension."""

    def master(self, log: KeyLog) -> bytes | None:
        """Return the master secret, where the key log has it under one of the names."""
        # Names of master secrets in the key logs that Wireshark reads: CLIENT_RANDOM, a session id,
        # the beginning of the encrypted premaster secret.
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
    """Which handshakes gave out the tickets and session ids seen so far. An OrderedDict: to
    find the oldest in a dict, Python looks at the places of all that went before it."""

    def __init__(self) -> None:
        self._origins: OrderedDict[bytes, tuple[FullHandshake, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._origins)

    def dump(self) -> Dump:
        """Return the state, the oldest first."""
        return {"_origins": dict(self._origins)}

    def load(self, state: Dump) -> Self:
        self._origins = OrderedDict(state["_origins"])
        return self

    def remember(self, name: bytes, origins: tuple[FullHandshake, ...]) -> None:
        """Remember the handshakes behind a ticket or session id."""
        if not name:
            return
        key = _key(name)
        self._origins.pop(key, None)
        self._origins[key] = origins[: LIMITS.session_origins]
        if len(self._origins) > LIMITS.sessions:
            self._origins.popitem(last=False)

    def of(self, name: bytes) -> tuple[FullHandshake, ...]:
        """Return the handshakes behind a ticket or session id."""
        return self._origins.get(_key(name), ()) if name else ()


def _key(name: bytes) -> bytes:
    # A ticket has up to 64 KB (RFC 5077, 3.3): these 16 bytes tell it from others as well.
    return blake2b(name, digest_size=16).digest()


class Stage(IntEnum):
    """How far a direction of a connection came."""

    PLAIN = 0
    """Records are not encrypted yet."""
    EARLY = 1
    """TLS 1.3: data that came with the ClientHello."""
    HANDSHAKE = 2
    """TLS 1.3: the rest of the handshake."""
    TRAFFIC = 3
    """Application data, and in TLS 1.2 the Finished before it."""


class Epoch(NamedTuple):
    """What one handshake decided."""

    version: int
    suite: int
    client_random: bytes
    server_random: bytes
    encrypt_then_mac: bool = False
    origins: tuple[FullHandshake, ...] = ()
    """TLS 1.2: the handshakes whose master secret it uses, the likeliest first."""

    @property
    def modern(self) -> bool:
        """Whether it is TLS 1.3."""
        return self.version == TLS_1_3

    @property
    def supported(self) -> bool:
        return self.version in (TLS_1_2, TLS_1_3) and bool(suite_of(self.suite).cipher)


class Opener(NamedTuple):
    """What opens the records of a direction, and the secret that it was made from."""

    protection: Protection
    secret: bytes

    def __repr__(self) -> str:
        return "Opener(...)"


def opener_of(
    epoch: Epoch, stage: Stage, *, client: bool, updates: int, log: KeyLog
) -> Opener | None:
    """Return what opens the records that the client or the server sends; None where the key log
    does not have the secret. `updates`: KeyUpdates since the handshake."""
    if not epoch.supported:
        return None
    suite = suite_of(epoch.suite)
    if not epoch.modern:
        master = _master(epoch, log)
        if master is None:
            return None
        keys = key_block(suite, master, epoch.client_random, epoch.server_random)
        mine = keys[0] if client else keys[1]
        return Opener(protection_12(suite, mine, epoch.encrypt_then_mac), master)
    secrets = log.secrets(epoch.client_random)
    if secrets is None:
        return None
    match stage:
        case Stage.EARLY:
            secret = secrets.client_early if client else None
        case Stage.HANDSHAKE:
            secret = secrets.client_handshake if client else secrets.server_handshake
        case _:
            secret = secrets.client_traffic if client else secrets.server_traffic
    if secret is None:
        return None
    for _ in range(updates):
        secret = next_secret(suite, secret)
    return Opener(protection_13(suite, secret), secret)


def _master(epoch: Epoch, log: KeyLog) -> bytes | None:
    masters = (origin.master(log) for origin in epoch.origins)
    return next((each for each in masters if each is not None), None)


def key_log_lines(epoch: Epoch, log: KeyLog) -> bytes:
    """Return the lines of a key log that open the records of this connection without any other one:
    one that was resumed, or that another name led to, gets a line by its own client random."""
    if epoch.modern:
        return log.lines_of(epoch.client_random)
    master = _master(epoch, log)
    return b"" if master is None else log_line(b"CLIENT_RANDOM", epoch.client_random, master)


def awaited(epoch: Epoch, stage: Stage, *, client: bool, log: KeyLog) -> bool:
    """Return whether a key log that grows may still get what opens the records of a stage. Programs
    write secrets as they make them: it has neither this one by now nor one that is made later."""
    if not epoch.supported:
        return False
    if not epoch.modern:
        return _master(epoch, log) is None
    secrets = log.secrets(epoch.client_random)
    if secrets is None:
        return True
    if client:
        made = (secrets.client_early, secrets.client_handshake, secrets.client_traffic)
    else:
        made = (None, secrets.server_handshake, secrets.server_traffic)
    return all(secret is None for secret in made[stage - Stage.EARLY :])


def updated(epoch: Epoch, opener: Opener) -> Opener:
    """Return what opens the records after a KeyUpdate (RFC 8446, 7.2)."""
    suite = suite_of(epoch.suite)
    secret = next_secret(suite, opener.secret)
    return Opener(protection_13(suite, secret), secret)
