"""Columns hold any numbers in little space; frames come back as they were, from memory and disk."""

from array import array
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.print_json import TARGET, document
from kafkascope.analyzer.exchanges import columns
from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.columns import CUTS, Frames, Heap, Overflow, grown, packed_frames
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, blank, to_json
from kafkascope.analyzer.filter.fields import COLUMNS, field_named
from kafkascope.analyzer.model import Frame, Part
from kafkascope.analyzer.pipeline.tables.schemas import ADDED, EXCHANGES
from kafkascope.analyzer.pipeline.tables.values import exchange_values
from kafkascope.analyzer.session import packing
from kafkascope.analyzer.session.rows import row_of_columns
from kafkascope.captures.inputs.spool import Spool
from tests.kit.captures import session_of
from tests.kit.samples import ROOT, SAMPLES, pairs_of

NUMBERS = st.one_of(
    st.integers(-200, 200), st.integers(-(2**33), 2**33), st.integers(-(2**63), 2**63 - 1)
)
PARTS = st.builds(
    Part,
    file=st.integers(0, 3),
    at=st.integers(0, 2**40),
    size=st.integers(0, 50),
    packet=st.integers(0, 2**40),
)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """A frame whose bytes are those that `_read` gives."""
    parts = tuple(draw(st.lists(PARTS, min_size=1, max_size=3)))
    data = b"".join(_read(part.file, part.at, part.size) for part in parts)
    size = draw(st.integers(0, len(data)))
    times = draw(st.integers(0, 2**62)), draw(st.integers(0, 2**62))
    offset, cut = draw(st.integers(0, 2**50)), draw(st.sampled_from(CUTS))
    return Frame(data[4 : 4 + size], offset, size, *times, parts, cut)


def _read(file: int, at: int, size: int) -> bytes:
    return bytes((file + at + place) % 251 for place in range(size))


@given(st.lists(st.lists(NUMBERS, max_size=5), max_size=8))
def test_a_column_has_what_it_was_given(batches: list[list[int]]) -> None:
    column = array("b")
    for batch in batches:
        column = grown(column, batch)
    assert column.tolist() == [number for batch in batches for number in batch]


def test_a_column_is_as_wide_as_its_largest_number_needs() -> None:
    column = array("b")
    for number, width in ((127, 1), (-128, 1), (128, 2), (5, 2), (2**31 - 1, 4), (2**31, 8)):
        column = grown(column, [number])
        assert column.itemsize == width
    with pytest.raises(OverflowError):
        grown(column, [2**63])
    assert len(column) == 6


@given(
    st.lists(st.tuples(st.none() | frames(), st.none() | frames()), max_size=8),
    st.integers(0, 8),
    st.integers(0, 8),
)
def test_frames_come_back_also_elsewhere_and_when_others_are_gone(
    rows: list[tuple[Frame | None, Frame | None]], split: int, gone: int
) -> None:
    there = Frames()
    with_file = Spool()
    here = Frames(with_file)
    packed = [packed_frames(filter(None, row)) for row in rows]
    places = there.extend(packed[:split])
    here.append(there.since(0))
    taken = there.end
    there.release(taken)
    places += there.extend(packed[split:])
    here.append(there.since(taken))
    here.release(places[gone] if gone < len(places) else 0)
    assert len(places) == len(rows)
    for index, row in list(enumerate(rows))[gone:]:
        wanted = [frame for frame in row if frame is not None]
        assert here.get(places, index, len(wanted), _read) == wanted
        if places[index] >= taken:
            assert there.get(places, index, len(wanted), _read) == wanted
    with_file.close()


def test_a_part_of_no_file_is_kept_as_one_of_the_first() -> None:
    kept = Frames()
    part = Part(-1, 7, 4, 9)
    for parts in ((part,), (part, part)):
        places = kept.extend([packed_frames([Frame(b"", 0, 0, 1, 2, parts)])])
        (found,) = kept.get(places, 0, 1, _read)
        assert found.parts == tuple(each._replace(file=0) for each in parts)


def test_a_heap_forgets_from_the_front() -> None:
    heap = Heap()
    assert [heap.write(b"abc"), heap.write(b"defg")] == [0, 3]
    heap.release(3)
    heap.release(1)
    assert heap.read(3, 4) == b"defg"
    assert heap.written == 7


def test_many_bytes_are_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "IN_MEMORY", 10)
    some = Overflow()
    pieces = [bytes([number]) * 4 for number in range(20)]
    places = [some.write(each) for each in pieces]
    assert [some.read(at, 4) for at in places] == pieces
    assert [some.read(at, 8) for at in places[:-1]] == list(map(b"".join, pairwise(pieces)))
    assert len(some._heap._data) <= 10
    assert some.written == 80


@given(st.lists(frames(), max_size=6), st.booleans())
def test_frames_out_of_tls_come_back_without_a_file(found: list[Frame], on_disk: bool) -> None:
    spool = Spool()
    kept = Frames(plaintext=lambda: spool) if on_disk else Frames()
    places = kept.extend([packed_frames([kept.decrypted(frame)]) for frame in found])
    for index, frame in enumerate(found):
        (again,) = kept.get(places, index, 1, _no_file)
        assert again._replace(parts=()) == frame._replace(parts=())
        assert [part.packet for part in again.parts] == [part.packet for part in frame.parts]
    spool.close()


def _no_file(file: int, at: int, size: int) -> bytes:
    raise AssertionError("nothing is read from files")


# --- the declaration of a row's columns -----------------------------------------------------------


SAMPLE = SAMPLES / "transactions.pcap"


def test_every_attribute_of_a_row_is_a_declared_column() -> None:
    assert [each.name for each in columns_of(Row)] == list(Row.__dataclass_fields__)
    assert all(each.column.text for each in columns_of(Row))


def test_the_document_is_printed_from_the_columns() -> None:
    assert TARGET.read_text() == document()


def test_json_and_tables_have_the_declared_columns_and_no_others() -> None:
    row, exchange = pairs_of(SAMPLE)[0]
    declared = [name for each in columns_of(Row) for name in each.json]
    assert list(to_json(row)) == ["schema", *declared]
    names = [column.name for column in EXCHANGES.columns]
    added = {each.col.name for each in ADDED}
    tabled = [name for each in columns_of(Row) for name in each.table]
    assert [name for name in names if name not in added] == tabled
    assert len(exchange_values(row, exchange)) == len(names)


def test_a_row_of_nothing_has_the_empty_value_of_each_kind() -> None:
    row = blank(number=7, id="", time_ns=0, connection=0, client_address="", broker_address="")
    assert to_json(row)["number"] == 7
    for each in columns_of(Row):
        if each.column.kind.many:
            assert getattr(row, each.name) == ()
    assert to_json(row)["topics"] == ()
    assert to_json(row)["wait_ms"] == 0


def test_sessions_store_what_a_part_tells_and_give_it_back() -> None:
    with open_capture([SAMPLE]) as capture:
        session = session_of(capture)
        stored = [each.name for each in columns_of(Row) if each.column.told_by]
        assert {*stored} <= {*packing.COLUMNS}
        for index in range(len(session)):
            whole, quick = session.row(index), row_of_columns(session, index)
            # What errors are about is in the message alone.
            assert [each[:3] for each in quick.errors] == [each[:3] for each in whole.errors]
            assert replace(quick, errors=whole.errors) == whole


def test_every_column_that_is_asked_for_is_a_field_with_a_getter() -> None:
    for name, (_, column) in COLUMNS.items():
        field = field_named(name)
        assert field.type == column.kind.filter
        assert field.get is not None


def test_the_name_of_a_column_stands_where_it_is_declared_and_collected() -> None:
    """One column that no other code asks for by name shows where one has to be added."""
    word = "generations"
    places = {
        str(path.relative_to(ROOT))
        for package in ("analyzer", "tui", "proxy")
        for path in (ROOT / package).rglob("*.py")
        if word in path.read_text().replace(".generations()", "")
        and not {"commands", "statistics", "findings", "replay", "serve"} & {*path.parts}
    }
    assert places == {"analyzer/bodies/facts.py", "analyzer/exchanges/rows.py"}
