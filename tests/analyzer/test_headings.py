"""One name for one thing: columns of all tables, filters, screens and the library."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import kafkascope.analyzer.commands as commands
import kafkascope.analyzer.findings as findings
import kafkascope.analyzer.statistics as statistics
import kafkascope.tui.screens as screens
from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter.fields import field_named
from kafkascope.analyzer.headings import HEADINGS, heading
from kafkascope.analyzer.render.listing import columns_of as list_columns
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.simple import PARTS
from kafkascope.library.exchange import Exchange
from kafkascope.library.values import Attribute

OTHER_NAMES = {
    "client": "client_id or client_address",
    "host": "client_address",
    "broker": "broker_address",
    "n": "requests",
    "exchanges": "requests",
    "producer": "producer_id",
    "epoch": "producer_epoch, leader_epoch or controller_epoch",
    "epochs": "producer_epochs",
    "session": "zk_session or session_timeout",
    "conn": "connection",
    "begin": "time",
    "size": "bytes",
    "told": "advertised",
    "beats": "heartbeats",
}
"""Names of what has another one in exchange/1, record/1 or connections/1."""
OTHER_THINGS = {
    "Journeys.COLUMNS: producer": "the producing application, as `map` names it: no producer_id",
}
"""Columns with one of these names that are something else."""
NO_FIELDS = {
    "exchange_id": "where its first byte is: `number` finds it in a capture",
    "counterpart": "exchange_id of the other line about a request: `forwarded` finds one of both",
    "client_address": "client.ip and client.port",
    "reason": "a sentence: `state`, `undecoded`",
    "implied_topics": "`topic` finds them",
    "notes": "sentences",
}
"""Names of exchange/1 that no filter has, and what finds the same."""
ONLY_SCREENS = {
    *("consequences", "lag_over_time"),
    *("node", "what"),
    *("age", "in_flight", "unsent", "stopped", "held", "rule", "summary", "side", "matched"),
    *("fired", "label", "value"),
}
"""Columns that only a screen has: trees, bars, and the state of a running proxy."""


def declared(*packages: object) -> Iterator[tuple[str, Column]]:
    """Yield all columns that modules declare, with the place."""
    for package in packages:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):  # type: ignore[attr-defined]
            module = importlib.import_module(found.name)
            owners = [module, *(each for _, each in inspect.getmembers(module, inspect.isclass))]
            for owner in owners:
                for name, value in vars(owner).items():
                    here = value if isinstance(value, tuple | list) else [value]
                    if not isinstance(value, Column):
                        yield from (
                            (f"{owner.__name__}.{name}", each)
                            for each in here
                            if isinstance(each, Column)
                        )
                    else:
                        yield f"{owner.__name__}.{name}", value


TABLES = [
    *declared(statistics, findings, commands),
    *(("by", c) for p in PARTS.values() for c in p),
]


def test_no_column_has_another_name_for_what_has_one() -> None:
    assert len(TABLES) > 300
    wrong = {f"{where}: {column.name}" for where, column in TABLES if column.name in OTHER_NAMES}
    assert wrong == set(OTHER_THINGS)


def test_headings_are_made_of_the_words_of_names() -> None:
    for _, column in [*TABLES, *declared(screens)]:
        words = column.title.lower().replace(" ", "_")
        assert words == column.name.lower() or column.name in HEADINGS, column.name
        assert column.title[0].isupper() or column.title[0] in "pz", column.title
    for name, title in HEADINGS.items():
        if name != "number":
            assert set(title.lower().split()) <= set(name.split("_"))


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("client_id", "Client"),
        ("request_bytes", "Request bytes"),
        ("api", "API"),
        ("excess_p95", "Excess p95"),
        ("transactional_id", "Transactional ID"),
    ],
)
def test_some_headings(name: str, title: str) -> None:
    assert heading(name) == title


def test_each_name_of_exchange_1_is_a_field() -> None:
    for named in columns_of(Row):
        for name in named.json:
            if not name.endswith("_ns"):
                assert (field_named(name) is None) == (name in NO_FIELDS), name
    assert field_named("latency_ms") is field_named("latency")
    assert field_named("kafka.topics") is field_named("topic")
    assert field_named("zk_session") is field_named("zk.session")


def test_columns_of_ls_are_fields_with_headings() -> None:
    for column in list_columns((), Times()):
        assert column.name == "result" or field_named(column.name) is not None
        words = [] if column.name == "number" else column.title.lower().split()
        parts = column.name.replace(".", "_").split("_")
        assert all(any(part.startswith(word) for part in parts) for word in words), column.title


def test_screens_have_the_columns_of_tables() -> None:
    known = {column.name for _, column in TABLES}
    assert {column.name for _, column in declared(screens)} <= known | ONLY_SCREENS


def test_attributes_of_the_library_are_columns_of_rows() -> None:
    names = {named.name for named in columns_of(Row)}
    attributes = {name for name, value in vars(Exchange).items() if isinstance(value, Attribute)}
    # `records` are the records themselves there.
    assert attributes - names == {"record_count", "batch_count"}
