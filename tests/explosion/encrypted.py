"""Connections with TLS that nobody has, and the key logs to read them inside of the capture."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain, count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kafkascope.captures.build import Composer
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.captures.tls.keys.derive import next_secret
from kafkascope.captures.tls.keys.suites import suite_of
from tests.captures.tls import writer
from tests.captures.tls.writer import CLIENT, DATA, HANDSHAKE, SERVER, Talk
from tests.explosion.tls import CLIENT_0, LABELS, random_of, secret_of
from tests.explosion.turns import Turn, host, write_packets
from tests.kit.wire import request, response

BROKER: Final = Endpoint("10.255.0.2", 9093)
MODERN, OLD, RSA = 0x1301, 0xC02F, 0x009C
REST: Final = 16_000
"""Bytes of a record that is nearly as large as one may be."""


class Talked(NamedTuple):
    """A connection, and what is inserted before it into the capture's key log."""

    turns: list[Turn]
    log: str = ""
    begun: bool = False
    """It was there before the capture."""
    mss: int = LIMITS.mss_bytes
    closed: bool = False


def write_encrypted(path: Path, conversations: Iterable[Talked]) -> None:
    """A pcapng with these connections, one behind the other."""
    write_packets(path, chain.from_iterable(map(_packets, count(), conversations)))


def _packets(number: int, talked: Talked) -> Iterator[bytes | str]:
    if talked.log:
        yield talked.log
    composer = Composer(Endpoint(host(number), 40_000), BROKER, mss=talked.mss)
    if not talked.begun:
        yield from composer.open()
    for direction, said in talked.turns:
        yield from composer.send(direction, said, ack=False)
    if talked.closed:
        yield from composer.close(1)


def _whole(talk: Talk) -> list[Turn]:
    """What both sides send: all records of a side that follow each other at once."""
    sides = groupby(talk.pairs(), key=itemgetter(0))
    return [(side, b"".join(data for _, data in turns)) for side, turns in sides]


def _exchange(talk: Talk, number: int = 1) -> Talk:
    talk.client(request("ApiVersions", 0, number))
    return talk.server(response("ApiVersions", 0, number))


# --- records


def tiny_records(n: int) -> Iterator[Talked]:
    """A byte in each record."""
    talk = Talk(MODERN)
    for number in range(n // 50):
        talk.client(request("Heartbeat", 0, number), sizes=[1])
        talk.server(response("Heartbeat", 0, number), sizes=[1])
    yield Talked(_whole(talk), talk.keylog())


def empty_records(n: int) -> Iterator[Talked]:
    """Encrypted records without anything in them."""
    talk = _exchange(Talk(MODERN))
    for _ in range(n):
        talk.send(CLIENT, DATA, b"")
    yield Talked(_whole(_exchange(talk, 2)), talk.keylog())


def bare_headers(kind: int) -> Callable[[int], Iterator[Talked]]:
    """Headers of records that are empty, not encrypted, before the handshake ends."""

    def made(n: int) -> Iterator[Talked]:
        talk = _exchange(Talk(MODERN))
        (hello_side, hello), *rest = _whole(talk)
        yield Talked([(hello_side, hello + writer.record(kind, b"") * n), *rest], talk.keylog())

    return made


def updates(n: int) -> Iterator[Talked]:
    """New keys again and again, in both directions."""
    talk = _exchange(Talk(MODERN))
    names = CLIENT_0, LABELS[3]
    secrets = [talk.secrets[name] for name in names]
    for _ in range(n // 2):
        for side in (CLIENT, SERVER):
            talk.send(side, HANDSHAKE, writer.message(24, b"\0"))
            secrets[side] = next_secret(talk.suite, secrets[side])
            talk._protect(side, secrets[side])  # as `key_update`, which begins anew each time
    yield Talked(_whole(_exchange(talk, 2)), talk.keylog())


def padded(n: int) -> Iterator[Talked]:
    """Records of 16 KB with a byte in each, and zeros."""
    talk = Talk(MODERN, padding=REST)
    talk.client(b"".join(request("Heartbeat", 0, each) for each in range(n // 20)), sizes=[1])
    yield Talked(_whole(talk), talk.keylog())


def bad_records(n: int) -> Iterator[Talked]:
    """Every fourth record is not what was sent."""
    talk = Talk(MODERN)
    before = len(talk.pairs())
    for number in range(n):
        talk.client(request("Heartbeat", 0, number))
        talk.server(response("Heartbeat", 0, number))
    turns = talk.pairs()
    for at in range(before, len(turns), 4):
        side, data = turns[at]
        turns[at] = side, data[:-1] + bytes((data[-1] ^ 1,))
    yield Talked(turns, talk.keylog())


def signs(n: int) -> Iterator[Talked]:
    """Behind a record that is none nothing but headers of large ones, one in the other."""
    talk = _exchange(Talk(MODERN))
    yield Talked([*_whole(talk), (CLIENT, b"\0" * 5 + b"\x17\3\3\x40\0" * n)], talk.keylog())


def signs_in_bytes(n: int) -> Iterator[Talked]:
    """The same in packets of few bytes."""
    for talked in signs(n):
        yield talked._replace(mss=20)


def in_bytes(n: int) -> Iterator[Talked]:
    """Large records in packets of a byte each."""
    talk = Talk(MODERN)
    talk.client(request("Metadata", 0, 1, topics=[{"name": "t" * 1000}] * (n // 1000)))
    yield Talked(_whole(talk), talk.keylog(), mss=1)


# --- handshakes


def old_tickets(n: int) -> Iterator[Talked]:
    """TLS 1.2: connections with a ticket for each."""
    talk = Talk(OLD, ticket=True)
    hello, answer = (data for _, data in talk.pairs()[:2])
    for number in range(n):
        random = hashlib.sha256(b"%d" % number).digest()
        name = bytes(4) + writer.vector(2, random)
        change = writer.record(20, b"\1")
        yield Talked(
            [
                (CLIENT, hello.replace(talk.client_random, random)),
                (SERVER, answer.replace(talk.session_id, random)),
                (SERVER, writer.record(HANDSHAKE, writer.message(4, name)) + change),
            ]
        )


def renegotiations(n: int) -> Iterator[Talked]:
    """TLS 1.2: one handshake after the other."""
    talk = _exchange(Talk(OLD, ticket=True))
    for _ in range(n):
        talk.renegotiate()
    yield Talked(_whole(_exchange(talk, 2)), talk.keylog())


def large_hellos(n: int) -> Iterator[Talked]:
    """Connections that go on, each with a ClientHello as large as one may be: suites and names."""
    for number in range(n):
        suites = writer.vector(2, b"\x13\1" * 32_000)
        names = writer.extension(16, writer.vector(2, b"\1a" * 32_000))
        body = b"\3\3" + random_of(number) + b"\0" + suites + b"\1\0" + writer.vector(2, names)
        yield Talked(records_of(CLIENT, writer.message(1, body)))


def long_names(n: int) -> Iterator[Talked]:
    """Connections whose clients ask for a server with a name of 60 KB."""
    for number in range(n):
        name = b"%06d" % number + b"n" * 60_000
        asked = writer.extension(0, writer.vector(2, b"\0" + writer.vector(2, name)))
        body = b"\3\3" + random_of(number) + b"\0\0\2\x13\1\1\0" + writer.vector(2, asked)
        yield Talked(
            [*records_of(CLIENT, writer.message(1, body)), (SERVER, b"\x15\3\3\0\2\2\x28")]
        )


def large_certificates(n: int) -> Iterator[Talked]:
    """TLS 1.2: connections whose servers show a certificate of 200 KB, and go no further."""
    for number in range(n):
        yield Talked(_begun(OLD, number, _shown(number.to_bytes(4, "big") + bytes(200_000))))


def many_names(n: int) -> Iterator[Talked]:
    """TLS 1.2: failed handshakes, with certificates that have four hundred names each."""
    names = [x509.NameAttribute(x509.NameOID.COMMON_NAME, f"name {each}") for each in range(400)]
    shown = _shown(certificate(x509.Name(names)))
    for number in range(n):
        yield Talked([*_begun(OLD, number, shown), (CLIENT, b"\x15\3\3\0\2\2\x2a")])


def _shown(der: bytes) -> bytes:
    """The message with a certificate."""
    return writer.message(11, writer.vector(3, writer.vector(3, der)))


def _begun(suite: int, number: int, more: bytes) -> list[Turn]:
    """A ClientHello of its own, and a ServerHello with more messages behind it."""
    talk = Talk(suite)
    hello, answer = (data for _, data in talk.pairs()[:2])
    answered = answer[5 : 5 + 4 + int.from_bytes(answer[6:9], "big")]
    asked = hello.replace(talk.client_random, random_of(number))
    return [(CLIENT, asked), *records_of(SERVER, answered + more)]


def certificate(name: x509.Name) -> bytes:
    key = ec.derive_private_key(7, ec.SECP256R1())
    start = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(17).not_valid_before(start)
    made = builder.not_valid_after(start.replace(year=2030)).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


def tiny_messages(n: int) -> Iterator[Talked]:
    """TLS 1.2 with RSA: handshakes of empty messages, 60 000 each, of which all are hashed."""
    for number in range(n):
        yield Talked(_begun(RSA, number, writer.message(22) * 60_000))


def records_of(side: int, messages: bytes) -> list[Turn]:
    """Handshake messages that are not encrypted."""
    parts = range(0, len(messages), REST)
    return [(side, b"".join(writer.record(HANDSHAKE, messages[at : at + REST]) for at in parts))]


def early(n: int) -> Iterator[Talked]:
    """Connections with as much early data as waits, and no answer."""
    talk = Talk(MODERN, early=b"e" * 1_000_000)
    turns = [turn for turn in talk.pairs() if turn[0] == CLIENT]
    hello = b"".join(data for _, data in turns)
    for number in range(n):
        yield Talked([(CLIENT, hello.replace(talk.client_random, random_of(number)))], _log(number))


# --- key logs


def _log(number: int) -> str:
    random = random_of(number).hex()
    return "".join(f"{label} {random} {secret_of(number, label).hex()}\n" for label in LABELS)


def secrets_blocks(n: int) -> Iterator[Talked]:
    """Blocks with a secret each, connections that have none, and one with exchanges."""
    talk = _exchange(Talk(MODERN))
    for number in range(n):
        turns = [(0, writer.record(DATA, bytes(60)))] if number % 2 else []
        yield Talked(turns, _log(number), begun=True)
    yield Talked(_whole(talk), talk.keylog())


def found_secrets(n: int) -> Iterator[Talked]:
    """Connections without handshake, each with a block before it, behind a large log."""
    yield Talked([], "".join(map(_log, range(n, n + 30 * n))), begun=True)
    for number in range(n):
        seal = writer.sealer_13(suite_of(MODERN), secret_of(number, CLIENT_0))
        turns = [(0, seal(0, DATA, request("ApiVersions", 0, number)))]
        yield Talked(turns, _log(number), begun=True)


def odd_blocks(n: int) -> Iterator[Talked]:
    """A key log whose every line has another label that nobody knows, and comments."""
    talk = _exchange(Talk(MODERN))
    lines = (f"LABEL_{each} {each:064x} {each:064x}\n# {each}\n\n" for each in range(n))
    yield Talked(_whole(talk), "".join(lines) + talk.keylog())
