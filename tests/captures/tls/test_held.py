"""What is kept of a TLS connection is little, whatever its two sides send."""

from time import process_time

import pytest

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Piece, Tls
from kafkascope.captures.tls import messages, search
from kafkascope.captures.tls.keys.epoch import FullHandshake, Sessions
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.negotiation import Negotiation
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.sources import KeySources
from tests.captures.tls.reading import Read
from tests.captures.tls.writer import CLIENT, Talk, extension, message, vector

RANDOM = bytes(range(32))


def hello(name: bytes = b"broker", suites: int = 2, ticket: bytes = b"") -> bytes:
    asked = extension(0, vector(2, b"\0" + vector(2, name))) + extension(35, ticket)
    offered = vector(2, b"\xc0\x2f" * suites)
    return message(1, b"\3\3" + RANDOM + b"\0" + offered + b"\1\0" + vector(2, asked))


def certificate(size: int) -> bytes:
    return message(11, vector(3, vector(3, bytes(size))))


def test_of_suites_only_their_number_is_kept() -> None:
    # 64 KB were more than a megabyte.
    assert messages.client_hello(hello(suites=30_000)).suites == 30_000


@pytest.mark.parametrize(("size", "kept"), [(255, 255), (256, 0), (60_000, 0)])
def test_a_name_that_no_host_can_have_is_none(size: int, kept: int) -> None:
    assert messages.client_hello(hello(b"n" * size)).server_name == "n" * kept
    record = b"\x16\3\1" + vector(2, hello(b"n" * size))
    assert messages.server_name(record) == "n" * kept


@pytest.mark.parametrize(
    ("size", "kept"), [(LIMITS.certificate_bytes, True), (LIMITS.certificate_bytes + 1, False)]
)
def test_a_certificate_larger_than_any_is_not_kept(size: int, kept: bool) -> None:
    negotiation = Negotiation()
    keys = KeySources(KeyLog())
    negotiation.evict()
    negotiation.message(certificate(size), client=False, keys=keys, tls=Tls())
    assert (negotiation.held > 0) is kept


def test_what_is_kept_of_a_handshake_counts_as_held_and_is_given_up() -> None:
    talk = Talk(0xC02F)
    read = Read(KeySources(KeyLog()))
    read.take([(CLIENT, b"\x16\3\1" + vector(2, hello(ticket=b"t" * 10_000))), talk.pairs()[1]])
    assert read.stream.held > 10_000
    read.stream.evict()
    assert read.stream.held == 0
    assert read.tls.error != "damaged"


def test_sessions_forget_the_oldest_as_fast_as_they_learn() -> None:
    # 60 times as long as before the first one went.
    sessions, origins = Sessions(), (FullHandshake(1, RANDOM, RANDOM),)
    took = []
    for part in range(3):
        start = process_time()
        for number in range(LIMITS.sessions):
            sessions.remember(b"%d of %d" % (number, part), origins)
        took.append(process_time() - start)
    assert len(sessions) == LIMITS.sessions
    assert max(took[1:]) < 10 * took[0]


def test_a_search_moves_what_waits_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each byte that came moved 16 000 pieces.
    moved = 0
    begin = search.beginning

    def counted(pieces: list[Piece], at: int) -> list[Piece]:
        nonlocal moved
        moved += len(pieces)
        return begin(pieces, at)

    monkeypatch.setattr(search, "beginning", counted)
    looking = Search.behind(0, 0)
    data = b"\x17\3\3\x40\0" * 10_000
    for at in range(len(data)):
        looking.add(data[at : at + 1], [Piece(0, 0, 0, at, at)])
        while looking.candidate() is not None:
            looking.reject()
    assert moved < 4 * len(data)
    assert looking.held < 400 * 17_000
