"""SASL as a client, for replays: PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677). Sans-I/O: a
generator that yields the client's tokens and is sent the broker's."""

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
# The environment variable with the password of users that options name.
PASSWORD: Final = "KAFKASCOPE_PASSWORD"
# The minimum of Kafka's clients, too: with fewer iterations somebody who poses as the broker could
# find the password by trial.
MIN_ITERATIONS: Final = 4096


class Credentials(NamedTuple):
    """A user and password, with the mechanism to log in by."""

    mechanism: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.mechanism}, {self.username})"


class LoginRefused(Exception):
    """The broker's SCRAM message is invalid, or does not prove that it knows the password."""


def tokens(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """Yield the client's tokens; each `yield` takes the broker's answer to the one before."""
    if credentials.mechanism == "PLAIN":
        yield f"\0{credentials.username}\0{credentials.password}".encode()
        return
    yield from _scram(credentials, SCRAM[credentials.mechanism])


def scram_proofs(digest: str, salted_password: bytes, auth_message: str) -> tuple[str, str]:
    """Return the ClientProof and the ServerSignature of RFC 5802, section 3, in base64. `digest`:
    sha256 or sha512; `auth_message`: the three messages before the proof, joined by commas."""
    message = auth_message.encode()
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    client_signature = hmac.digest(stored_key, message, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
    server_key = hmac.digest(salted_password, b"Server Key", digest)
    signature = hmac.digest(server_key, message, digest)
    return base64.b64encode(proof).decode(), base64.b64encode(signature).decode()


def _scram(credentials: Credentials, digest: str) -> Generator[bytes, bytes, None]:
    nonce = secrets.token_urlsafe(24)
    user = credentials.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode("utf-8", "replace")
    parts = dict(part.partition("=")[::2] for part in challenge.split(","))
    try:
        salt = base64.b64decode(parts["s"], validate=True)
        iterations = int(parts["i"])
        server_nonce = parts["r"]
    except (KeyError, ValueError):
        raise LoginRefused("the SCRAM challenge cannot be read") from None
    if not server_nonce.startswith(nonce):
        raise LoginRefused("the SCRAM challenge has the wrong nonce")
    if "m" in parts:
        raise LoginRefused("the SCRAM challenge requires an unknown extension")  # RFC 5802, 5.1
    if not MIN_ITERATIONS <= iterations <= LIMITS.scram_iterations:
        limits = f"{MIN_ITERATIONS} to {LIMITS.scram_iterations}"
        raise LoginRefused(f"the SCRAM challenge requires {iterations} iterations, not {limits}")
    salted = hashlib.pbkdf2_hmac(digest, credentials.password.encode(), salt, iterations)
    last = f"c=biws,r={server_nonce}"
    proof, signature = scram_proofs(digest, salted, f"{first},{challenge},{last}")
    final = yield f"{last},p={proof}".encode()
    if not hmac.compare_digest(final, f"v={signature}".encode()):
        raise LoginRefused("the broker does not prove that it knows the password")
