"""The fields of handshake messages that decryption needs, or that tell why a handshake failed.

Every length is checked against the bytes that are there; a message in which they do not fit is
`Malformed`. Sources: RFC 8446 (1.3), RFC 5246 (1.2), RFC 6066 (server name), RFC 7301 (ALPN),
RFC 5077 (tickets), RFC 7627 (extended master secret), RFC 7366 (encrypt-then-MAC).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import unpack_from
from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.resumable import Resumable
from kafkascope.captures.tls.records import HEADER as RECORD_HEADER

NEW_SESSION_TICKET: Final = 4
END_OF_EARLY_DATA: Final = 5
ENCRYPTED_EXTENSIONS: Final = 8
CERTIFICATE: Final = 11
CERTIFICATE_REQUEST: Final = 13
CLIENT_KEY_EXCHANGE: Final = 16
FINISHED: Final = 20
KEY_UPDATE: Final = 24

SERVER_NAME: Final = 0
ALPN: Final = 16
ENCRYPT_THEN_MAC: Final = 22
EXTENDED_MASTER_SECRET: Final = 23
SESSION_TICKET: Final = 35
PRE_SHARED_KEY: Final = 41
EARLY_DATA: Final = 42
SUPPORTED_VERSIONS: Final = 43

SSL_2: Final = 0x0002
RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""Random of a ServerHello that is a HelloRetryRequest."""
HEAD: Final = 4
# Numbers that only keep servers from refusing what they do not know (RFC 8701).
GREASED: Final = frozenset(range(0x0A0A, 0x10000, 0x1010))


class Malformed(ValueError):
    """A message in which the lengths do not fit."""


class ClientHello(NamedTuple):
    """Offer of a client."""

    random: bytes
    session_id: bytes
    versions: tuple[int, ...]
    """In the order of preference."""
    suites: int
    """How many."""
    cipher_suites: bytes
    """The first of them, as on the wire."""
    server_name: str
    ticket: bytes
    """TLS 1.2: the one that it would like to resume with."""
    psk: bool
    early_data: bool


class ServerHello(NamedTuple):
    """Choice of a server."""

    random: bytes
    session_id: bytes
    version: int
    suite: int
    protocol: str
    """ALPN, where it is not encrypted."""
    encrypt_then_mac: bool
    extended_master_secret: bool
    psk: bool

    @property
    def retry(self) -> bool:
        """Whether it asks for another ClientHello."""
        return self.random == RETRY


@dataclass(slots=True, eq=False)
class Messages(Resumable):
    """Puts the handshake messages of one direction together: they share records, or cross them."""

    _data: bytearray = field(default_factory=bytearray)
    lost: bool = False
    """A message is too large, or bytes are missing."""

    @property
    def held(self) -> int:
        """Memory of the message that is not complete."""
        return len(self._data)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that these bytes complete, each with its head of four bytes: type 1,
        length 3."""
        found: list[bytes] = []
        if self.lost:
            return found
        # A record may hold several messages, or a part of one (RFC 8446, 5.1).
        self._data += data
        at = 0
        while at + HEAD <= len(self._data):
            size = HEAD + int.from_bytes(self._data[at + 1 : at + HEAD], "big")
            if size > LIMITS.handshake_bytes:
                self.lost = True
                self._data.clear()
                return found
            if at + size > len(self._data):
                break
            found.append(bytes(self._data[at : at + size]))
            at += size
        del self._data[:at]
        return found

    def clear(self) -> None:
        """Forget a message that is not complete."""
        self._data.clear()
        self.lost = False


class _Bytes:
    """Reads fields one after the other; `Malformed` where there are too few bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise Malformed("a length beyond the end")
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def vector(self, width: int) -> bytes:
        """Bytes after their length of `width` bytes."""
        return self.take(self.number(width))


def _numbers(data: bytes) -> tuple[int, ...]:
    count = len(data) // 2
    return unpack_from(f">{count}H", data)


def _extensions(fields: _Bytes) -> dict[int, bytes]:
    """Return the extensions by type; none where the message ends before them."""
    found: dict[int, bytes] = {}
    if not fields.left:
        return found
    block = _Bytes(fields.vector(2))
    while block.left and len(found) < LIMITS.tls_extensions:
        kind = block.number(2)
        found.setdefault(kind, block.vector(2))
    return found


def _protocols(data: bytes | None) -> Iterator[str]:
    if data:
        names = _Bytes(_Bytes(data).vector(2))
        while names.left:
            yield names.vector(1).decode("latin-1")


def _server_name(data: bytes | None) -> str:
    if not data:
        return ""
    names = _Bytes(_Bytes(data).vector(2))
    while names.left:
        kind, name = names.number(1), names.vector(2)
        if not kind:
            return name.decode("ascii") if name.isascii() and len(name) <= LIMITS.host_chars else ""
    return ""


def client_hello(message: bytes) -> ClientHello:
    """Read a ClientHello; raises `Malformed`."""
    fields = _Bytes(message, HEAD)
    version, random, session_id = fields.number(2), fields.take(32), fields.vector(1)
    offered_suites = fields.vector(2)
    suites, named = _numbers(offered_suites), offered_suites[: 2 * LIMITS.cipher_suites]
    fields.vector(1)
    more = _extensions(fields)
    # TLS 1.3 says 1.2 in the field for the version, for middleboxes that refuse what is newer
    # (RFC 8446, 4.1.2 and D.4).
    offered = more.get(SUPPORTED_VERSIONS)
    versions = _numbers(_Bytes(offered).vector(1)) if offered else (version,)
    return ClientHello(
        random,
        session_id,
        tuple(each for each in versions if each not in GREASED),
        len(suites) - sum(map(GREASED.__contains__, suites)),
        named,
        _server_name(more.get(SERVER_NAME)),
        more.get(SESSION_TICKET, b""),
        PRE_SHARED_KEY in more,
        EARLY_DATA in more,
    )


def suites_of(cipher_suites: bytes) -> tuple[int, ...]:
    """Return the numbers of cipher suites, but for those that mean nothing."""
    whole = cipher_suites[: len(cipher_suites) & ~1]
    return tuple(each for each in _numbers(whole) if each not in GREASED)


def old_hello(data: bytes) -> tuple[int, int]:
    """Return the newest version and the number of cipher suites of an SSLv2 ClientHello (RFC 5246,
    E.2); raises `Malformed`."""
    fields = _Bytes(data, 3)
    return fields.number(2), fields.number(2) // 3


def server_name(record: bytes) -> str:
    """Return the name that a ClientHello asks for (RFC 6066), from the first bytes of its record,
    which need not be all; empty where it is not among them."""
    fields = _Bytes(record, RECORD_HEADER + HEAD)
    try:
        fields.take(2 + 32)
        for width in (1, 2, 1):
            fields.vector(width)
        fields.take(2)
        for _ in range(LIMITS.tls_extensions):
            kind, body = fields.number(2), fields.vector(2)
            if kind == SERVER_NAME:
                return _server_name(body)
    except Malformed:
        pass
    return ""


def server_hello(message: bytes) -> ServerHello:
    """Read a ServerHello; raises `Malformed`."""
    fields = _Bytes(message, HEAD)
    version, random, session_id = fields.number(2), fields.take(32), fields.vector(1)
    suite = fields.number(2)
    fields.take(1)
    more = _extensions(fields)
    chosen = more.get(SUPPORTED_VERSIONS)
    return ServerHello(
        random,
        session_id,
        _Bytes(chosen).number(2) if chosen else version,
        suite,
        next(_protocols(more.get(ALPN)), ""),
        ENCRYPT_THEN_MAC in more,
        EXTENDED_MASTER_SECRET in more,
        PRE_SHARED_KEY in more,
    )


def protocol_of(encrypted_extensions: bytes) -> str:
    """Return the name of ALPN in EncryptedExtensions; raises `Malformed`."""
    more = _extensions(_Bytes(encrypted_extensions, HEAD))
    return next(_protocols(more.get(ALPN)), "")


def certificates(message: bytes, *, modern: bool) -> list[bytes]:
    """Return the chain of a Certificate as DER, the owner's first; raises `Malformed`. `modern`:
    in the form of TLS 1.3."""
    fields = _Bytes(message, HEAD)
    if modern:
        fields.vector(1)
    chain = _Bytes(fields.vector(3))
    found: list[bytes] = []
    while chain.left:
        found.append(chain.vector(3))
        if modern:
            chain.vector(2)
    return found


def ticket(message: bytes) -> bytes:
    """Return the ticket of a NewSessionTicket of TLS 1.2; raises `Malformed`."""
    fields = _Bytes(message, HEAD)
    fields.take(4)
    return fields.vector(2)


def encrypted_premaster(message: bytes) -> bytes:
    """Return the encrypted pre-master secret of a ClientKeyExchange with RSA; raises
    `Malformed`."""
    return _Bytes(message, HEAD).vector(2)
