"""SASL as a client: PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677), for replays. Sans-I/O: a
generator of tokens that takes the broker's."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Generator
from typing import Final, NamedTuple

from kafkascope.proxy.limits import LIMITS

SCRAM: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = ("PLAIN", *SCRAM)
# As Kafka's clients want it: with fewer, who pretends to be the broker could try out passwords.
LEAST_ITERATIONS: Final = 4096


class Credentials(NamedTuple):
    """A user, with the mechanism to log in."""

    mechanism: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.mechanism}, {self.username})"


class LoginRefused(Exception):
    """The broker does not prove that it knows the password, or speaks nonsense."""


def tokens(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """A generator of the client's tokens; send each of the broker's in."""
    if credentials.mechanism == "PLAIN":
        yield f"\0{credentials.username}\0{credentials.password}".encode()
        return
    yield from _scram(credentials, SCRAM[credentials.mechanism])


def scram_proofs(name: str, salted: bytes, text: str) -> tuple[str, str]:
    """Return the client's proof and the broker's signature of an exchange (RFC 5802, 3), in base64.
    `name`: of the digest; `salted`: the password; `text`: the messages, joined by commas."""
    key = hmac.digest(salted, b"Client Key", name)
    mark = hmac.digest(hashlib.new(name, key).digest(), text.encode(), name)
    proof = bytes(a ^ b for a, b in zip(key, mark, strict=True))
    signature = hmac.digest(hmac.digest(salted, b"Server Key", name), text.encode(), name)
    return base64.b64encode(proof).decode(), base64.b64encode(signature).decode()


def _scram(credentials: Credentials, name: str) -> Generator[bytes, bytes, None]:
    nonce = secrets.token_urlsafe(24)
    user = credentials.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode("utf-8", "replace")
    parts = dict(part.partition("=")[::2] for part in challenge.split(","))
    try:
        salt = base64.b64decode(parts["s"], validate=True)
        count = int(parts["i"])
        theirs = parts["r"]
    except (KeyError, ValueError):
        raise LoginRefused("the SCRAM challenge cannot be read") from None
    if not theirs.startswith(nonce):
        raise LoginRefused("the SCRAM challenge has the wrong nonce")
    if "m" in parts:
        raise LoginRefused("the SCRAM challenge requires an unknown extension")  # RFC 5802, 5.1
    if not LEAST_ITERATIONS <= count <= LIMITS.scram_iterations:
        limits = f"{LEAST_ITERATIONS} to {LIMITS.scram_iterations}"
        raise LoginRefused(f"the SCRAM challenge requires {count} iterations, not {limits}")
    salted = hashlib.pbkdf2_hmac(name, credentials.password.encode(), salt, count)
    last = f"c=biws,r={theirs}"
    proof, signature = scram_proofs(name, salted, f"{first},{challenge},{last}")
    final = yield f"{last},p={proof}".encode()
    if not hmac.compare_digest(final, f"v={signature}".encode()):
        raise LoginRefused("the broker does not prove that it knows the password")
