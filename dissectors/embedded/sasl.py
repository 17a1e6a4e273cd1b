"""SASL tokens by mechanism, without their secrets.

PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628). Of GSSAPI tokens only kind and size are
told.
"""

from __future__ import annotations

import base64
from typing import Final

from dissectors.embedded.model import Embedded
from dissectors.reader import Body

MASK: Final = "***"

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


def decode(value: bytes, mechanism: str, *, from_client: bool) -> Embedded | None:
    """A token of the connection's mechanism; when that is not known, what the bytes show."""
    if not value:
        return None
    word = mechanism.upper()
    if word == "PLAIN" or (not word and from_client and value.count(b"\0") == 2):
        return _plain(value) if from_client else None
    if word.startswith("SCRAM") or (not word and _looks_like_scram(value)):
        return _scram(value, word or "SCRAM")
    if word == "OAUTHBEARER" or (not word and b"auth=Bearer " in value):
        return _bearer(value, from_client)
    if word == "GSSAPI" or (not word and value[0] == 0x60):
        kind = "initial context token" if value[0] == 0x60 else "token"
        return Embedded("GSSAPI", {"kind": kind, "bytes": len(value)})
    return Embedded(mechanism or "SASL", {"bytes": len(value)}, "a mechanism that is not known")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _plain(value: bytes) -> Embedded:
    parts = value.split(b"\0")
    if len(parts) != 3:
        return Embedded("PLAIN", {"bytes": len(value)}, "not authzid, user and password")
    body: Body = {"authzid": _text(parts[0]), "username": _text(parts[1]), "password": MASK}
    return Embedded("PLAIN", body)


def _looks_like_scram(value: bytes) -> bool:
    return value[:3] in (b"n,,", b"y,,") or value[:2] in (b"r=", b"c=", b"v=", b"e=")


def _scram(value: bytes, kind: str) -> Embedded:
    text = _text(value)
    body: Body = {}
    if text[:3] in ("n,,", "y,,") or text[:4] == "n,a=":
        header, text = text.split(",", 2)[:2], text.split(",", 2)[-1]
        if header[1:] and header[1].startswith("a="):
            body["authzid"] = header[1][2:]
    for part in text.split(","):
        letter, equals, rest = part.partition("=")
        if not equals:
            continue
        name = _SCRAM_NAMES.get(letter, letter)
        body[name] = MASK if letter in _SCRAM_SECRETS or letter not in _SCRAM_NAMES else rest
    if not body:
        return Embedded(kind, {"bytes": len(value)}, "no SCRAM message")
    return Embedded(kind, body)


def _bearer(value: bytes, from_client: bool) -> Embedded:
    if not from_client:
        # An error is JSON, base64 in some implementations; it holds no secret.
        text = _text(value)
        if not text.startswith("{"):
            try:
                text = _text(base64.b64decode(value, validate=True))
            except ValueError:
                return Embedded("OAUTHBEARER", {"bytes": len(value)})
        return Embedded("OAUTHBEARER", {"error": text})
    body: Body = {}
    for part in value.split(b"\1"):
        name, equals, rest = part.partition(b"=")
        if name == b"auth" and equals:
            body["auth"] = f"{_text(rest.split(b' ')[0])} {MASK}"
        elif equals and name and b"," not in name:
            body[_text(name)] = _text(rest)
        elif part.startswith((b"n,a=", b"y,a=")):
            body["authzid"] = _text(part[4:].rstrip(b","))
    return Embedded("OAUTHBEARER", body or {"bytes": len(value)})
