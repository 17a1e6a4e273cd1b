"""Records of application data in one straight step: what the general steps give, bytes and places,
however records lie in packets and packets in chunks."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.model import Chunk, Closed, Gap, Piece, StreamEvent
from kafkascope.captures.tls.stream import TlsStream
from tests.captures.tls.reading import Read, keys, work
from tests.captures.tls.writer import CLIENT, SERVER, Talk

TALKS = [
    work(Talk(0x1301, tickets=2)),
    work(work(Talk(0x1303, padding=30)).key_update(SERVER, requested=False)),
    work(Talk(0xC02F, ticket=True)).alert(CLIENT, 70),
    work(Talk(0xCCA8)),
    work(Talk(0xC014, etm=True)),
    work(Talk(0x002F)),
]


def shown(events: list[StreamEvent]) -> list[object]:
    """The same events of two connections are equal so."""
    return [
        (each.direction, each.offset, each.data, each.pieces)
        if isinstance(each, Chunk)
        else (type(each).__name__, each.direction, getattr(each, "offset", 0))
        for each in events
        if isinstance(each, Chunk | Gap | Closed)
    ]


@pytest.mark.parametrize("talk", TALKS, ids=lambda each: each.suite.name)
@given(
    packets=st.lists(st.integers(1, 60) | st.integers(100, 5000), max_size=6),
    joined=st.integers(1, 12),
    damage=st.none() | st.integers(0, 80_000),
)
@settings(max_examples=60)
def test_the_straight_step_is_the_general_one(
    talk: Talk, packets: list[int], joined: int, damage: int | None
) -> None:
    packets = [*packets, 1448]
    usual, slow = Read(keys(talk)), Read(keys(talk))
    slow.stream._settle = lambda: None  # type: ignore[method-assign]
    turn, taken = 0, [0, 0]
    flight: list[tuple[int, bytes]] = []
    for direction, record in talk.pairs():
        if flight and flight[-1][0] == direction:
            flight[-1] = direction, flight[-1][1] + record
        else:
            flight.append((direction, record))
    for direction, sent in flight:
        while sent:
            lengths = [packets[(turn + each) % len(packets)] for each in range(joined)]
            starts = [at for at in accumulate(lengths, initial=0) if at < len(sent)][:joined]
            chunk, sent = sent[: sum(lengths)], sent[sum(lengths) :]
            turn += len(starts)
            at = taken[direction]
            pieces = [
                Piece(start, 1000 * (turn + index), turn + index, direction, at + start)
                for index, start in enumerate(starts)
            ]
            changed = bytearray(chunk)
            if damage is not None and 0 <= damage - sum(taken) < len(chunk):
                changed[damage - sum(taken)] ^= 4
            taken[direction] += len(chunk)
            found = []
            for read in (usual, slow):
                event = Chunk(read.connection, direction, at, bytes(changed), list(pieces))
                found.append(shown(read.stream.feed(event)))
            assert found[0] == found[1]
    assert usual.stream.dump()["sides"] == slow.stream.dump()["sides"]
    assert (usual.tls.error, usual.tls.note) == (slow.tls.error, slow.tls.note)
    assert usual.tls.decrypted == slow.tls.decrypted


@pytest.mark.parametrize("talk", [TALKS[0], *TALKS[2:]], ids=lambda each: each.suite.name)
def test_most_application_data_goes_the_straight_way(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padded records do not: nobody pads those of Kafka."""
    ways: list[bool] = []
    way = TlsStream.decrypt_fast

    def noted(stream: TlsStream, chunk: Chunk) -> Chunk | None:
        found = way(stream, chunk)
        ways.append(found is not None)
        return found

    monkeypatch.setattr(TlsStream, "decrypt_fast", noted)
    data = [each for each in talk.sent if each.kind == 23]
    read = Read(keys(talk)).take(talk.pairs())
    assert [bytes(each) for each in read.plain] == [bytes(each) for each in talk.plain]
    assert ways.count(True) >= len(data) // 2
