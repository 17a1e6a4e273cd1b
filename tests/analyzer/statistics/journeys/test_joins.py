"""The join of produced, fetched and committed offsets against a count offset by offset; how much is
held of records that nobody reads."""

import tracemalloc
from collections import Counter
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.journeys.facts import Commit, Got, Sent, rows
from kafkascope.analyzer.statistics.journeys.joins import Cells, cells_of
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from tests.analyzer.statistics.journeys.shop import Shop, records

END = 40


def got(time_ns: int, start: int, size: int) -> Got:
    return Got(time_ns, 0, 0, start, start + size, start, size, 0, -1, 0, 0)


def produced(sizes: list[int]) -> list[Sent]:
    return [Sent(0, 0, 0, 0, *ends, 0, -1, 0) for ends in pairwise([0, *accumulate(sizes)])]


def columns(kind: type[NamedTuple], rows: list[Any]) -> Any:
    table = IntegerRows(kind)
    for row in rows:
        table.add(*row)
    return table.columns()


def joined(sent: list[Sent], rows: list[Got], commits: list[Commit]) -> Cells:
    """Join batches; the client of each is its first offset."""
    named = [each._replace(client=each.first) for each in sent]
    return cells_of(columns(Sent, named), columns(Got, rows), columns(Commit, commits))


starts, sizes = st.integers(0, END), st.integers(1, 12)


@given(
    st.lists(sizes, max_size=8),
    st.lists(st.tuples(starts, sizes), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 13), starts, sizes, st.booleans()), max_size=8),
)
def test_records_are_those_of_a_count_offset_by_offset(
    batches: list[int], reads: list[tuple[int, int]], ends: list[tuple[int, int, int, bool]]
) -> None:
    sent = produced(batches)
    fetched = [got(time_ns, *each) for time_ns, each in enumerate(reads)]
    commits = sorted(
        Commit(time_ns, 0, 0, 0, start if shared else 0, start + size, -1)
        for time_ns, start, size, shared in ends
    )
    firsts, times = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for offset in range(sum(batches)):
        of = next(each for each in sent if each.first <= offset < each.end)
        time_ns = min((g.time_ns for g in fetched if g.first <= offset < g.end), default=None)
        if time_ns is None:
            continue
        firsts[of.first, time_ns] += 1
        beyond = [c.time_ns for c in commits if c.first <= offset < c.end and c.time_ns >= time_ns]
        if beyond:
            times[time_ns, beyond[0]] += 1
    cells = joined(sent, fetched, commits)
    found, settled = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for first, count, _, _, got_ns, committed_ns in zip(*map(list, cells), strict=True):
        found[first, got_ns] += count
        if committed_ns >= 0:
            settled[got_ns, committed_ns] += count
    assert found == firsts
    assert settled == times


def test_a_group_that_reads_backwards_takes_no_longer() -> None:
    # Every second batch is left out, so that nothing joins; a list would move 10^8 places.
    count = 20_000
    sent = produced([2] * (2 * count))
    fetched = [got(number, 4 * (count - number), 2) for number in range(1, count)]
    commits = [Commit(number, 0, 0, 0, 0, 4 * (count - number), -1) for number in range(1, count)]
    cells = joined(sent, fetched, commits)
    assert len(cells.records) == count - 1
    assert set(cells.committed_ns.tolist()) == {-1}
    assert set(joined(sent, fetched, commits[-1:]).committed_ns.tolist()) == {-1}


@given(st.lists(st.tuples(starts, sizes), min_size=1, max_size=8), st.integers(1, 12))
def test_records_that_compaction_left_are_all_counted(
    reads: list[tuple[int, int]], left: int
) -> None:
    """A batch with gaps is cut where another one begins; its records are spread over its parts."""
    sent = produced([1] * (END + 12))
    fetched = [got(0, 0, END + 12)._replace(records=left)]
    fetched += [got(number, *each) for number, each in enumerate(reads, 1)]
    assert joined(sent, fetched, []).records.sum() == left


class Small(Journeys):
    """Keeps few batches."""

    sent: IntegerRows[Sent] = rows(Sent, 10)
    got: IntegerRows[Got] = rows(Got, 10)
    commits: IntegerRows[Commit] = rows(Commit, 10)


UNREAD = Shop()
for number in range(60):
    UNREAD.produce("web", 3 * number, records(3), topic=f"t{number % 7}")
    UNREAD.fetch("old", 3 * number, records(3, 3 * number), topic=f"u{number % 5}")
    UNREAD.commit("old", "g", number)
PAIRS = UNREAD.pairs()


@settings(max_examples=20)
@given(st.permutations(range(len(PAIRS))), st.integers(1, len(PAIRS)))
def test_what_is_held_of_unread_records_is_bounded(order: list[int], cut: int) -> None:
    one, other = Small(), Small()
    for place, number in enumerate(order):
        into = one if place < cut else other
        into.add(ExchangeBatch.of(*PAIRS[number]))
        for kept in (into.sent, into.got, into.commits):
            assert len(kept) <= 13
    one.merge(other)
    assert one.rows() == []
    # Of 60 batches of each kind the latest ten stay, the same ones in whatever order they come.
    assert one.dropped == 150
    assert one.dump() == whole().dump()


def whole() -> Small:
    found = Small()
    for pair in PAIRS:
        found.add(ExchangeBatch.of(*pair))
    return found


def test_many_unread_batches_take_no_more_memory_than_the_limit() -> None:
    kept, imports = IntegerRows(Sent, 5_000), IntegerRows(Sent)
    imports.add(*range(len(Sent._fields)))
    assert imports.columns().partition.tolist() == [2]  # numpy is loaded, and not measured
    tracemalloc.start()
    try:
        for begin in range(0, 100_000, 1_000):
            column = range(begin, begin + 1_000)
            kept.add_all(*[column] * len(Sent._fields))
        found = kept.columns()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.dropped == 95_000
    assert found.time_ns.tolist() == list(range(95_000, 100_000))
    # 360 KB of columns, a quarter beyond the limit, once more while they are sorted.
    assert peak < 2 << 20
