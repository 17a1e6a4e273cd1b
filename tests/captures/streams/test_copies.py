"""What counts as a copy, one by one and in bulk."""

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.build import Composer
from kafkascope.captures.streams.copies import SPAN_NS, WINDOW, Copies
from tests.kit.captures import A, B, Tape, bytes_of, conversation, read


def test_a_copy_is_near_in_time_or_on_another_interface() -> None:
    copies = Copies()
    assert not copies.seen((7, 0, 0))
    assert copies.seen((7, SPAN_NS, 0))
    assert not copies.seen((7, 3 * SPAN_NS, 0))
    assert copies.seen((7, 90 * SPAN_NS, 1))
    assert not copies.seen((8, 90 * SPAN_NS, 1))


def test_the_window_ends() -> None:
    for between in (WINDOW - 1, WINDOW, 20 * WINDOW):
        copies = Copies()
        copies.seen((0, 0, 0))
        for number in range(1, between + 1):
            assert not copies.seen((number, 0, 0))
        assert copies.seen((0, 0, 0)) == (between < WINDOW)


marks = st.lists(
    st.tuples(st.integers(0, 9) | st.integers(0, 1 << 64), st.integers(0, 3 * SPAN_NS), st.just(0)),
    max_size=60,
)


@given(st.lists(st.tuples(marks, st.booleans()), max_size=6), st.integers(0, 2 * WINDOW))
def test_bulk_equals_one_by_one(
    batches: list[tuple[list[tuple[int, int, int]], bool]], pad: int
) -> None:
    one, many = Copies(), Copies()
    filler = [(1 << 65 | n, 0, 0) for n in range(pad)]
    for batch, bulk in batches:
        full = [*batch[:3], *filler, *batch[3:]]
        expected = [one.seen(mark) for mark in full]
        if bulk:
            prints, times, interfaces = ([mark[n] for mark in full] for n in range(3))
            found = many.seen_all(prints, times, interfaces) or [False] * len(full)
        else:
            found = [many.seen(mark) for mark in full]
        assert found == expected


def veth_pair(delay_ns: int) -> Tape:
    """What a capture on all interfaces of a container host holds: each packet on both ends."""
    tape, composer = Tape(), Composer(A, B)
    frames = [
        *composer.open(),
        *composer.send(0, b"ask" * 1000),
        *composer.send(1, b"answer" * 900),
    ]
    for frame in [*frames, *composer.close(0), *composer.close(1)]:
        tape.add([frame], delay_ns)
        tape.add([frame], 50_000)
    return tape


def test_a_veth_pair_shows_duplicates_not_retransmissions() -> None:
    plain = bytes_of(read(conversation(0).pcap())[0])
    assert plain == {}
    for bulk in (True, False):
        events, source, _ = read(veth_pair(3_000).pcap(), bulk=bulk)
        connection = events[0].connection
        assert connection.duplicates == (8, 8)
        assert connection.retransmissions == (0, 0)
        assert source.statistics.duplicates == source.statistics.packets // 2 == 16
        assert list(bytes_of(events).values()) == [b"ask" * 1000, b"answer" * 900]


def test_what_comes_later_was_sent_again() -> None:
    events, source, _ = read(veth_pair(3_000_000).pcap())
    assert source.statistics.duplicates == 0
    assert sum(events[0].connection.retransmissions) == 7
