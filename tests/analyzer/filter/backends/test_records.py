"""Filters that choose among the records of an exchange."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.records import record_lines
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.filter.backends.records import compile_records
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.model import Exchange
from kafkascope.dissectors.codec.jsonform import loads
from tests.analyzer.filter.decoded import orders
from tests.analyzer.filter.decoded.orders import avro, capture_of_orders, known, produced, user
from tests.kit import run
from tests.kit.samples import phrases
from tests.kit.schemas import SAMPLES, capture


def order(amount: str, sku: str) -> bytes:
    return avro(orders.VALUE | {"amount": amount, "items": [{"sku": sku, "n": 1}]})


def chosen_of(text: str, exchange: Exchange) -> list[int] | None:
    """The places of the chosen records; None where the exchange is not chosen."""
    names = Context().names
    made = compile_records(text, lambda: names, known())
    if not made(row_of(exchange, names), exchange):
        return None
    lines = b"".join(record_lines(exchange, names, [], None, made.chosen))
    return [loads(line)["offset"] - 5 for line in lines.splitlines()]


PAIRS = [
    (user('{"user-id":1}'), order("1.00", "A-1")),
    (user('{"user-id":2}'), order("200.00", "A-2")),
    (b"plain", b"text"),
    (None, None),
    (user('{"user-id":5}'), user("{}", 9)),
    (user('{"user-id":5}'), order("200.00", "B-1")),
]
EVERY = list(range(len(PAIRS)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("record.value.amount > 100", [1, 5]),
        ("not record.value.amount > 100", [0, 2, 3, 4]),
        ("record.value.amount > 100 and record.value.items.sku contains A-", [1]),
        ("record.value.amount < 100 and record.value.items.sku == B-1", None),
        ('record.key."user-id" == 5 or record.key == plain', [2, 4, 5]),
        ("schema.id == 9", [4]),
        ("schema.error == unknown-schema", [4]),
        ("schema.type == shop.Order", [0, 1, 5]),
        ("record.value", [0, 1, 2, 4, 5]),
        ("record.offset == 7", [2]),
        ("offset in {5..6}", [0, 1]),
        ("topic == t", EVERY),
        ("topic == t and record.offset > 8", [4, 5]),
        ("topic == other", None),
        ("partition == 3 and codec == none", EVERY),
        ("partition == 4", None),
        # of the exchange: all records, or none
        ("api == Produce", EVERY),
        ("records > 3", EVERY),
        ("api == Fetch or record.value == text", [2]),
        ("api == Fetch and record.value == text", None),
        ("record.header.key == x", None),
        ('"produce"', EVERY),
    ],
)
def test_a_filter_chooses_the_records_for_which_it_holds(
    text: str, expected: list[int] | None
) -> None:
    assert chosen_of(text, produced(*PAIRS)) == expected


_LEAVES = """
    record.value.amount > 100   record.key."user-id" == 5
    all record.value.items.sku contains A-   record.value.count != 3
    record.value contains text   record.key   schema.error == unknown-schema
    schema.id in {7, 9}   record.size > 60   topic == t   partition == 4   api == Produce
    latency > 1h   request.acks == -1   codec == none
"""
_FILTERS = st.recursive(
    st.sampled_from(phrases(_LEAVES)),
    lambda inner: st.one_of(
        inner.map(lambda one: f"not ({one})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=6,
)


@given(_FILTERS, st.lists(st.sampled_from(PAIRS), min_size=1, max_size=4))
def test_a_record_is_chosen_as_an_exchange_that_holds_it_alone(
    text: str, pairs: list[tuple[bytes | None, bytes | None]]
) -> None:
    exchanges = compile_filter(text, known())
    names = Context().names
    alone = [produced(pair) for pair in pairs]
    expected = [i for i, each in enumerate(alone) if exchanges(row_of(each, names), each)]
    assert (chosen_of(text, produced(*pairs)) or []) == expected


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("avro-registry", "record.value.amount > 100 and record.value.gift",
         lambda one: float(of(one).get("amount", 0)) > 100 and "gift" in of(one)),
        ("avro-registry", 'record.key.region == "EU" and not record.value',
         lambda one: of(one, "key").get("region") == "EU" and one["value"] is None),
        ("protobuf-json-schemas-topic", "schema.type == shop.Order and topic == p-orders",
         lambda one: one["topic"] == "p-orders" and "value_schema" in one),
        (
            "apicurio-serdes",
            "api == Fetch and record.offset == 1 and topic == ap-default",
            lambda one: (
                one["source"] == "fetch" and one["offset"] == 1 and one["topic"] == "ap-default"
            ),
        ),
    ],
)  # fmt: skip
def test_records_of_real_captures_are_those_that_hold(
    name: str, text: str, holds: Callable[[dict[str, Any]], bool]
) -> None:
    given = ["records", capture(name), "--json", "--schemas", SAMPLES / "schemas" / name]
    found = run.objects(*given, "-Y", text)
    every = run.objects(*given)
    assert found == [one for one in every if holds(one)]
    assert 0 < len(found) < len(every)


def of(one: dict[str, Any], side: str = "value") -> dict[str, Any]:
    found = one.get(f"{side}_decoded")
    return found if isinstance(found, dict) else {}


def test_a_table_of_records_has_those_that_match(tmp_path: Path) -> None:
    path = capture_of_orders(tmp_path / "c.pcap")
    out = tmp_path / "tables"
    text = "record.value contains text or record.offset == 6"
    run.output("spark", path, "-o", out, "--records", "-q", "-Y", text)
    made = pq.read_table(out / "records")
    expected = [
        (one["offset"], one["value"]) for one in run.objects("records", path, "--json", "-Y", text)
    ]
    assert len(expected) == 2
    values = map(json.loads, made["value"].to_pylist())
    assert sorted(zip(made["offset"].to_pylist(), map(str, values), strict=True)) == sorted(
        (offset, str(value)) for offset, value in expected
    )


ORDERS = "record.value.amount > 100"


def test_commands_show_the_records_that_match(tmp_path: Path) -> None:
    capture, schemas = capture_of_orders(tmp_path / "c.pcap"), orders.schema_folder(tmp_path / "s")
    given = [capture, "--schemas", schemas]

    def lines(*options: str) -> list[str]:
        return run.output("records", *given, *options).splitlines()

    assert len(lines("--json")) == 4
    (found,) = lines("--json", "-Y", ORDERS)
    assert json.loads(found)["value_decoded"]["id"] == "17"
    assert lines("--format", "csv", "--columns", "value.id", "-Y", ORDERS) == ["value.id", "17"]
    assert len(lines("--json", "-Y", f"not {ORDERS}")) == 3
    # -c counts exchanges of which a record is shown
    assert len(lines("--json", "-c", "1", "-Y", "record.value == text")) == 1
    assert lines("--json", "-Y", f"{ORDERS} and api == Fetch") == []
    for name in ("x.jsonl", "x.csv", "x.parquet"):
        out = tmp_path / name
        run.output("export", *given, "--table", "records", "-Y", ORDERS, "-o", out)
        if name.endswith("parquet"):
            values = pq.read_table(out)["value_decoded"].to_pylist()
        else:
            rows = out.read_text().splitlines()
            of_csv = name.endswith("csv")
            objects = csv.DictReader(rows) if of_csv else map(json.loads, rows)
            values = [each["value_decoded"] for each in objects]
            values = values if of_csv else list(map(json.dumps, values))
        assert [json.loads(each)["id"] for each in values] == ["17"]
    counted = run.objects("schemas", *given, "-Y", ORDERS, "--json")
    (used,) = [each for each in counted if each["values"]]
    assert (used["id"], used["values"]) == ("id 7", 1)
