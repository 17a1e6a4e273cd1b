"""SASL as a broker: PLAIN (RFC 4616), SCRAM (RFC 5802, RFC 7677), OAUTHBEARER with unsecured
tokens (RFC 7628). Sans-I/O: a generator takes the client's tokens, yields ours and returns the
last one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Generator, Mapping
from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.sasl import SCRAM, scram_proofs
from kafkascope.proxy.serve.request import Code

ITERATIONS: Final = 4096
SALT: Final = 16
# The version of SaslHandshake after which tokens come without a header.
RAW: Final = 0


class Denied(Exception):
    """The login failed; one line for the client and for people, without secrets."""


class Accounts:
    """The users who may log in. Without any, everybody may who does not ask for a proof of the
    password, as SCRAM does."""

    def __init__(self, users: Mapping[str, str] | None = None) -> None:
        self._users = dict(users or {})

    def __repr__(self) -> str:
        return f"Accounts({', '.join(sorted(self._users))})"

    @property
    def required(self) -> bool:
        return bool(self._users)

    @property
    def mechanisms(self) -> list[str]:
        return ["PLAIN", *(SCRAM if self._users else ()), "OAUTHBEARER"]

    def password(self, name: str) -> str:
        if name not in self._users:
            raise Denied(f"{name!r} is not a --user")
        return self._users[name]

    def steps(self, mechanism: str) -> Generator[bytes, bytes, bytes]:
        """A generator of the broker's tokens, which returns the last one; send each of the client's
        in. `Denied` when the login fails."""
        if mechanism == "PLAIN":
            return self._plain()
        if mechanism == "OAUTHBEARER":
            return self._bearer()
        return self._scram(SCRAM[mechanism])

    def _plain(self) -> Generator[bytes, bytes, bytes]:
        parts = (yield b"").decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            raise Denied("the token of PLAIN cannot be read")
        if self._users:
            known = self.password(parts[1])
            if not hmac.compare_digest(known.encode(), parts[2].encode()):
                raise Denied(f"the password of {parts[1]!r} does not match")
        return b""

    def _bearer(self) -> Generator[bytes, bytes, bytes]:
        token = (yield b"").decode("utf-8", "replace")
        found = [e[12:] for e in token.split("\1") if e[:12].lower() == "auth=bearer "]
        if not found:
            raise Denied("the token of OAUTHBEARER cannot be read")
        if self._users:
            self.password(_subject(found[0]))
        return b""

    def _scram(self, digest: str) -> Generator[bytes, bytes, bytes]:
        first = (yield b"").decode("utf-8", "replace")
        header, bare = _gs2(first)
        fields = dict(part.partition("=")[::2] for part in bare.split(","))
        name = fields.get("n", "").replace("=2C", ",").replace("=3D", "=")
        theirs = fields.get("r", "")
        if not (name and theirs):
            raise Denied("the first token of SCRAM cannot be read")
        password = self.password(name)
        salt, nonce = secrets.token_bytes(SALT), theirs + secrets.token_urlsafe(18)
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
        challenge = f"r={nonce},s={base64.b64encode(salt).decode()},i={ITERATIONS}"
        last = (yield challenge.encode()).decode("utf-8", "replace")
        without, _, proof = last.rpartition(",p=")
        fields = dict(part.partition("=")[::2] for part in without.split(","))
        bound = base64.b64encode(header.encode()).decode()
        expected, signature = scram_proofs(digest, salted, f"{bare},{challenge},{without}")
        if fields.get("r") != nonce or fields.get("c") != bound:
            raise Denied("the last token of SCRAM belongs to another challenge")
        if not hmac.compare_digest(proof.encode(), expected.encode()):
            raise Denied(f"the password of {name!r} does not match")
        return f"v={signature}".encode()


def _gs2(token: str) -> tuple[str, str]:
    """Split SCRAM's first token into its header (channel binding, authorization id) and the
    rest."""
    parts = token.split(",", 2)
    if len(parts) < 3 or parts[0] not in ("n", "y"):
        raise Denied("the first token of SCRAM cannot be read")
    return f"{parts[0]},{parts[1]},", parts[2]


def _subject(token: str) -> str:
    """The subject of a JSON web token; its signature is not verified."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return str(claims["sub"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise Denied("the token of OAUTHBEARER is not a JSON web token with a subject") from None


class Login:
    """The state of a connection's login."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._steps: Generator[bytes, bytes, bytes] | None = None
        self.raw = False
        """The next frame is a bare token."""
        self.done = not accounts.required

    def handshake(self, version: int, mechanism: str) -> Body:
        known = self._accounts.mechanisms
        if mechanism not in known:
            return {"error_code": Code.UNSUPPORTED_SASL_MECHANISM, "mechanisms": known}
        self._steps = self._accounts.steps(mechanism)
        next(self._steps)
        self.raw = version == RAW
        return {"error_code": 0, "mechanisms": known}

    def token(self, token: bytes) -> bytes:
        """The broker's token in response to one of the client's; `Denied`."""
        if self._steps is None:
            raise Denied("a token arrived before a handshake")
        steps, self._steps = self._steps, None
        try:
            response = steps.send(token)
        except StopIteration as end:
            self.raw, self.done = False, True
            return bytes(end.value)
        self._steps = steps
        return response
