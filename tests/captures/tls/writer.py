"""A small TLS writer: what both ends of a connection send, made from chosen secrets.

    talk = Talk(suite=0x1301, retry=True)          # the handshake is there already
    talk.client(b"request", sizes=[3, 1])          # application data, in records of these sizes
    talk.server(b"response")
    talk.key_update(CLIENT, requested=True)
    talk.close(SERVER)                             # close_notify
    talk.sent                                      # every record: direction, bytes, what is inside
    talk.keylog()                                  # the key log, as text

TLS 1.3 or 1.2 follows from the suite. There is no key exchange: premaster and traffic secrets are
random bytes of `seed`, and so is what a peer would verify (signatures, binders); Finished and all
keys are right. Messages have the shapes of RFC 8446, 4 and RFC 5246, 7.4. Sealing is written here
once more, from the RFCs, with nothing of `protection`.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import cycle
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.x509.oid import NameOID

from kafkascope.captures.tls.keys import derive
from kafkascope.captures.tls.keys.suites import Suite, suite_of

CLIENT, SERVER = 0, 1
CHANGE, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
MOST = 1 << 14
RETRY = hashlib.sha256(b"HelloRetryRequest").digest()

Seal = Callable[[int, int, bytes], bytes]
"""Sequence number, content type, plaintext -> a record."""


class Sent(NamedTuple):
    """One record."""

    direction: int
    data: bytes
    """With its header."""
    kind: int
    """Content type of what is inside."""
    plain: bytes
    encrypted: bool


def vector(size: int, data: bytes) -> bytes:
    """Bytes behind their length, which takes `size` bytes."""
    return len(data).to_bytes(size, "big") + data


def message(kind: int, body: bytes = b"") -> bytes:
    """A handshake message."""
    return bytes((kind,)) + vector(3, body)


def extension(kind: int, body: bytes = b"") -> bytes:
    return kind.to_bytes(2, "big") + vector(2, body)


def record(kind: int, body: bytes, version: int = 0x0303) -> bytes:
    return bytes((kind,)) + version.to_bytes(2, "big") + vector(2, body)


@cache
def certificate(name: str, issuer: str = "", days: int = 30) -> bytes:
    """A certificate as DER; signed by its own key, whoever the issuer is."""
    key = ec.derive_private_key(7, ec.SECP256R1())
    names = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in (name, issuer or name)
    ]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(names[0]).issuer_name(names[1])
    builder = builder.public_key(key.public_key()).serial_number(17).not_valid_before(start)
    made = builder.not_valid_after(start + timedelta(days=days)).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


def sealer_13(suite: Suite, secret: bytes, padding: int = 0) -> Seal:
    """RFC 8446, 5.2 and 5.3."""
    keys = derive.traffic_keys(suite, secret)
    cipher = _aead(suite, keys.key)
    tag = 8 if suite.cipher == "aes-ccm-8" else 16

    def seal(sequence: int, kind: int, plain: bytes) -> bytes:
        zeros = min(padding, MOST - len(plain))
        inner = plain + bytes((kind,)) + bytes(zeros)
        header = b"\x17\3\3" + (len(inner) + tag).to_bytes(2, "big")
        return header + cipher.encrypt(_xor(keys.iv, sequence), inner, header)

    return seal


def sealer_12(
    suite: Suite,
    keys: derive.Keys,
    etm: bool,
    padding: int = 0,
    source: random.Random | None = None,
) -> Seal:
    """RFC 5246, 6.2.3; 5288, 6655, 7905; 7366. `padding`: blocks more than needed, of CBC."""
    source = source or random.Random(1)

    def aad(sequence: int, kind: int, size: int) -> bytes:
        return sequence.to_bytes(8, "big") + bytes((kind, 3, 3)) + size.to_bytes(2, "big")

    if not suite.mac:
        cipher = _aead(suite, keys.key)

        def seal(sequence: int, kind: int, plain: bytes) -> bytes:
            associated = aad(sequence, kind, len(plain))
            if suite.cipher == "chacha20-poly1305":
                return record(kind, cipher.encrypt(_xor(keys.iv, sequence), plain, associated))
            explicit = (sequence * 0x9E3779B97F4A7C15 + 7 & (1 << 64) - 1).to_bytes(8, "big")
            return record(kind, explicit + cipher.encrypt(keys.iv + explicit, plain, associated))

        return seal

    def mac(sequence: int, kind: int, data: bytes) -> bytes:
        return hmac.digest(keys.mac, aad(sequence, kind, len(data)) + data, suite.mac)

    def seal_cbc(sequence: int, kind: int, plain: bytes) -> bytes:
        content = plain if etm else plain + mac(sequence, kind, plain)
        count = 15 - len(content) % 16 + 16 * min(padding, 15)
        content += bytes((count,)) * (count + 1)
        iv = source.randbytes(16)
        encryptor = Cipher(algorithms.AES(keys.key), modes.CBC(iv)).encryptor()
        body = iv + encryptor.update(content) + encryptor.finalize()
        return record(kind, body + (mac(sequence, kind, body) if etm else b""))

    return seal_cbc


def _aead(suite: Suite, key: bytes) -> Any:
    if suite.cipher == "aes-gcm":
        return AESGCM(key)
    if suite.cipher == "chacha20-poly1305":
        return ChaCha20Poly1305(key)
    return AESCCM(key, tag_length=8 if suite.cipher == "aes-ccm-8" else 16)


def _xor(iv: bytes, sequence: int) -> bytes:
    return (int.from_bytes(iv, "big") ^ sequence).to_bytes(12, "big")


class Talk:
    """A connection, from its handshake on.

    Of both versions: `split`, the most bytes of handshake messages in a record; `coalesce`, the
    messages of a flight share records; `sni`, `alpn`; `client_certificate` (DER, b"" for one that
    is asked for and not there); `padding`, zeros in each record of TLS 1.3, blocks beyond need in
    CBC; `resume`, an earlier connection.

    TLS 1.3: `retry` (HelloRetryRequest); `middlebox` (ChangeCipherSpec records); `tickets`, how
    many follow the handshake; `early`, data sent before the ServerHello, and whether it is
    `early_accepted`.

    TLS 1.2: `etm` (encrypt-then-MAC), `ems` (extended master secret); `session_id` of the server;
    `ticket` is given out; `resume_by` "id", "ticket", or "bare" (ticket, no session id at all).
    """

    def __init__(
        self,
        suite: int = 0x1301,
        *,
        seed: int = 1,
        split: int = MOST,
        coalesce: bool = True,
        sni: str = "broker.example",
        alpn: str = "",
        client_certificate: bytes | None = None,
        padding: int = 0,
        resume: Talk | None = None,
        retry: bool = False,
        middlebox: bool = True,
        tickets: int = 0,
        early: bytes = b"",
        early_accepted: bool = True,
        etm: bool = False,
        ems: bool = True,
        session_id: bool = True,
        ticket: bool = False,
        resume_by: str = "id",
    ) -> None:
        self.suite = suite_of(suite)
        self.modern = not self.suite.exchange
        self.sent: list[Sent] = []
        self.plain = (bytearray(), bytearray())
        """All application data of each direction, early data included."""
        self.updates = [0, 0]
        """KeyUpdates of each direction."""
        self.client_random = self.server_random = self.session_id = self.ticket = b""
        self.master = b""
        self.secrets: dict[str, bytes] = {}
        self._source = random.Random(seed)
        self._split, self._coalesce, self._padding = split, coalesce, padding
        self._sni, self._alpn, self._client_certificate = sni, alpn, client_certificate
        self._etm = etm and bool(self.suite.mac)
        self._ems, self._wants_ticket = ems, ticket
        self._seals: list[Seal | None] = [None, None]
        self._numbers = [0, 0]
        self._transcript = b""
        self._lines: list[str] = []
        self._session_lines: list[str] = []
        self._premaster_lines: list[str] = []
        if self.modern:
            self._handshake_13(resume, retry, middlebox, tickets, early, early_accepted)
        elif resume is None:
            self._handshake_12(session_id)
        else:
            self._resume_12(resume, resume_by)

    # What a test says

    def client(self, data: bytes, sizes: Sequence[int] = (MOST,)) -> Talk:
        """The client sends application data, cut into records of these sizes in turn."""
        return self._data(CLIENT, data, sizes)

    def server(self, data: bytes, sizes: Sequence[int] = (MOST,)) -> Talk:
        return self._data(SERVER, data, sizes)

    def key_update(self, direction: int, *, requested: bool = False) -> Talk:
        """TLS 1.3: what this side sends next has new keys."""
        self._flight(direction, [message(24, bytes((requested,)))])
        name = ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0")[direction]
        self.updates[direction] += 1
        secret = self.secrets[name]
        for _ in range(self.updates[direction]):
            secret = derive.next_secret(self.suite, secret)
        self._protect(direction, secret)
        return self

    def new_ticket(self) -> Talk:
        """TLS 1.3: the server gives out a ticket, at any time."""
        self.ticket = self._bytes(80)
        body = (
            bytes(4) + self._bytes(4) + vector(1, b"\0") + vector(2, self.ticket) + vector(2, b"")
        )
        self._flight(SERVER, [message(4, body)])
        return self

    def renegotiate(self, *, asked: bool = False) -> Talk:
        """TLS 1.2: another handshake inside the encryption; `asked` for by the server."""
        if asked:
            self._flight(SERVER, [message(0)])
        self._handshake_12(bool(self.session_id))
        return self

    def alert(self, direction: int, description: int, level: int = 2) -> Talk:
        return self.send(direction, ALERT, bytes((level, description)))

    def close(self, direction: int) -> Talk:
        """close_notify."""
        return self.alert(direction, 0, 1)

    def send(self, direction: int, kind: int, plain: bytes, version: int = 0x0303) -> Talk:
        """Any record, encrypted where the connection is by now."""
        seal = self._seals[direction]
        if seal is None:
            data = record(kind, plain, version)
        else:
            data = seal(self._numbers[direction], kind, plain)
            self._numbers[direction] += 1
        self.sent.append(Sent(direction, data, kind, plain, seal is not None))
        return self

    def pairs(self) -> list[tuple[int, bytes]]:
        """Direction and bytes of each record."""
        return [(each.direction, each.data) for each in self.sent]

    def keylog(self, kind: str = "random") -> str:
        """The key log. `kind` for TLS 1.2: by client "random", "session" id, "premaster" (RSA)."""
        lines = {"session": self._session_lines, "premaster": self._premaster_lines}
        return "".join(lines.get(kind, self._lines))

    # Records

    def _bytes(self, count: int) -> bytes:
        return self._source.randbytes(count)

    def _data(self, direction: int, data: bytes, sizes: Sequence[int]) -> Talk:
        assert max(sizes) > 0
        at = 0
        for size in cycle(sizes):
            self.send(direction, DATA, data[at : at + size])
            at += size
            if at >= len(data):
                break
        self.plain[direction].extend(data)
        return self

    def _flight(self, direction: int, messages: Iterable[bytes], version: int = 0x0303) -> None:
        """Handshake messages that follow each other."""
        messages = list(messages)
        self._transcript += b"".join(messages)
        for each in [b"".join(messages)] if self._coalesce else messages:
            for at in range(0, len(each), min(self._split, MOST)):
                part = each[at : at + min(self._split, MOST)]
                self.send(direction, HANDSHAKE, part, version)

    def _change(self, direction: int) -> None:
        """The ChangeCipherSpec of TLS 1.3, which means nothing and is not encrypted."""
        self.sent.append(Sent(direction, record(CHANGE, b"\1"), CHANGE, b"\1", False))

    def _hash(self) -> bytes:
        return hashlib.new(self.suite.hash, self._transcript).digest()

    def _protect(self, direction: int, secret: bytes) -> None:
        self._seals[direction] = sealer_13(self.suite, secret, self._padding)
        self._numbers[direction] = 0

    # Hellos

    def _client_hello(self, session_id: bytes, extensions: bytes, last: bytes = b"") -> bytes:
        name = self._sni.encode()
        common = extension(0, vector(2, b"\0" + vector(2, name))) if name else b""
        common += extension(10, vector(2, bytes.fromhex("001d00170018")))
        common += extension(13, vector(2, bytes.fromhex("040308040401050308050501")))
        if self._alpn:
            common += extension(16, vector(2, vector(1, self._alpn.encode())))
        offered = self.suite.number.to_bytes(2, "big") + b"\x13\x02\xc0\x2f\x00\xff"
        return message(
            1,
            b"\3\3"
            + self.client_random
            + vector(1, session_id)
            + vector(2, offered)
            + b"\1\0"
            + vector(2, common + extensions + last),
        )

    def _server_hello(self, random: bytes, session_id: bytes, extensions: bytes) -> bytes:
        number = self.suite.number.to_bytes(2, "big")
        tail = vector(2, extensions) if extensions else b""
        return message(2, b"\3\3" + random + vector(1, session_id) + number + b"\0" + tail)

    # TLS 1.3

    def _secret(self, label: str) -> bytes:
        secret = self._bytes(hashlib.new(self.suite.hash).digest_size)
        self.secrets[label] = secret
        self._lines.append(f"{label} {self.client_random.hex()} {secret.hex()}\n")
        return secret

    def _finished_13(self, secret: bytes) -> bytes:
        size = hashlib.new(self.suite.hash).digest_size
        key = derive.expand_label(self.suite.hash, secret, b"finished", b"", size)
        return message(20, hmac.digest(key, self._hash(), self.suite.hash))

    def _certificates_13(self, der: bytes) -> list[bytes]:
        entries = vector(3, der) + vector(2, b"") if der else b""
        found = [message(11, vector(1, b"") + vector(3, entries))]
        if der:
            found.append(message(15, b"\4\3" + vector(2, self._bytes(71))))
        return found

    def _handshake_13(
        self,
        resume: Talk | None,
        retry: bool,
        middlebox: bool,
        tickets: int,
        early: bytes,
        early_accepted: bool,
    ) -> None:
        self.client_random, self.server_random = self._bytes(32), self._bytes(32)
        legacy = self._bytes(32) if middlebox else b""
        size = hashlib.new(self.suite.hash).digest_size
        offered = extension(43, vector(1, bytes.fromhex("03040303")))
        offered += extension(45, vector(1, b"\1"))
        if early:
            offered += extension(42)
        last = b""
        if resume is not None:
            identity = vector(2, resume.ticket) + self._bytes(4)
            last = extension(41, vector(2, identity) + vector(2, vector(1, self._bytes(size))))
        share = b"\0\x1d" + vector(2, self._bytes(32))
        hello = self._client_hello(legacy, offered + extension(51, vector(2, share)), last)
        self._flight(CLIENT, [hello], 0x0301)
        changed = False
        if retry:
            self._transcript = message(254, self._hash())
            asked = extension(43, b"\3\4") + extension(44, vector(2, b"cookie"))
            self._flight(
                SERVER, [self._server_hello(RETRY, legacy, asked + extension(51, b"\0\x17"))]
            )
            if middlebox:
                self._change(SERVER)
                self._change(CLIENT)
                changed = True
            share = b"\0\x17" + vector(2, b"\4" + self._bytes(64))
            offered += extension(44, vector(2, b"cookie"))
            again = self._client_hello(legacy, offered + extension(51, vector(2, share)), last)
            self._flight(CLIENT, [again])
        elif early:
            if middlebox:
                self._change(CLIENT)
                changed = True
            self._protect(CLIENT, self._secret("CLIENT_EARLY_TRAFFIC_SECRET"))
            self._data(CLIENT, early, (MOST,))
            if not early_accepted:
                self.plain[CLIENT].clear()
        answer = extension(43, b"\3\4") + extension(51, share)
        if resume is not None:
            answer += extension(41, b"\0\0")
        self._flight(SERVER, [self._server_hello(self.server_random, legacy, answer)])
        if middlebox and not retry:
            self._change(SERVER)
        client, server = (
            self._secret(f"{who}_HANDSHAKE_TRAFFIC_SECRET") for who in ("CLIENT", "SERVER")
        )
        client_0, server_0 = (
            self._secret(f"{who}_TRAFFIC_SECRET_0") for who in ("CLIENT", "SERVER")
        )
        self._protect(SERVER, server)
        inside = extension(16, vector(2, vector(1, self._alpn.encode()))) if self._alpn else b""
        accepted = bool(early) and early_accepted
        messages = [message(8, vector(2, inside + (extension(42) if accepted else b"")))]
        if self._client_certificate is not None:
            messages.append(
                message(13, vector(1, b"") + vector(2, extension(13, vector(2, b"\4\3"))))
            )
        if resume is None:
            messages += self._certificates_13(certificate(self._sni or "broker"))
        self._transcript += b"".join(messages)
        messages.append(self._finished_13(server))
        before = self._transcript
        self._flight(SERVER, messages)
        self._transcript = before + messages[-1]
        self._protect(SERVER, server_0)
        if accepted:
            self._flight(CLIENT, [message(5)])
        if middlebox and not changed:
            self._change(CLIENT)
        self._protect(CLIENT, client)
        messages = []
        if self._client_certificate is not None:
            messages = self._certificates_13(self._client_certificate)
        self._transcript += b"".join(messages)
        messages.append(self._finished_13(client))
        self._flight(CLIENT, messages)
        self._protect(CLIENT, client_0)
        for _ in range(tickets):
            self.new_ticket()

    # TLS 1.2

    def _hello_12(self, resume_ticket: bytes) -> bytes:
        found = extension(11, vector(1, b"\0")) + extension(0xFF01, b"\0")
        if self._etm or self.suite.mac == "":
            found += extension(22)  # offered by OpenSSL whatever becomes of it
        if self._ems:
            found += extension(23)
        return found + extension(35, resume_ticket)

    def _answer_12(self, ticket: bool) -> bytes:
        found = extension(0xFF01, b"\0")
        if self._alpn:
            found += extension(16, vector(2, vector(1, self._alpn.encode())))
        if self._etm:
            found += extension(22)
        if self._ems:
            found += extension(23)
        return found + (extension(35) if ticket else b"")

    def _known_12(self) -> None:
        """Log the master secret."""
        master = self.master.hex()
        self._lines.append(f"CLIENT_RANDOM {self.client_random.hex()} {master}\n")
        if self.session_id:
            name = self.session_id.hex().upper()
            self._session_lines.append(f"RSA Session-ID:{name} Master-Key:{master.upper()}\n")

    def _change_12(self, direction: int) -> None:
        self.send(direction, CHANGE, b"\1")
        keys = derive.key_block(self.suite, self.master, self.client_random, self.server_random)
        seal = sealer_12(self.suite, keys[direction], self._etm, self._padding, self._source)
        self._seals[direction] = seal
        self._numbers[direction] = 0

    def _finish_12(self, direction: int) -> None:
        self._change_12(direction)
        label = (b"client finished", b"server finished")[direction]
        self._flight(
            direction,
            [message(20, derive.prf(self.suite.hash, self.master, label, self._hash(), 12))],
        )

    def _new_ticket_12(self) -> None:
        self.ticket = self._bytes(160)
        self._flight(SERVER, [message(4, bytes(4) + vector(2, self.ticket))])

    def _exchange_12(self) -> tuple[bytes, bytes, bytes]:
        """Body of a ServerKeyExchange (b"": none comes), of a ClientKeyExchange, and the first
        bytes of an encrypted premaster secret."""
        name = self.suite.name
        psk = "PSK" in name
        server, client = (vector(2, b"hint"), vector(2, b"client")) if psk else (b"", b"")
        premaster = b""
        if "ECDH" in name:
            if "_ECDHE_" in name or "anon" in name:
                server += b"\3\0\x17" + vector(1, b"\4" + self._bytes(64))
            client += vector(1, b"\4" + self._bytes(64))
        elif "DHE" in name or "DH_anon" in name:
            server += vector(2, self._bytes(256)) + vector(2, b"\2") + vector(2, self._bytes(256))
            client += vector(2, self._bytes(256))
        elif "_DH_" in name:
            client += vector(2, self._bytes(256))
        elif "_RSA_" in name:
            premaster = self._bytes(256)
            client += vector(2, premaster)
        if "DHE" in name and not psk:
            server += b"\4\1" + vector(2, self._bytes(256))
        return server, client, premaster[:8]

    def _handshake_12(self, session_id: bool) -> None:
        self.client_random, self.server_random = self._bytes(32), self._bytes(32)
        self._transcript = b""
        self._flight(CLIENT, [self._client_hello(b"", self._hello_12(b""))], 0x0301)
        self.session_id = self._bytes(32) if session_id else b""
        answer = self._answer_12(self._wants_ticket)
        messages = [self._server_hello(self.server_random, self.session_id, answer)]
        named = "anon" not in self.suite.name
        if named and ("PSK" not in self.suite.name or "RSA_PSK" in self.suite.name):
            messages.append(message(11, vector(3, vector(3, certificate(self._sni or "broker")))))
        server, client, encrypted = self._exchange_12()
        if server:
            messages.append(message(12, server))
        if self._client_certificate is not None:
            authorities = vector(2, vector(2, b"\x30\0"))
            messages.append(message(13, vector(1, b"\1\x40") + vector(2, b"\4\3") + authorities))
        self._flight(SERVER, [*messages, message(14)])
        messages = []
        if self._client_certificate is not None:
            chain = vector(3, self._client_certificate) if self._client_certificate else b""
            messages.append(message(11, vector(3, chain)))
        messages.append(message(16, client))
        hashed = hashlib.new(self.suite.hash, self._transcript + b"".join(messages)).digest()
        premaster = b"\3\3" + self._bytes(46)
        if self._ems:
            self.master = derive.extended_master_secret(self.suite, premaster, hashed)
        else:
            self.master = derive.master_secret(
                self.suite, premaster, self.client_random, self.server_random
            )
        if encrypted:
            self._premaster_lines.append(f"RSA {encrypted.hex()} {premaster.hex()}\n")
        self._known_12()
        if self._client_certificate:
            messages.append(message(15, b"\4\3" + vector(2, self._bytes(71))))
        self._flight(CLIENT, messages)
        self._finish_12(CLIENT)
        if self._wants_ticket:
            self._new_ticket_12()
        self._finish_12(SERVER)

    def _resume_12(self, resume: Talk, by: str) -> None:
        self.client_random, self.server_random = self._bytes(32), self._bytes(32)
        self.master, self.session_id, self.ticket = resume.master, resume.session_id, resume.ticket
        if by == "ticket":
            self.session_id = self._bytes(32)
        elif by == "bare":
            self.session_id = b""
        offered = b"" if by == "id" else self.ticket
        self._flight(CLIENT, [self._client_hello(self.session_id, self._hello_12(offered))], 0x0301)
        self._lines.append(f"CLIENT_RANDOM {self.client_random.hex()} {self.master.hex()}\n")
        answer = self._answer_12(self._wants_ticket)
        self._flight(SERVER, [self._server_hello(self.server_random, self.session_id, answer)])
        if self._wants_ticket:
            self._new_ticket_12()
        self._finish_12(SERVER)
        self._finish_12(CLIENT)
