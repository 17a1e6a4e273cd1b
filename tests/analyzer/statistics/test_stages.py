"""Statistics of the stages of exchanges: the numbers of their rows, and nothing unknown counts."""

import json

import pytest

from kafkascope.analyzer.exchanges.rows import Row, blank
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.rates import STAGES, Rates
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.statistics.traffic import Latency
from kafkascope.captures.model import Connection, Endpoint
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from tests.analyzer.filter.decoded.orders import avro, payloads, produced, user
from tests.kit.counting import counted, pairs_in, traffic
from tests.kit.run import objects
from tests.kit.samples import CAPTURES
from tests.kit.schemas import SAMPLES, capture
from tests.kit.wire import MS, Wire, beat, heartbeat

ENDS = Endpoint("10.0.0.4", 40_000), Endpoint("10.0.0.9", 9092)
FILES = pytest.mark.parametrize("name", ["nagle.pcap.gz", "throttled.pcap.gz", "midstream.pcap.gz"])


def test_a_slice_of_one_exchange_counts_as_others_do() -> None:
    """Counts are numbers: a report had False where one exchange was alone in its second."""
    pairs = pairs_in(Wire().client(heartbeat(1)).broker(beat(1)).events)
    (line,) = counted(Rates(1000 * MS, 10), pairs).rows()
    assert [type(line[name]) for name in ("requests", "failed", "unanswered")] == [int] * 3


def values(row: Row) -> dict[str, int | None]:
    serving = None if row.serving_ns is None else max(0, row.serving_ns - row.wait_ns)
    found = row.request_transfer_ns, serving, row.response_transfer_ns, row.rtt_ns
    return dict(zip(STAGES, found, strict=True))


@FILES
def test_percentiles_are_those_of_the_rows(name: str) -> None:
    pairs, _ = traffic(name, CAPTURES)
    rows = [row for row, _ in pairs if row.latency_ns is not None]
    for line in counted(Latency(), pairs).rows(by=("api",)):
        for stage in STAGES:
            known = [values(row)[stage] for row in rows if row.api == line["api"]]
            there = sorted(each for each in known if each is not None)
            assert line[f"{stage}_max"] == (there[-1] if there else None)
            if there:
                median = there[(len(there) - 1) // 2]
                assert median <= line[f"{stage}_p50"] <= max(median * 33 // 32 + 1, median)


@FILES
def test_rates_have_the_means_of_exchanges_with_all_stages(name: str) -> None:
    pairs, _ = traffic(name, CAPTURES)
    known = [values(row) for row, _ in pairs if row.serving_ns is not None]
    (line,) = counted(Rates(10**18), pairs).rows()
    for stage in STAGES:
        total = sum(each[stage] or 0 for each in known)
        assert line[stage] == (total // len(known) if known else None)


def connected(*times_ms: float) -> Connection:
    """A connection with a handshake at the client: SYNs, then the SYN-ACK and its ACK."""
    connection = Connection(0, *ENDS, 0)
    *syns, answered, completed = times_ms
    for each in syns:
        connection.path.syn(int(each * MS), 7)
    connection.path.syn_ack(int(answered * MS), 7)
    connection.path.established(int(completed * MS))
    connection.handshake_ns = int((completed - syns[0]) * MS)
    return connection


def test_a_round_trip_has_no_lost_syn() -> None:
    assert connected(0, 80, 80.1).round_trip_ns == int(80.1 * MS)
    lost = connected(0, 1000, 1080, 1080.1)
    assert (lost.round_trip_ns, lost.handshake_ns) == (int(80.1 * MS), int(1080.1 * MS))


def test_without_a_path_it_is_the_handshake() -> None:
    connection = Connection(0, *ENDS, 0, handshake_ns=5 * MS)
    assert connection.round_trip_ns == 5 * MS
    assert Connection(0, *ENDS, 0).round_trip_ns is None


# --- schemas of topics ----------------------------------------------------------------------------


ROW = blank(number=0, id="", client_id="c", client_address="h:1", time_ns=1, wait_ns=0, api_key=0)


def schemas_told(with_: Payloads | None) -> list[str] | None:
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
    assert schemas_told(Payloads(KnownSchemas())) == unknown
    assert schemas_told(payloads()) == ["key id 8 (t-key)", "value id 7 (t-value)", unknown[2]]


def test_without_schemas_no_batch_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("kafkascope.analyzer.statistics.topics._name_schemas")
    assert schemas_told(None) is None


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
