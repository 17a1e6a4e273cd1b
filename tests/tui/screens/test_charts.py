"""Charts of characters."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.text import columns_taken
from kafkascope.tui.screens import charts
from kafkascope.tui.settings.palette import Glyphs

MS = 1_000_000


def heated(values, marks, size, times=None):
    times = range(len(values)) if times is None else times
    arrays = [np.array(each, np.int64) for each in (list(times), values, marks)]
    return charts.heat(*arrays, (0, max(1, len(values))), size)


def texts(lines):
    return ["".join(text for text, _ in line) for line in lines]


def test_a_count_is_never_invisible() -> None:
    assert charts.spark([0, 1, 1_000_000]) == " ▁█"
    assert charts.bar(0.0, 10) == ""
    assert charts.bar(0.0001, 10) == "▌"
    assert charts.bar(1.0, 10) == "█" * 10


def test_bars_grow_from_the_bottom() -> None:
    assert texts(charts.columns_chart([0, 4, 8], 2)) == ["  █", " ██"]
    assert texts(charts.columns_chart([0, 3, 8], 2)) == ["  █", " ▆█"]


def test_labels_of_powers_have_their_units() -> None:
    assert [charts.power_label(power) for power in (3, 5, 6, 8, 9, 10)] == [
        *("1 µs", "100 µs", "1 ms", "100 ms", "1 s", "10 s")
    ]


def test_a_histogram_has_an_axis_and_percentiles() -> None:
    found = Histogram()
    for value in [2 * MS] * 98 + [500 * MS] * 2:
        found.add_all([value])
    lines = texts(charts.histogram(found, 70, 5))
    assert lines[0].startswith("    98 ┤")
    assert "1 ms" in lines[-2]
    assert "1 s" in lines[-2]
    assert "▲ p50 2.0 ms  ▲ p95 2.0 ms" in lines[-1]
    assert "▲ p99 500 ms" in lines[-1]
    assert texts(charts.histogram(Histogram(), 70, 5)) == ["nothing was answered"]


@given(
    st.lists(st.integers(0, 10**13), min_size=1, max_size=60),
    st.integers(1, 150),
    st.integers(1, 12),
)
def test_charts_are_as_wide_as_they_may_be(values, width, height) -> None:
    found = Histogram()
    for value in values:
        found.add_all([value])
    room = max(width, 18)
    marks = [value % 3 for value in values]
    drawn = [*charts.histogram(found, width, height), *heated(values, marks, (width, height))]
    for line in texts(drawn):
        # Percentiles need a few columns more than the narrowest axis has.
        assert columns_taken(line.rstrip()) <= max(room, 60)


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.integers(1, 200))
def test_a_larger_value_is_never_to_the_left(a, b, length) -> None:
    low, high = min(a, b), max(a, b)
    axis = charts.LogAxis(low, high, length)
    assert 0 <= axis.place(low) <= axis.place(high) < length
    assert len(axis.scale()) <= max(length, 7)


def test_the_unusual_shows_where_points_fall_together() -> None:
    drawn = heated([MS, MS, MS, 100 * MS], [0, 2, 1, 0], (40, 6), times=[0, 0, 0, 9])
    assert "!" in {role for line in drawn for text, role in line if text.strip()}
    assert texts(heated([], [], (40, 6))) == ["nothing was answered"]


@given(st.lists(st.integers(0, 10**6), max_size=200), st.integers(1, 120))
def test_every_time_is_in_a_slice(times, width) -> None:
    found = charts.slices(np.array(times, np.int64), (0, 10**6), width)
    assert len(found) == width
    assert sum(found) == len(times)


def test_blocks_stand_next_to_each_other() -> None:
    lines = texts(charts.beside([[("ab", "")], [("c", "")]], [[("x", "")]], 5))
    assert lines == ["ab   x", "c    "]


def test_every_sign_of_a_chart_has_an_ascii_twin() -> None:
    found = Histogram()
    for value in range(1, 2000):
        found.add_all([value * 10_000])
    values = [value * 10_000 for value in range(1, 2000)]
    plain = Glyphs(plain=True)
    for line in texts([*charts.histogram(found, 70, 8), *heated(values, [0] * 1999, (70, 8))]):
        assert "?" not in plain.text(line)
        assert plain.text(line).isascii()
