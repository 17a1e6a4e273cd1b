"""Two ways to the end of a response, whole or in pieces, lead to the same place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.relay.endpoints import ENDPOINTS, WHOLE, walk_of
from kafkascope.proxy.relay.skipping import Program, Unwalkable, Walk, tail_of
from tests.proxy.kit import endpoint, fetched

PROGRAMS: list[Program] = [
    steps
    for key in sorted(ENDPOINTS.keys() - WHOLE)
    for version in range(APIS[key].versions.low, APIS[key].versions.high + 1)
    if (steps := walk_of(key, version))
]
FETCHED = [fetched(18, ends, records=size)[4:] for ends in ([], [endpoint(1)]) for size in (9, 999)]


def whole(steps: Program, payload: bytes) -> int | str | None:
    try:
        return Walk(steps).feed(payload)
    except Unwalkable as error:
        return str(error)


def at_once(steps: Program, payload: bytes) -> int | str | None:
    try:
        tail = tail_of(steps, payload)
    except IndexError:
        return None
    except Unwalkable as error:
        return str(error)
    return tail if tail <= len(payload) else None


def in_pieces(steps: Program, payload: bytes, sizes: list[int]) -> int | str | None:
    walk, at, turn = Walk(steps), 0, 0
    while at < len(payload):
        piece = payload[at : at + sizes[turn % len(sizes)]]
        turn += 1
        if not walk.skip(len(piece)):
            try:
                found = walk.feed(piece)
            except Unwalkable as error:
                return str(error)
            if found is not None:
                return at + found
        at += len(piece)
    return None


@given(
    st.sampled_from(PROGRAMS),
    st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from([0, 1, 2, 3, 0x80, 0xFF]), max_size=120).map(bytes),
    ),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
)
def test_any_bytes(steps: Program, payload: bytes, sizes: list[int]) -> None:
    tail = whole(steps, payload)
    assert at_once(steps, payload) == tail
    found = in_pieces(steps, payload, sizes)
    # In pieces the end is seen with the first byte behind it.
    assert found == tail or (found is None and tail == len(payload))


@given(st.sampled_from(FETCHED), st.lists(st.integers(1, 500), min_size=1, max_size=5), st.data())
def test_responses_and_their_beginnings(
    payload: bytes, sizes: list[int], data: st.DataObject
) -> None:
    steps = walk_of(1, 18)
    assert steps
    tail = whole(steps, payload)
    assert isinstance(tail, int)
    assert tail < len(payload)
    assert at_once(steps, payload) == tail == in_pieces(steps, payload, sizes)
    short = payload[: data.draw(st.integers(0, tail - 1))]
    assert at_once(steps, short) is None
    assert in_pieces(steps, short, sizes) is None
