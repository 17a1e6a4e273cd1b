"""What raw SASL tokens look like, and who one says its sender is. Nothing else of a token is looked
at or kept."""

from __future__ import annotations

import re

_SCRAM_USER = re.compile(rb"n,[^,]*,n=([^,]*)")
_OAUTH_USER = re.compile(rb"n,a=([^,]*),")

_FORMS = re.compile(
    rb"[^\x00-\x1f]*\x00[^\x00-\x1f]+\x00[^\x00]+\Z"  # PLAIN: authzid NUL user NUL password
    rb"|[nyp](?:=[^,]{0,64})?,[^,]*,(?:n=|\x01)"  # SCRAM, OAUTHBEARER: the first of the client
    rb"|c=[A-Za-z0-9+/=]+,r="  # SCRAM: the last of the client
    rb"|\x60(?:[\x00-\x7f]|\x81.|\x82..|\x83...)\x06"  # GSSAPI: an object identifier
    rb'|\{\s{0,8}"[^\x00]*"x-amz-'  # AWS_MSK_IAM
    rb"|\*+\Z",  # hidden by us, in a recording or a cut
    re.DOTALL,
)

_ANSWERS = re.compile(
    rb"r=[\x21-\x2b\x2d-\x7e]{8,},s=[A-Za-z0-9+/=]+,i=\d"  # SCRAM: nonce, salt, iterations
    rb"|v=[A-Za-z0-9+/]{26,88}={0,2}\Z"  # SCRAM: the signature of the server
)


def is_answer(payload: bytes) -> bool:
    """Return whether bytes that answer no known request are a broker's part of a login."""
    return _ANSWERS.match(payload) is not None


def is_token(payload: bytes) -> bool:
    """Return whether bytes that are no request of a known API are a token of a client, by their
    form alone: where the handshake that would announce it was not seen. Encrypted tokens of GSSAPI
    have no form that tells."""
    return _FORMS.match(payload) is not None


def user_of(mechanism: str, token: bytes) -> str:
    """Return the user that the client's first token names; empty when it names none.

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
