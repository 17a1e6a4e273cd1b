"""The declaration of a row's columns, and that nothing beside it lists them."""

from dataclasses import replace

from docs.print_json import TARGET, document
from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, blank, to_json
from kafkascope.analyzer.filter.fields import COLUMNS, field_named
from kafkascope.analyzer.pipeline.tables.schemas import ADDED, EXCHANGES
from kafkascope.analyzer.pipeline.tables.values import exchange_values
from kafkascope.analyzer.session import packing
from kafkascope.analyzer.session.rows import row_of_columns
from tests.kit.captures import session_of
from tests.kit.samples import ROOT, SAMPLES, pairs_of

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
