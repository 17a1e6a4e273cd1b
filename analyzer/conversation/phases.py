"""The phases of a connection before its work, ApiVersions and SASL, and what they show about the
client. State without I/O."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.conversation.detect import is_token
from kafkascope.analyzer.conversation.plausible import Plausibility, judge_request
from kafkascope.analyzer.conversation.sasl import user_of
from kafkascope.analyzer.model import Frame
from kafkascope.analyzer.ranks import bounded
from kafkascope.captures.resumable import Resumable
from kafkascope.dissectors.registry import Decoded, RequestHeader

if TYPE_CHECKING:
    from kafkascope.captures.model import Tls
    from kafkascope.dissectors.codec.reader import Body

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
STATEFUL: Final = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})
"""Keys of the APIs whose bodies are looked at here."""

_INT = struct.Struct(">i")


def software_in(body: Body) -> str:
    """Return the library that an ApiVersions request names, "" where it names none."""
    name = body.get("client_software_name", "")
    return bounded(f"{name} {body.get('client_software_version', '')}".strip()) if name else ""


class Phases(Resumable):
    """Who the client is, as far as it said, and whether raw SASL tokens are to be expected."""

    STATE = __slots__ = ("_claimed", "client_id", "mechanism", "software", "tokens", "user")

    def __init__(self) -> None:
        self.tokens = False
        """Raw SASL tokens may come from the client."""
        self.mechanism = ""
        """Mechanism of SASL, as the handshake named it."""
        self.user = ""
        """The authenticated user, if the mechanism shows it."""
        self.software = ""
        self.client_id: str | None = None
        """As the last request named it: tokens, orphans and garbage are of the same client."""
        self._claimed = ""
        """The user that the client says it is, until the broker agrees."""

    def saw_request(self, header: RequestHeader, decoded: Decoded | None) -> None:
        self.client_id = bounded(header.client_id)
        if decoded is None or header.api_key not in STATEFUL:
            return
        body = decoded.body
        if header.api_key == API_VERSIONS:
            self.software = software_in(body) or self.software
        elif header.api_key == SASL_HANDSHAKE:
            self.mechanism = bounded(body["mechanism"])
            # Version 0 leads to raw tokens, version 1 to SaslAuthenticate (KIP-152).
            self.tokens = header.api_version == 0
        else:
            self.saw_token(body["auth_bytes"])

    def saw_response(self, key: int, decoded: Decoded) -> None:
        """Take note of the response to a request of one of the `STATEFUL` APIs."""
        failed = decoded.body.get("error_code", 0)
        if key == SASL_HANDSHAKE and failed:
            self.tokens = False
        elif key == SASL_AUTHENTICATE and not failed:
            self.user = self._claimed

    def saw_token(self, token: bytes) -> None:
        """Remember the user that a SASL token names, until the response to it."""
        self._claimed = bounded(user_of(self.mechanism, token) or self._claimed)

    def saw_token_answer(self) -> None:
        """Take note that the broker answered a raw token: it closes the connection when it does not
        like one."""
        self.user = self._claimed

    def user_within(self, tls: Tls) -> str:
        """Return the user of a connection with TLS: without SASL it is who owns the client's
        certificate."""
        return self.user or ("" if self.mechanism else tls.client)

    def is_token(self, frame: Frame) -> bool:
        """Return whether a frame of the client is a raw token. A request has a header that makes
        sense; a token, as good as never."""
        first = frame.offset == 0 and frame.payload[:1] == b"\x60"
        if not self.tokens and not first:
            return False
        data = _INT.pack(frame.size) + frame.payload
        # GSSAPI of 0.9 comes without any handshake.
        self.tokens = judge_request(data, 0) is not Plausibility.MAYBE and (
            self.tokens or is_token(data)
        )
        return self.tokens
