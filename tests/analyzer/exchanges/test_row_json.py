"""Rows written from their columns are the bytes of their objects."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import Row, RowError, blank, to_json
from kafkascope.analyzer.model import STATES, Note, Undecoded
from kafkascope.captures.model import TlsSummary
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.values import Uuid
from kafkascope.kernel.json_values import write_millis, write_number

# Also lone surrogates, C1 controls, quotes and backslashes.
ODD = ["", 'a"b\\c', "\x00\x1f\x7f\x80\x9f", "a\udcffb", "é\u2028\u202e", "💥"]
TEXT = st.text(max_size=6) | st.sampled_from([*ODD, "x" * LIMITS.cached_text_chars])
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 100, 999, 10**6, 10**15])
TIME = st.integers(-(2**62), 2**62)
WAIT = st.integers(0, 2**62) | st.sampled_from([0, 1, 999_999, 1_000_000])


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


ABOUT = maybe(TEXT), st.none(), maybe(NUMBER), maybe(TEXT), maybe(TEXT)
ERROR = st.builds(RowError, NUMBER, TEXT, st.booleans(), *ABOUT)
ROWS = st.builds(
    blank,
    number=NUMBER,
    id=TEXT,
    time_ns=TIME,
    connection=NUMBER,
    client_address=TEXT,
    broker_address=TEXT,
    client_id=maybe(TEXT),
    api=TEXT,
    correlation_id=maybe(NUMBER),
    latency_ns=maybe(NUMBER),
    server_ns=maybe(NUMBER),
    wait_ns=WAIT,
    state=st.sampled_from(STATES),
    errors=several(ERROR),
    topics=several(TEXT),
    topic_ids=several(st.binary(min_size=16, max_size=16).map(Uuid)),
    partitions=several(NUMBER),
    records=maybe(NUMBER),
    frames=several(NUMBER),
    undecoded=several(st.builds(Undecoded, st.just("request"), TEXT, NUMBER, NUMBER, TEXT, TEXT)),
    notes=several(st.builds(Note, st.just("chat"), TEXT, st.none())),
    tls=maybe(st.builds(TlsSummary, TEXT, TEXT, st.booleans(), TEXT)),
)


@given(st.lists(ROWS, max_size=4))
def test_the_bytes_are_those_of_the_object(rows: list[Row]) -> None:
    for row in (*rows, *rows):
        assert json_of_row(row) == dumps(to_json(row))


def test_what_is_kept_is_bounded_and_right_beyond() -> None:
    for number in range(2 * LIMITS.cached_texts + 1):
        row = blank(
            number=number,
            id="",
            time_ns=0,
            connection=number,
            client_address="a",
            broker_address="b",
            topics=(str(number), "x" * (number % 3) * LIMITS.cached_text_chars),
        )
        assert json_of_row(row) == dumps(to_json(row))


def written(write: Callable[..., None], *values: object) -> bytes:
    out = BytesWriter()
    write(out, *values)
    return out.getvalue()


@given(st.integers(-(1 << 62), 1 << 62) | st.integers(-(10**16), 10**16))
def test_nanoseconds_as_milliseconds(value: int) -> None:
    """Also those beyond 2^53, which are halfway between floats when they are rounded twice."""
    assert written(write_millis, value, False) == dumps(value / 1_000_000)
    shown = value // 1_000_000 if value % 1_000_000 == 0 else value / 1_000_000
    assert written(write_millis, value, True) == dumps(shown)


@given(NUMBER)
def test_numbers(value: int) -> None:
    assert written(write_number, value) == b"%d" % value
