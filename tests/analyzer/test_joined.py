"""Packets that come one by one and packets that come together tell the same of a connection.

The bulk path hands over as one chunk what follows each other in a direction; small captures go
packet by packet. Which way a capture takes must not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import Chunk, StreamEvent
from tests.analyzer.wire import (
    Wire,
    beat,
    framed,
    heartbeat,
    produce,
    request,
    response,
    shape,
    told,
)


def joined(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Chunks that follow each other as one."""
    out: list[StreamEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, Chunk) and isinstance(last, Chunk) and follows(event, last):
            moved = [each._replace(start=each.start + len(last.data)) for each in event.pieces]
            data, pieces = last.data + event.data, [*last.pieces, *moved]
            out[-1] = Chunk(last.connection, last.direction, last.offset, data, pieces)
        else:
            out.append(event)
    return out


def follows(chunk: Chunk, last: Chunk) -> bool:
    if chunk.connection is not last.connection or chunk.direction != last.direction:
        return False
    return chunk.offset == last.offset + len(last.data)


def messages(rng: Random) -> list[tuple[str, bytes]]:
    """What both sides say in turn: some of it is no request, some answers nothing that was seen, or
    comes before what it answers."""
    said: list[tuple[str, bytes]] = []
    waiting: list[bytes] = []
    for number in range(rng.randrange(2, 9)):
        client_id = rng.choice(["app", "app", "other", None])
        asked, answer = heartbeat(number, client_id), beat(number)
        kind = rng.randrange(6)
        if kind == 0:
            acks = rng.choice([0, 1, -1])
            asked = produce(number, acks=acks, records=bytes(rng.randrange(600)))
            answer = response("Produce", 7, number)
        elif kind == 1:
            asked = request("ApiVersions", 3, number, client_id, client_software_name="lib")
            answer = response("ApiVersions", 3, number)
        elif kind == 2 and rng.random() < 0.5:
            asked = framed(rng.randbytes(rng.randrange(1, 40)))
        said.append(("client", asked))
        if rng.random() < 0.9:
            waiting.append(answer)
        if rng.random() < 0.2:
            waiting.append(beat(rng.choice([99, number + 1, number + 2])))
        while waiting and rng.random() < 0.6:
            said.append(("broker", waiting.pop(0)))
        if len(said) > 1 and rng.random() < 0.1:
            said[-2:] = said[-1], said[-2]
    return said + [("broker", each) for each in waiting]


def noisy(said: list[tuple[str, bytes]], rng: Random) -> Iterator[tuple[str, bytes]]:
    """With nonsense between them, and some of them twice."""
    for side, data in said:
        yield side, data
        if rng.random() < 0.15:
            yield side, rng.choice([b"\xff" * 4, b"\x7f" * 5, rng.randbytes(rng.randrange(1, 30))])
        elif rng.random() < 0.1:
            yield side, data


def connection(seed: int, gaps: bool, midstream: bool, noise: bool) -> list[StreamEvent]:
    """Its events, a chunk for each packet."""
    rng = Random(seed)
    wire = Wire(handshake=not midstream)
    said = messages(rng)
    for side, data in noisy(said, rng) if noise else said:
        at = 0
        while at < len(data):
            part = data[at : at + rng.choice([1, 5, 14, 40, 1000])]
            at += len(part)
            if gaps and rng.random() < 0.06:
                wire.gap(side, len(part), rng.choice(["lost", "cut"]))
            elif side == "client":
                wire.client(part)
            else:
                wire.broker(part)
    if rng.random() < 0.5:
        wire.close("broker").close()
    return wire.events


def places(exchanges: list[Exchange]) -> list[Any]:
    """Where the bytes of all frames stand in the input."""
    sides = (side for each in exchanges for side in (each.request, each.response))
    return [side.frame.parts for side in sides if side is not None]


@given(seed=st.integers(0, 1 << 32), gaps=st.booleans(), mid=st.booleans(), noise=st.booleans())
@example(seed=4787747432, gaps=True, mid=False, noise=True)  # no size, in three packets
def test_how_many_packets_come_at_once_does_not_show(
    seed: int, gaps: bool, mid: bool, noise: bool
) -> None:
    one_by_one = told(connection(seed, gaps, mid, noise))
    together = told(joined(connection(seed, gaps, mid, noise)))
    assert shape(together) == shape(one_by_one)
    assert places(together) == places(one_by_one)


@pytest.mark.parametrize("count", [LIMITS.undecided_events - 20, LIMITS.undecided_events + 20])
def test_it_does_not_tell_what_a_connection_speaks(count: int) -> None:
    wire = Wire(handshake=False, port=31337)
    for _ in range(count):
        wire.client(b"\xff")
    for number in range(3):
        wire.client(heartbeat(number))
    wire.broker(beat(0), beat(1), beat(2))
    found = [len(told(each)) for each in (wire.events, joined(wire.events))]
    assert found == ([3, 3] if count < LIMITS.undecided_events else [0, 0])
