"""Numbers are ranks by origin, and what leaves the hold is in their order, within a bound."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.pairs import is_named
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.captures.model import BEHIND_ALL
from kafkascope.kernel.numbering import MOST_HELD, Hold
from tests.kit.captures import late_names
from tests.kit.samples import CAPTURES, SAMPLES
from tests.kit.traffic import files

FILES = [*sorted(SAMPLES.glob("*.pcap*")), *sorted(CAPTURES.glob("*.pcap*"))[::3]]


def hold(most_held: int = MOST_HELD, most_bytes: int = 1 << 20) -> Hold[str]:
    return Hold(len, None, most_held, most_bytes)


@given(st.integers(0, 1 << 32), st.integers(1, 60))
def test_numbers_are_ranks_whatever_is_complete_first(seed: int, count: int) -> None:
    """Each begins at one moment, is complete at a later one, and may be found late to begin."""
    random = Random(seed)
    begins = sorted(random.sample(range(1, 10 * count), count))
    known = [begin + random.choice([0, 0, 0, 5, 40]) for begin in begins]
    lasts = [begin + random.choice([0, 1, 30, 200]) for begin in begins]
    ends = list(map(max, known, lasts))
    all_ = list(zip(begins, known, ends, strict=True))
    held, out = hold(), []
    for now in range(max(ends) + 1):
        told = [(begin, 0, str(begin)) for begin, _, end in all_ if end == now]
        out += held.add(told)
        if random.random() < 0.5:
            continue
        unknown = [begin for begin, at, _ in all_ if at > now]
        begun = [(begin, 0) for begin, at, end in all_ if at <= now < end]
        out += held.settle(min([*unknown, now + 1]), begun)
    out += held.finish()
    assert out == [(number, str(begin)) for number, begin in enumerate(begins, 1)]
    assert len(held) == 0


def test_what_is_not_complete_is_left_behind_at_the_bound() -> None:
    held = hold(most_held=4)
    held.add([(packet, 0, "x") for packet in (2, 3, 4, 6)])
    assert held.settle(7, [(1, 0), (5, 0)]) == []
    assert held.add([(7, 0, "x")]) == []
    assert [number for number, _ in held.settle(8, [(1, 0), (5, 0)])] == [2, 3, 4]
    assert held.left_behind() == {1}
    assert held.add([(1, 0, "late")]) == [(1, "late")]
    assert held.add([(5, 0, "x")]) == []
    assert [number for number, _ in held.finish()] == [5, 6, 7]


def test_large_exchanges_are_held_for_less_long() -> None:
    held = hold(most_bytes=10)
    held.add([(2, 0, "x" * 6)])
    assert held.settle(3, [(1, 0)]) == []
    held.add([(3, 0, "x" * 6)])
    assert [number for number, _ in held.settle(4, [(1, 0)])] == [2, 3]


def test_what_may_begin_before_does_not_hold_for_ever() -> None:
    """It gets a later number then."""
    held = hold(most_held=16)
    held.add([(packet, 0, "x") for packet in range(10, 30)])
    assert [number for number, _ in held.settle(5, [])] == [*range(1, 7)]
    held.add([(5, 0, "late")])
    assert dict(held.settle(BEHIND_ALL, []))[7] == "late"


def test_live_exchanges_get_the_next_number() -> None:
    held = hold()
    held.add([(5, 0, "a")])
    assert list(held.at_once([(9, 0, "b"), (7, 0, "c")])) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_captures_are_read_in_the_order_of_numbers(path: Path) -> None:
    check([str(path)])


@given(st.integers(0, 1 << 32))
@settings(max_examples=settings().max_examples // 2)
def test_whatever_happens_on_the_network(seed: int) -> None:
    with TemporaryDirectory() as folder:
        check(files(seed, Path(folder)))


def check(names: list[str]) -> None:
    with open_capture(names) as capture:
        found = list(capture.exchanges())
        assert capture.context.exchanges == len(found)
    origins = [each.origin for each in found]
    assert [each.number for each in found] == list(range(1, len(found) + 1))
    assert origins == sorted(set(origins))
    with open_capture(names) as capture:
        capture.live = True
        live = list(capture.exchanges())
    assert [each.number for each in live] == list(range(1, len(found) + 1))
    assert sorted(each.origin for each in live) == origins


def test_exchanges_wait_for_the_names_of_their_topics(tmp_path: Path) -> None:
    with open_capture([late_names(tmp_path / "late.pcapng")]) as capture:
        names = capture.context.names
        found = list(capture.exchanges())
        assert all(is_named(each, names) for each in found)
        assert [row_of(each, names).topics for each in found] == [("orders",), ("orders",), ()]


def test_beyond_the_bound_they_go_without() -> None:
    held: Hold[str] = Hold(len, lambda item: item != "nameless", 3)
    held.add([(1, 0, "nameless"), (2, 0, "x"), (3, 0, "x")])
    assert held.settle(4, []) == []
    held.add([(4, 0, "x")])
    assert [item for _, item in held.settle(5, [])] == ["nameless", "x", "x", "x"]
