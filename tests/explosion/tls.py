"""Floods of connections with TLS, each with a little of it, and key logs to go with them."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from kafkascope.captures.tls.keys.suites import suite_of
from tests.captures.tls import writer
from tests.explosion.floods import DATA, SYN, SYN_ACK, Host, client, packet

SERVER: Final[Host] = 0x0B000001, 9093
SUITE: Final = 0x1301
CLIENT_0, SERVER_0 = "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"
LABELS: Final = (
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    CLIENT_0,
    SERVER_0,
)
REQUEST: Final = b"\0\0\0\x0c\0\x12\0\0\0\0\0\x01\0\x02ab"
_TALK: Final = writer.Talk(SUITE, middlebox=False)
_HELLO, _ANSWER = (each.data for each in _TALK.sent[:2])


def random_of(number: int) -> bytes:
    """The client random of a connection."""
    return sha256(b"random %d" % number).digest()


def secret_of(number: int, label: str) -> bytes:
    return sha256(b"%d %b" % (number, label.encode())).digest()


def hello(number: int) -> bytes:
    """The record with the ClientHello of a connection."""
    return _HELLO.replace(_TALK.client_random, random_of(number))


def key_log(path: Path, numbers: range) -> Path:
    """A key log with the secrets of these connections; negative numbers are of none."""
    with path.open("w") as file:
        for number in numbers:
            random = random_of(number).hex()
            for label in LABELS:
                file.write(f"{label} {random} {secret_of(number, label).hex()}\n")
    return path


def hellos(count: int) -> Iterator[bytes]:
    """Connections with nothing but a ClientHello."""
    for number in range(count):
        mine = client(number)
        yield packet(mine, SERVER, 1000, SYN)
        yield packet(mine, SERVER, 1001, DATA, hello(number))


def answered(count: int) -> Iterator[bytes]:
    """Connections with a ClientHello and a ServerHello."""
    for number in range(count):
        mine, said = client(number), hello(number)
        yield packet(mine, SERVER, 1000, SYN)
        yield packet(SERVER, mine, 2000, SYN_ACK, ack=1001)
        yield packet(mine, SERVER, 1001, DATA, said, 2001)
        yield packet(SERVER, mine, 2001, DATA, _ANSWER, 1001 + len(said))


def data(count: int) -> Iterator[bytes]:
    """Connections that began before the capture, with a record of application data each."""
    for number in range(count):
        seal = writer.sealer_13(suite_of(SUITE), secret_of(number, CLIENT_0))
        yield packet(client(number), SERVER, 1001, DATA, seal(0, writer.DATA, REQUEST))


def in_bytes(count: int) -> Iterator[bytes]:
    """Connections with a ClientHello in packets of a byte each, all at once."""
    for number in range(count):
        yield packet(client(number), SERVER, 1000, SYN)
    for at in range(len(_HELLO)):
        for number in range(count):
            byte = hello(number)[at : at + 1]
            yield packet(client(number), SERVER, 1001 + at, DATA, byte)
