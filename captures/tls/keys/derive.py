"""Keys of TLS records from secrets. Stateless, with the standard library's HMAC alone.

TLS 1.3: RFC 8446, 7.1-7.3 (HKDF, RFC 5869). TLS 1.2: RFC 5246, 5, 6.3 and 8.1; RFC 7627 (extended
master secret); RFC 5288, 6655 and 7905 (what the IVs of AEADs are).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.captures.tls.keys.suites import Suite

# Of all AEADs in TLS 1.3, and of ChaCha20 in TLS 1.2.
IV_SIZE: Final = 12
# What GCM and CCM derive of their nonces in TLS 1.2; the rest stands in the record.
SALT_SIZE: Final = 4
MASTER_SIZE: Final = 48


class Keys(NamedTuple):
    """Keys that protect the records of one direction."""

    key: bytes
    iv: bytes
    """12 bytes; in TLS 1.2 of GCM and CCM 4, of CBC none."""
    mac: bytes = b""
    """Key of the HMAC of CBC suites."""

    def __repr__(self) -> str:
        return "Keys(...)"


def expand_label(hash: str, secret: bytes, label: bytes, context: bytes, length: int) -> bytes:
    """Return HKDF-Expand-Label of RFC 8446, 7.1: `label` without "tls13 "."""
    full = b"tls13 " + label
    info = b"".join(
        (length.to_bytes(2, "big"), bytes((len(full),)), full, bytes((len(context),)), context)
    )
    out, block, count = b"", b"", 0
    while len(out) < length:
        count += 1
        block = hmac.digest(secret, block + info + bytes((count,)), hash)
        out += block
    return out[:length]


def traffic_keys(suite: Suite, secret: bytes) -> Keys:
    """Return the keys of a traffic secret of TLS 1.3 (RFC 8446, 7.3)."""
    return Keys(
        expand_label(suite.hash, secret, b"key", b"", suite.key_size),
        expand_label(suite.hash, secret, b"iv", b"", IV_SIZE),
    )


def next_secret(suite: Suite, secret: bytes) -> bytes:
    """Return the traffic secret after a KeyUpdate (RFC 8446, 7.2)."""
    return expand_label(suite.hash, secret, b"traffic upd", b"", len(secret))


def prf(hash: str, secret: bytes, label: bytes, seed: bytes, length: int) -> bytes:
    """Return bytes of the pseudorandom function of TLS 1.2 (RFC 5246, 5)."""
    seed = label + seed
    out, state = b"", seed
    while len(out) < length:
        state = hmac.digest(secret, state, hash)
        out += hmac.digest(secret, state + seed, hash)
    return out[:length]


def master_secret(
    suite: Suite, premaster: bytes, client_random: bytes, server_random: bytes
) -> bytes:
    """Return the master secret of TLS 1.2 (RFC 5246, 8.1)."""
    seed = client_random + server_random
    return prf(suite.hash, premaster, b"master secret", seed, MASTER_SIZE)


def extended_master_secret(suite: Suite, premaster: bytes, session_hash: bytes) -> bytes:
    """Return the master secret of TLS 1.2 where both sides have the extension of RFC 7627.

    `session_hash` is the hash of the handshake messages up to the ClientKeyExchange.
    """
    return prf(suite.hash, premaster, b"extended master secret", session_hash, MASTER_SIZE)


def key_block(
    suite: Suite, master: bytes, client_random: bytes, server_random: bytes
) -> tuple[Keys, Keys]:
    """Return the keys of what the client writes, and of what the server writes (RFC 5246, 6.3)."""
    mac = hashlib.new(suite.mac).digest_size if suite.mac else 0
    if suite.cipher == "chacha20-poly1305":
        iv = IV_SIZE
    else:
        iv = 0 if suite.mac else SALT_SIZE
    sizes = (mac, mac, suite.key_size, suite.key_size, iv, iv)
    # The randoms in the other order than for the master secret.
    block = prf(suite.hash, master, b"key expansion", server_random + client_random, sum(sizes))
    client_mac, server_mac, client_key, server_key, client_iv, server_iv = _cut(block, sizes)
    return Keys(client_key, client_iv, client_mac), Keys(server_key, server_iv, server_mac)


def _cut(data: bytes, sizes: tuple[int, ...]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
