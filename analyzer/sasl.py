"""Who a SASL token says its sender is. Nothing else of a token is looked at or kept."""

from __future__ import annotations

import re

_SCRAM_USER = re.compile(rb"n,[^,]*,n=([^,]*)")
_OAUTH_USER = re.compile(rb"n,a=([^,]*),")


def user_of(mechanism: str, token: bytes) -> str:
    """The user that the client's first token names; empty when it names none.

    PLAIN (RFC 4616): authzid NUL user NUL password. SCRAM (RFC 5802): `n,,n=user,r=nonce`.
    OAUTHBEARER (RFC 7628) names a user at most as authzid; GSSAPI tokens are opaque.
    """
    if mechanism == "PLAIN":
        parts = token.split(b"\0")
        return parts[1].decode("utf-8", "replace") if len(parts) == 3 else ""
    if mechanism.startswith("SCRAM"):
        found = _SCRAM_USER.match(token)
        if found is None:
            return ""
        name = found[1].replace(b"=2C", b",").replace(b"=3D", b"=")
        return name.decode("utf-8", "replace")
    if mechanism == "OAUTHBEARER":
        found = _OAUTH_USER.match(token)
        return "" if found is None else found[1].decode("utf-8", "replace")
    return ""
