"""Which schemas a topic carries, for those who ask."""

import json

import pytest

from kafkascope.analyzer.exchanges.rows import blank
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from tests.analyzer.filter.decoded.orders import avro, payloads, produced, user
from tests.kit.run import objects
from tests.kit.schemas import SAMPLES, capture

ROW = blank(number=0, id="", client_id="c", client_address="h:1", time_ns=1, wait_ns=0, api_key=0)


def counted(with_: Payloads | None) -> list[str] | None:
    statistic = Topics()
    statistic.payloads = with_
    exchange = produced((user("{}"), avro()), (None, user("{}", 9)), (b"k", b"text"))
    statistic.add(ExchangeBatch.of(ROW, exchange))
    again = Topics()
    again.payloads = with_
    (line,) = again.load(json.loads(json.dumps(statistic.dump()))).rows()
    found: list[str] | None = line["schemas"]
    return found


def test_a_topic_names_its_schemas() -> None:
    unknown = [f"{kind} (unknown)" for kind in ("key id 8", "value id 7", "value id 9")]
    assert counted(Payloads(KnownSchemas())) == unknown
    assert counted(payloads()) == ["key id 8 (t-key)", "value id 7 (t-value)", unknown[2]]


def test_without_schemas_no_batch_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("kafkascope.analyzer.statistics.topics._name_schemas")
    assert counted(None) is None


ORDERS = ["key id 1 (orders-key)", "value id 2 (orders-value)", "value id 3 (orders-value)"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], None),
        (["--no-schemas", "--columns", "topic,schemas"], None),
        (["--columns", "topic,schemas"], ORDERS),
        (["--schemas", str(SAMPLES / "schemas" / "avro-registry")], ORDERS),
    ],
)
@pytest.mark.parametrize("table", ["topics", "partitions"])
def test_the_command_tells_them_where_it_is_asked(
    table: str, words: list[str], wanted: list[str] | None
) -> None:
    lines = objects("stats", table, capture("avro-registry"), *words, "--json")
    assert next(each["schemas"] for each in lines if each["topic"] == "orders") == wanted
