"""Limits on names, keys and events leave the same, whatever the order."""

import json
import math
from functools import partial
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.merging.bounded import Distinct, Event, Events, Names
from kafkascope.analyzer.merging.histogram import Histogram, bounds_of, bucket_of
from kafkascope.analyzer.merging.limits import LIMITS, MergingLimits
from kafkascope.analyzer.merging.measures import Measures, bits, least, most, total, whole
from kafkascope.analyzer.merging.tables import Keyed
from kafkascope.analyzer.ranks import BEGINNING, MOST_TEXT, bounded, has_bounded

TEXTS = st.lists(st.text(max_size=3), max_size=30)


class Sum(Measures):
    count: int = total()


def named(values: list[str]) -> Names:
    new = Names(4)
    for value in values:
        new.add(value)
    return new


def keyed(values: list[str]) -> Keyed[Sum]:
    new = Keyed(Sum, 4)
    for value in values:
        new[(value, None)].count += 1
    return new


def happened(values: list[str]) -> Events:
    new = Events(4)
    for number, value in enumerate(values):
        new.add(Event(len(value), value, number, number, "kind", {"value": value}))
    return new


class Told(Measures):
    first: str | None = least()
    last: tuple[int, str] | None = most()


def test_of_long_texts_measures_keep_the_beginning() -> None:
    new = Told()
    new.take(first="a" * 30_000, last=(1, "b" * 30_000))
    assert (new.first, new.last) == (bounded("a" * 30_000), (1, bounded("b" * 30_000)))
    again = Told().load(json.loads(json.dumps(new.dump())))
    again.merge(new)
    assert again.dump() == new.dump()


@given(TEXTS, TEXTS)
def test_names_keep_a_few_of_many(one: list[str], two: list[str]) -> None:
    merged = named(one)
    merged.merge(named(two))
    assert merged.dump() == named([*two, *one]).dump()
    assert len(merged) == min(4, len({*one, *two}))
    assert merged.more == (len({*one, *two}) > 4)
    again = Names(4).load(json.loads(json.dumps(merged.dump())))
    again.merge(named(one))
    assert again.dump() == merged.dump()


@given(TEXTS, TEXTS)
def test_keys_beyond_the_limit_are_summed_up(one: list[str], two: list[str]) -> None:
    merged = keyed(one)
    merged.merge(keyed(two))
    assert merged.dump() == keyed([*two, *one]).dump()
    rest = 0 if merged.others is None else merged.others.count
    assert rest + sum(value.count for _, value in merged.items()) == len(one) + len(two)
    assert len(merged) <= 4
    again = Keyed(Sum, 4).load(json.loads(json.dumps(merged.dump())))
    again.merge(keyed(two))
    assert again.dump() == keyed([*one, *two, *two]).dump()


class Busy(Measures):
    names: Names = whole(partial(Names, 6))
    events: Events = whole(partial(Events, 6))
    seen: Distinct = whole(partial(Distinct, 5))


def busy(
    values: list[tuple[int, int]], limit: int = 12, limits: MergingLimits = LIMITS
) -> Keyed[Busy]:
    new = Keyed(Busy, limit, limits=limits)
    for key, number in values:
        found = new[(key,)]
        found.names.add(number)
        found.seen.add(number)
        found.events.add(Event(number, f"{key}", key, number, "kind", {}))
    return new


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), max_size=120, unique=True),
    st.randoms(use_true_random=False),
    st.integers(0, 120),
    st.sampled_from([4, 12, 40]),
)
def test_keys_of_a_table_share_names_and_events_whatever_the_order(
    values: list[tuple[int, int]], random: Random, split: int, limit: int
) -> None:
    few = LIMITS._replace(shared_from=2, table_names=24, table_events=24)
    alone = busy(values, limit, few)
    keys = len(alone)
    other = values.copy()
    random.shuffle(other)
    merged = busy(other[:split], limit, few)
    merged.merge(busy(other[split:], limit, few))
    again = Keyed(Busy, limit, limits=few).load(json.loads(json.dumps(merged.dump())))
    assert merged.dump() == alone.dump()
    assert again.dump() == alone.dump()
    for _, found in alone.items():
        most = 6 if keys <= 2 else min(6, max(1, 24 >> (keys - 1).bit_length()))
        assert max(len(found.names), len(found.events)) <= most
        assert len(found.seen) <= 5


def test_names_of_kilobytes_are_kept_in_part() -> None:
    # 10,000 client ids of 30 KB took more than a gigabyte.
    long, other = "x" * 30_000, "x" * 29_999 + "y"
    table = keyed([long, other, long, "x" * MOST_TEXT])
    assert sorted(value.count for _, value in table.items()) == [1, 1, 2]
    found = [key[0] for key, _ in table.items()]
    assert all(len(each) <= MOST_TEXT for each in found)
    assert [has_bounded(each) for each in found] == [True, True, False]
    assert [each[BEGINNING : BEGINNING + 23] for each in found[:2]] == [
        "... (30,000 characters,"
    ] * 2
    again = keyed([*found[:2], long])
    assert {key[0] for key, _ in again.items()} == set(found[:2])
    names = named([long, other, long, 7])
    assert len(names) == 3
    assert list(named([(7, long), (7, long)])) == [(7, bounded(long))]  # type: ignore[list-item]
    assert {each for each in names._values if isinstance(each, str)} == set(found[:2])


@given(st.lists(st.text(max_size=3), unique=True, max_size=30), st.permutations(range(30)))
def test_numbers_that_stand_for_something_do_not_choose_what_is_kept(
    names: list[str], places: list[int]
) -> None:
    def kept(numbers: list[int]) -> set[object]:
        found: Keyed[Sum] = Keyed(Sum, 4, 1)
        for number, name in zip(numbers, names, strict=False):
            found[(number, name)].count += 1
        return {key[1] for key, _ in found.items()}

    assert kept(places) == kept(list(range(30)))


@given(st.lists(st.integers(0, 50), unique=True, max_size=30), st.integers(0, 30))
def test_the_latest_events_are_kept(times: list[int], cut: int) -> None:
    def of(some: list[int]) -> Events:
        new = Events(4)
        for time in some:
            new.add(Event(time, "x", 0, time, "kind", {}))
        return new

    merged = of(times[cut:])
    merged.merge(of(times[:cut]))
    assert [event.time_ns for event in merged] == sorted(times)[-4:]
    assert merged.dropped == max(0, len(times) - 4)
    assert Events(4).load(json.loads(json.dumps(merged.dump()))).dump() == merged.dump()


def test_events_come_in_order() -> None:
    assert [event.id for event in happened(["bb", "a", "", "cc"])] == ["", "a", "bb", "cc"]


class Slots(Measures):
    seen: int = bits()


def test_more_bits_than_a_number_of_json_has_come_back() -> None:
    one, two = Slots(1 << 1_199 | 1), Slots(1 << 70)
    again = Slots().load(json.loads(json.dumps(one.dump())))
    again.merge(two)
    assert again.seen == 1 << 1_199 | 1 << 70 | 1


class Ends(Measures):
    count: int = total()
    first: tuple[int, str] | None = least()
    last: int | None = most()


def test_measures_take_values_by_the_rules_of_their_fields() -> None:
    ends = Ends()
    ends.take(count=1, first=(5, "b"), last=5)
    ends.take(count=2, first=(3, "c"), last=3)
    ends.take(first=None, last=None)
    assert ends.dump() == [3, [3, "c"], 5]


@given(
    st.lists(st.integers(0, 60), max_size=60, unique=True),
    st.randoms(use_true_random=False),
    st.integers(1, 12),
)
def test_of_keys_with_equal_ranks_the_same_are_kept_whatever_the_order(
    values: list[int], random: Random, limit: int
) -> None:
    def kept(order: list[int]) -> list[int]:
        table = Keyed(Busy, limit, sample=lambda key: key[0] % 3)
        for value in order:
            table[(value,)].seen.add(value)
        return sorted(key[0] for key in table)

    other = values.copy()
    random.shuffle(other)
    assert kept(other) == kept(values)
    assert len(kept(values)) == min(limit, len(values))


# --- percentiles ----------------------------------------------------------------------------------


VALUES = st.lists(st.integers(0, 1 << 70), min_size=1, max_size=60)


def histogram(values: list[int]) -> Histogram:
    new = Histogram()
    for value in values:
        new.add_all([value])
    return new


@given(st.integers(0, 1 << 70))
def test_buckets_hold_their_values_and_are_narrow(value: int) -> None:
    low, high = bounds_of(bucket_of(value))
    assert low <= value <= high
    assert (high - low) * 32 <= low or low == high


@given(st.integers(0, 5000))
def test_buckets_follow_each_other(bucket: int) -> None:
    assert bounds_of(bucket)[1] + 1 == bounds_of(bucket + 1)[0]


@given(VALUES, st.floats(0.01, 1))
def test_percentiles_are_a_little_above_the_truth_at_most(values: list[int], share: float) -> None:
    found = histogram(values).percentile(share)
    true = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    assert found is not None
    assert true <= found <= true * 33 // 32 + 1
    assert found <= max(values)


@given(VALUES, VALUES)
def test_merging_is_counting_both(one: list[int], two: list[int]) -> None:
    merged = histogram(one)
    merged.merge(histogram(two))
    assert merged.dump() == histogram([*two, *one]).dump()
    assert Histogram().load(merged.dump()).dump() == merged.dump()


def test_no_values_have_no_percentile() -> None:
    assert Histogram().percentile(0.5) is None
    assert histogram([-5]).percentile(0.5) == 0
