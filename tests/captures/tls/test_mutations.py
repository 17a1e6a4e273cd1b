"""Many mutations of handshakes and records, with their key logs: no exception, no wrong byte, no
memory and no time that grows."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.sources import KeySources
from tests.captures.tls.reading import Bytes, Read, assert_part, cut, keys
from tests.captures.tls.writer import CLIENT, SERVER, Talk, certificate
from tests.conftest import PROFILE
from tests.matrix import mostly_slow

COUNT: Final = 100_000 if PROFILE == "soak" else 3_000
"""Of mutations, over all kinds of connections."""
HELD: Final = 1 << 18
"""Bytes that may wait of a connection that has no more than 30 KB in all."""
SECONDS: Final = 10.0
"""Of CPU: a connection without a handshake tries 65 536 numbers for each secret."""
Mutation = Callable[[random.Random, bytearray], None]


def _told(talk: Talk) -> Talk:
    return talk.client(b"first request", [4, 9]).server(bytes(300)).client(b"last")


def _talks() -> list[Talk]:
    first = Talk(0xC02F, seed=5, ticket=True)
    old = Talk(0x1301, seed=6, tickets=2)
    updated = _told(Talk(0x1302, seed=7, retry=True, client_certificate=certificate("client")))
    updated.key_update(CLIENT, requested=True).key_update(SERVER, requested=False)
    return [
        _told(Talk(0x1301, tickets=1, split=50, coalesce=False)),
        _told(updated),
        _told(Talk(0x1303, seed=8, resume=old, early=b"early", padding=20)),
        _told(Talk(0x1304, seed=9, client_certificate=b"", alpn="kafka")),
        _told(Talk(0xC02F, seed=10, client_certificate=certificate("a,=\\\0b"))),
        _told(Talk(0xC013, seed=11, etm=True)),
        _told(Talk(0x003D, seed=12, ems=False)),
        _told(Talk(0xC02F, seed=13, resume=first, resume_by="ticket")),
    ]


TALKS: Final = _talks()


def _flip(source: random.Random, data: bytearray) -> None:
    for _ in range(source.choice([1, 1, 1, 2, 8])):
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def _extreme(source: random.Random, data: bytearray) -> None:
    """Lengths and counts are where this hurts."""
    at = source.randrange(len(data))
    data[at : at + source.choice([1, 2, 3])] = source.choice([b"\0", b"\xff\xff", b"\x7f\xff\xff"])


def _remove(source: random.Random, data: bytearray) -> None:
    at = source.randrange(len(data))
    del data[at : at + source.choice([1, 2, 5, 100])]


def _insert(source: random.Random, data: bytearray) -> None:
    at = source.randrange(len(data) + 1)
    data[at:at] = source.randbytes(source.choice([1, 2, 5, 100]))


def _copy(source: random.Random, data: bytearray) -> None:
    begin, at = source.randrange(len(data)), source.randrange(len(data) + 1)
    data[at:at] = data[begin : begin + source.randrange(1, 200)]


def _refit(source: random.Random, data: bytearray) -> None:
    """A record of another length, which says so."""
    (_flip if source.random() < 0.5 else _remove)(source, data)
    if len(data) > 5:
        data[3:5] = (len(data) - 5).to_bytes(2, "big")


MUTATIONS: Final[Sequence[Mutation]] = (_flip, _extreme, _remove, _insert, _copy, _refit)


def mutated(source: random.Random, talk: Talk) -> Bytes:
    """The records of a connection, some of them changed, doubled, left out or in another order."""
    wire = talk.pairs()
    for _ in range(source.choice([1, 1, 2, 4])):
        # Most of what is parsed is in the first few.
        at = min(source.randrange(len(wire)), source.randrange(len(wire)))
        direction, record = wire[at]
        how = source.random()
        if how < 0.8:
            data = bytearray(record)
            source.choice(MUTATIONS)(source, data)
            wire[at] = direction, bytes(data)
        elif how < 0.85:
            wire.insert(source.randrange(len(wire)), wire[at])
        elif how < 0.9:
            wire[at] = 1 - direction, record
        elif how < 0.95:
            other = source.choice(TALKS).pairs()
            wire[at] = direction, source.choice(other)[1]
        else:
            wire[at], wire[0] = wire[0], wire[at]
        wire = [(side, data) for side, data in wire if data]
        if len(wire) < 2:
            break
    return wire


def _keys(source: random.Random, talk: Talk) -> KeySources:
    """The log of the connection, or one that was cut and changed."""
    if source.random() < 0.8:
        return keys(talk)
    log, text = KeyLog(), bytearray(talk.keylog().encode())
    source.choice(MUTATIONS[:5])(source, text)
    log.add(bytes(text))
    return KeySources(log)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", mostly_slow(range(len(TALKS)), lambda number: number > 0))
def test_mutations_make_no_exception_and_no_wrong_byte(number: int) -> None:
    talk = TALKS[number]
    for index in range(COUNT // len(TALKS)):
        seed = f"{number} {index}"
        source = random.Random(seed)
        wire = mutated(source, talk)
        midstream = source.random() < 0.002
        if source.random() < 0.3:
            wire = cut(wire, [source.randint(1, 200) for _ in range(5)])
        read = Read(_keys(source, talk), midstream=midstream)
        begun = time.process_time()
        for direction, data in wire:
            if source.random() < 0.02:
                read.lose(direction, len(data))
            else:
                read.take([(direction, data)])
            assert read.stream.held < HELD, seed
        read.close()
        assert time.process_time() - begun < SECONDS, seed
        for side in (CLIENT, SERVER):
            assert_part(bytes(read.plain[side]), talk, side)
