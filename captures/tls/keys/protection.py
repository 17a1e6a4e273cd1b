"""Opens protected records of TLS: decrypts them, and verifies that they are whole. Stateless: the
sequence number of a record is handed in.

protection = protection_13(suite, secret)
kind, plain = protection.open(sequence, header, body)      # or BadRecord

The header of a record has 5 bytes (kind, version, size); after it, the body:

    TLS 1.3                     ciphertext of [content, kind, zeros]         tag
    TLS 1.2, GCM and CCM        nonce (8)    ciphertext                      tag
             ChaCha20                        ciphertext                      tag
             CBC                IV (16)      ciphertext of [content, MAC, padding]
             encrypt-then-MAC   IV (16)      ciphertext of [content, padding]        MAC

RFC 8446, 5.2-5.4; RFC 5246, 6.2.3; RFC 5288 (GCM), 6655 (CCM), 7905 (ChaCha20), 7366
(encrypt-then-MAC). The library `cryptography` is loaded when the first protection is made.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from typing import Any, Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.tls.keys.derive import Keys, traffic_keys
from kafkascope.captures.tls.keys.suites import Suite

# Bytes of an explicit nonce.
NONCE: Final = 8
BLOCK: Final = 16

NUMBER: Final = struct.Struct(">Q")
SIZE: Final = struct.Struct(">H")

Buffer = bytes | memoryview
Decrypt = Callable[[bytes, Any, bytes], bytes]
"""Nonce, ciphertext with its tag (a `Buffer`), associated data -> plaintext."""


class BadRecord(ValueError):
    """A record that failed authentication, or has an impossible shape."""


class Protection:
    """Opens the records of one direction under one key."""

    __slots__ = ("start",)

    start: int
    """Where in the body the first byte of plaintext lies."""

    def open(self, sequence: int, header: bytes, body: Buffer) -> tuple[int, bytes]:
        """Return content type and plaintext of a record; `BadRecord` for whatever is wrong."""
        raise NotImplementedError


class _Modern(Protection):
    """TLS 1.3."""

    __slots__ = ("_decrypt", "_invalid", "_iv")

    def __init__(self, suite: Suite, keys: Keys) -> None:
        self._decrypt, self._invalid = aead(suite, keys.key)
        self._iv = int.from_bytes(keys.iv, "big")
        self.start = 0

    def open(self, sequence: int, header: bytes, body: Buffer) -> tuple[int, bytes]:
        if len(body) > LIMITS.tls13_record_bytes:
            raise BadRecord("too long")
        try:
            # The sequence number is in no record: it is part of the nonce (RFC 8446, 5.3).
            inner = self._decrypt((self._iv ^ sequence).to_bytes(12, "big"), body, header)
        except (self._invalid, ValueError, OverflowError):
            raise BadRecord("failed authentication") from None
        # The type stands after the content, and before zeros of padding (RFC 8446, 5.2).
        if inner and inner[-1]:
            return inner[-1], inner[:-1]
        inner = inner.rstrip(b"\0")
        if not inner:
            raise BadRecord("no content type")
        return inner[-1], inner[:-1]


class _Aead(Protection):
    """TLS 1.2 with an AEAD."""

    __slots__ = ("_decrypt", "_invalid", "_iv", "_overhead")

    def __init__(self, suite: Suite, keys: Keys) -> None:
        self._decrypt, self._invalid = aead(suite, keys.key)
        self.start = 0 if suite.cipher == "chacha20-poly1305" else NONCE
        self._iv = keys.iv
        self._overhead = self.start + tag_size(suite)

    def open(self, sequence: int, header: bytes, body: Buffer) -> tuple[int, bytes]:
        size = len(body) - self._overhead
        if not 0 <= size <= LIMITS.tls_record_bytes - self._overhead:
            raise BadRecord("impossible length")
        try:
            associated = _pseudo_header(sequence, header, size)
            # GCM and CCM have half of the nonce in the record (RFC 5288, 3), ChaCha20 none of it
            # (RFC 7905, 2).
            if self.start:
                nonce, body = self._iv + body[:NONCE], body[NONCE:]
            else:
                nonce = (int.from_bytes(self._iv, "big") ^ sequence).to_bytes(12, "big")
            return header[0], self._decrypt(nonce, body, associated)
        except (self._invalid, ValueError, OverflowError, struct.error):
            raise BadRecord("failed authentication") from None


class _Cbc(Protection):
    """TLS 1.2 with AES-CBC and HMAC, in either order."""

    __slots__ = ("_encrypt_then_mac", "_hmac", "_mac_size", "_update")

    def __init__(self, suite: Suite, keys: Keys, encrypt_then_mac: bool) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        # One context for all records: the IV of a record is fed as a block of ciphertext, so that
        # the next block is decrypted with it, and its own plaintext is dropped.
        cipher = Cipher(algorithms.AES(keys.key), modes.CBC(bytes(BLOCK)))
        self._update: Callable[[Any], bytes] = cipher.decryptor().update
        self._hmac = hmac.new(keys.mac, None, suite.mac)
        self._mac_size = self._hmac.digest_size
        self._encrypt_then_mac = encrypt_then_mac
        self.start = BLOCK

    def open(self, sequence: int, header: bytes, body: Buffer) -> tuple[int, bytes]:
        outside = self._mac_size if self._encrypt_then_mac else 0
        inside = self._mac_size - outside
        sealed = len(body) - outside
        if not 2 * BLOCK <= sealed <= LIMITS.tls_record_bytes or sealed % BLOCK:
            raise BadRecord("impossible length")
        view = memoryview(body)
        if outside:
            self._verify(sequence, header, view[:sealed], view[sealed:])
        plain = self._update(view[:sealed])[BLOCK:]
        # Not in constant time, as endpoints have to (RFC 5246, 6.2.3.2): whoever measures us has no
        # connection to attack.
        padding = plain[-1] + 1
        size = len(plain) - padding - inside
        if size < 0 or plain[-padding:] != plain[-1:] * padding:
            raise BadRecord("failed authentication")
        if inside:
            content = memoryview(plain)
            mac = content[size : size + inside]
            self._verify(sequence, header, content[:size], mac)
        return header[0], plain[:size]

    def _verify(self, sequence: int, header: bytes, data: memoryview, mac: memoryview) -> None:
        # The key is hashed already, twice a block of it.
        found = self._hmac.copy()
        try:
            found.update(_pseudo_header(sequence, header, len(data)))
        except struct.error:
            raise BadRecord("failed authentication") from None
        found.update(data)
        if not hmac.compare_digest(found.digest(), mac):
            raise BadRecord("failed authentication")


def _pseudo_header(sequence: int, header: bytes, size: int) -> bytes:
    """Return sequence number, type and version as in the header, and the size of the content."""
    return NUMBER.pack(sequence) + header[:3] + SIZE.pack(size)


def protection_13(suite: Suite, secret: bytes) -> Protection:
    """Return what opens the records under a traffic secret of TLS 1.3."""
    return _Modern(suite, traffic_keys(suite, secret))


def protection_12(suite: Suite, keys: Keys, encrypt_then_mac: bool) -> Protection:
    """Return what opens the records under keys of TLS 1.2; `encrypt_then_mac` is of CBC alone."""
    if suite.mac:
        return _Cbc(suite, keys, encrypt_then_mac)
    return _Aead(suite, keys)


def tag_size(suite: Suite) -> int:
    """Return the bytes of the authentication tag of an AEAD."""
    return 8 if suite.cipher == "aes-ccm-8" else 16


def aead(suite: Suite, key: bytes) -> tuple[Decrypt, type[Exception]]:
    """Return what decrypts with an AEAD, and what it raises when a tag does not fit."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

    if suite.cipher == "aes-gcm":
        return AESGCM(key).decrypt, InvalidTag
    if suite.cipher == "chacha20-poly1305":
        return ChaCha20Poly1305(key).decrypt, InvalidTag
    if suite.cipher in ("aes-ccm", "aes-ccm-8"):
        return AESCCM(key, tag_length=tag_size(suite)).decrypt, InvalidTag
    raise ValueError(f"{suite.name} is not supported")
