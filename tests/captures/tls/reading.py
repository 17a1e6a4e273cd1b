"""TLS connections of chosen secrets, and what a stream reads of their bytes."""

from __future__ import annotations

import random
from collections.abc import Iterable

from kafkascope.captures import model
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.sources import KeySources
from kafkascope.captures.tls.stream import TlsStream
from tests.captures.tls.writer import CLIENT, SERVER, Talk

SIZES = (1, 100, 3000)


Bytes = list[tuple[int, bytes]]


class Read:
    """What a stream made of the bytes of a connection."""

    def __init__(self, keys: KeySources, *, midstream: bool = False, client: int = CLIENT) -> None:
        ends = model.Endpoint("10.0.0.4", 5), model.Endpoint("10.0.1.2", 9093)
        self.connection = model.Connection(0, *ends, 0, not midstream)
        self.keys = keys
        self.stream = TlsStream(self.connection, None if midstream else client, keys)
        self.stream.begin()
        self.plain = (bytearray(), bytearray())
        self.gaps = [0, 0]
        self.chunks: list[model.Chunk] = []
        self._offsets = [0, 0]
        self._packets = 0

    def take(self, sent: Iterable[tuple[int, bytes]]) -> Read:
        for direction, data in sent:
            self._packets += 1
            at = self._offsets[direction]
            piece = model.Piece(0, self._packets * 1000, self._packets, direction, at)
            self._happened(model.Chunk(self.connection, direction, at, data, [piece]))
            self._offsets[direction] += len(data)
        return self

    def lose(self, direction: int, size: int) -> Read:
        at = self._offsets[direction]
        self._happened(
            model.Gap(self.connection, direction, at, size, self._packets * 1000, "lost")
        )
        self._offsets[direction] += size
        return self

    def close(self, *directions: int) -> Read:
        for direction in directions or (CLIENT, SERVER):
            self._happened(model.Closed(self.connection, direction, "fin", self._packets * 1000))
        return self

    def _happened(self, event: model.Chunk | model.Gap | model.Closed) -> None:
        for plain in self.stream.feed(event):
            self.taken(plain)

    def taken(self, plain: model.StreamEvent) -> None:
        if isinstance(plain, model.Chunk):
            assert plain.offset == len(self.plain[plain.direction])
            assert plain.data
            self.plain[plain.direction].extend(plain.data)
            self.chunks.append(plain)
        elif isinstance(plain, model.Gap):
            self.gaps[plain.direction] += 1

    @property
    def tls(self) -> model.Tls:
        return self.stream.tls


def keys(*talks: Talk, kind: str = "random") -> KeySources:
    log = KeyLog()
    for talk in talks:
        log.add(talk.keylog(kind).encode())
    return KeySources(log)


def work(talk: Talk) -> Talk:
    """Some requests and answers, of all sizes."""
    talk.client(b"first request", [4, 9]).server(bytes(range(256)) * 80)
    talk.client(random.Random(3).randbytes(20_000), SIZES).server(b"answer").client(b"last")
    return talk


def cut(sent: Bytes, sizes: list[int]) -> Bytes:
    """The same bytes in packets of other sizes; the order of the directions stays."""
    out: Bytes = []
    turn = 0
    for direction, data in sent:
        at = 0
        while at < len(data):
            size = sizes[turn % len(sizes)]
            turn += 1
            if out and out[-1][0] == direction and size % 3 == 0:
                out[-1] = direction, out[-1][1] + data[at : at + size]
            else:
                out.append((direction, data[at : at + size]))
            at += size
    return out


VARIANTS = {
    "retry": Talk(0x1302, retry=True),
    "tickets": Talk(0x1301, tickets=3),
    "no middlebox": Talk(0x1301, middlebox=False),
    "small records": Talk(0x1301, split=40, client_certificate=b"\x30\x03\x02\x01\x01"),
    "one message a record": Talk(0x1301, coalesce=False, alpn="kafka"),
    "padding": Talk(0x1301, padding=333),
    "early data": Talk(0x1301, early=b"early bird", resume=Talk(0x1301, seed=5, tickets=1)),
    "encrypt-then-MAC": Talk(0xC013, etm=True),
    "more padding": Talk(0x002F, padding=5),
    "no extended master secret": Talk(0xC02F, ems=False),
    "no session id": Talk(0xC02F, session_id=False, ticket=True),
    "small records of 1.2": Talk(0xC02F, split=30),
}


def assert_part(found: bytes, talk: Talk, side: int) -> None:
    """What was read consists of whole records, in order."""
    at = 0
    for each in talk.sent:
        if each.direction == side and each.kind == 23 and found.startswith(each.plain, at):
            at += len(each.plain)
    assert at == len(found)
