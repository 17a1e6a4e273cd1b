"""SASL tokens by mechanism, without their secrets.

PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628), AWS_MSK_IAM (JSON). Of GSSAPI tokens
only kind and size are shown. Only harmless values are shown, all else is masked: a token of the
wrong mechanism must not leak.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

import orjson

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded.model import Embedded

MASK: Final = "***"
ERROR_LIMIT: Final = 4096

_SCRAM_NAMES: Final = {
    "n": "username",
    "r": "nonce",
    "s": "salt",
    "i": "iterations",
    "c": "channel_binding",
    "p": "proof",
    "v": "verifier",
    "e": "error",
    "a": "authzid",
    "m": "extension",
    "tokenauth": "token_authenticated",
}
_SCRAM_SECRETS: Final = {"p", "v", "s"}
"""With nonce and user known, salt, proof and verifier are what an attacker needs to try
passwords."""

# RFC 5801: channel binding flag and authorization id before the first message of a client.
_GS2: Final = re.compile(r"([nyp][^,]*),(?:a=([^,]*))?,")

_SCHEME: Final = re.compile(rb"[A-Za-z]{1,16}(?= )")
_JWT: Final = re.compile(rb"[\w-]+\.([\w-]+)\.[\w-]*")
_CLAIMS: Final = ("sub", "iss", "aud", "exp", "iat", "nbf", "scope", "azp", "client_id")
"""Claims of a JWT: whose it is, who gave it, how long it counts, what it allows. Its signature
stays hidden."""
# Of RFC 7628 and KIP-342, where the client wants to go: these open nothing. Others may be
# anything that a login callback adds, so only their names are shown.
_EXTENSIONS: Final = frozenset({"host", "port", "logicalCluster", "identityPoolId"})

_IAM_SHOWN: Final = {"version", "host", "user-agent", "action", "x-amz-algorithm", "x-amz-date"}


def decode(value: bytes, mechanism: str, *, from_client: bool) -> Embedded | None:
    """Decode a token of the connection's mechanism, or of the one that the bytes show."""
    if not value:
        return None
    word = mechanism.upper() or _guess(value, from_client)
    if word == "PLAIN":
        return _plain(value) if from_client else _unread(word, value)
    if word.startswith("SCRAM"):
        return _scram(value, word)
    if word == "OAUTHBEARER":
        return _bearer(value) if from_client else _bearer_error(value)
    if word == "GSSAPI":
        kind = "initial context token" if value[0] == 0x60 else "token"
        return Embedded("GSSAPI", {"kind": kind, "bytes": len(value)})
    if word == "AWS_MSK_IAM":
        return _iam(value)
    return _unread(mechanism or "SASL", value, "a mechanism that is not known")


def _guess(value: bytes, from_client: bool) -> str:
    if b"\1auth=" in value:
        return "OAUTHBEARER"
    if value[:3] in (b"n,,", b"y,,") or value[:2] in (b"r=", b"c=", b"v=", b"e="):
        return "SCRAM"
    if value[0] == 0x60:
        return "GSSAPI"
    return "PLAIN" if from_client and value.count(b"\0") == 2 else ""


def _unread(kind: str, value: bytes, note: str = "") -> Embedded:
    return Embedded(kind, {"bytes": len(value)}, note)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _plain(value: bytes) -> Embedded:
    parts = value.split(b"\0")
    if len(parts) != 3:
        return _unread("PLAIN", value, "not authzid, user and password")
    body: Body = {"authzid": _text(parts[0]), "username": _text(parts[1]), "password": MASK}
    return Embedded("PLAIN", body)


def _scram(value: bytes, kind: str) -> Embedded:
    text = _text(value)
    body: Body = {}
    header = _GS2.match(text)
    if header is not None:
        text = text[header.end() :]
        if header[2]:
            body["authzid"] = _name(header[2])
    for part in text.split(","):
        letter, equals, rest = part.partition("=")
        name = _SCRAM_NAMES.get(letter)
        if not equals or name is None:
            # What is no attribute of SCRAM may be anything, so its name is not shown either.
            if part:
                body["other"] = MASK
            continue
        body[name] = MASK if letter in _SCRAM_SECRETS else _name(rest) if letter in "na" else rest
    if body.keys() <= {"other"}:
        return _unread(kind, value, "no SCRAM message")
    if body.get("iterations", "").isdecimal():
        body["iterations"] = int(body["iterations"][:9])
    return Embedded(kind, body)


def _name(text: str) -> str:
    """Unescape comma and equals sign in a name (RFC 5802)."""
    return text.replace("=2C", ",").replace("=3D", "=")


def _bearer(value: bytes) -> Embedded:
    """Decode `n,a=authzid,` and then key=value pairs, each ended by a byte 1."""
    if value == b"\1":
        return Embedded("OAUTHBEARER", {"kind": "the error is acknowledged"})
    head, *pairs = value.split(b"\1")
    body: Body = {}
    header = _GS2.fullmatch(_text(head))
    if header is None:
        return _unread("OAUTHBEARER", value, "no OAUTHBEARER message")
    if header[2]:
        body["authzid"] = _name(header[2])
    for pair in pairs:
        name, equals, rest = pair.partition(b"=")
        if name.lower() == b"auth" and equals:
            scheme = _SCHEME.match(rest)
            body["auth"] = f"{_text(scheme[0])} {MASK}" if scheme else MASK
            body.update(_claims(rest[scheme.end() + 1 :] if scheme else rest))
        elif equals and re.fullmatch(rb"[A-Za-z]+", name) and b"bearer" not in rest.lower():
            word = _text(name)
            body[word] = _text(rest) if word in _EXTENSIONS else MASK
    return Embedded("OAUTHBEARER", body)


def _claims(token: bytes) -> Body:
    found = _JWT.fullmatch(token)
    if found is None:
        return {}
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(found[1] + b"=="))
    except ValueError:
        return {}
    if not isinstance(claims, dict):
        return {}
    shown = {name: claims[name] for name in _CLAIMS if name in claims}
    return {"claims": shown} if shown else {}


def _bearer_error(value: bytes) -> Embedded:
    """Decode an error: JSON, in some implementations as base64; it holds no secret."""
    text = _text(value[:ERROR_LIMIT])
    if not text.startswith("{"):
        try:
            text = _text(base64.b64decode(value[:ERROR_LIMIT], validate=True))
        except ValueError:
            return _unread("OAUTHBEARER", value)
    return Embedded("OAUTHBEARER", {"error": text})


def _iam(value: bytes) -> Embedded:
    """Decode a signed request in JSON (Amazon MSK)."""
    try:
        found: Any = orjson.loads(value)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        return _unread("AWS_MSK_IAM", value)
    shown = {name: found[name] if name in _IAM_SHOWN else MASK for name in found}
    credential = found.get("x-amz-credential")
    if isinstance(credential, str) and "/" in credential:
        # Key id, then day, region and service: where to look when it is refused.
        shown["x-amz-credential"] = f"{MASK}/{credential.split('/', 1)[1]}"
    return Embedded("AWS_MSK_IAM", shown)
