"""Both back ends of a filter say the same: over whole columns, and one exchange after the other."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from unittest.mock import Mock, patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.pairs import Rows
from kafkascope.analyzer.exchanges.rows import SOURCES, Row, RowError, is_flexible, renamed, row_of
from kafkascope.analyzer.filter.backends import sources
from kafkascope.analyzer.filter.bind import bind, cost
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.fields import FIELDS, NOTED, STATES, Field, Type
from kafkascope.analyzer.filter.getters import Values
from kafkascope.analyzer.filter.language import Known, compile_filter, compile_query
from kafkascope.analyzer.model import Exchange, ZooKeeperFacts
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.inputs.spool import NotKept, Spool
from kafkascope.captures.model import Connection, Endpoint, TlsSummary
from kafkascope.dissectors.reference.codes import error_name
from kafkascope.dissectors.values import Uuid
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import Assigned, KnownSchemas
from kafkascope.schemas.model import Schema
from tests.kit.captures import session_of
from tests.kit.samples import ROOT, row_with
from tests.matrix import mostly_slow

SAMPLES = sorted(ROOT.joinpath("captures", "samples").glob("*.pcap*"))
SCHEMAS: Final = Payloads(
    # Of these values few carry an id: all that are JSON are taken as if they fitted.
    KnownSchemas(
        assigned={
            (topic, "value"): Assigned(Schema("json", '{"title":"orders"}'))
            for topic in ("orders", "demo", "payments", "test", "audit")
        }
    )
)
KNOWN: Final = Known(
    {1, 3, 500},
    {2: "slow one", 3: "x"},
    {3: ("rebalance",), 4: ("a", "b")},
    decoding=Decoding(lambda: SCHEMAS, lambda: TopicNames()),
)

VALUES: Final[dict[Type, list[str]]] = {
    "int": ["0", "1", "3", "-1", "0x10", "9092", "4711", "99999999999999999999"],
    "size": ["0", "96", "1KB", "1MiB"],
    "duration": ["0", "1ms", "250us", "1s", "500"],
    "time": ["12:03", "00:00:00", "2026-11-20", "2026-11-21T05:00:00Z", "1795176187.114"],
    "string": ["orders", "a", '""', "none", "gzip", "kafka-python", "10.0.0.1:9092", "rebalance"],
    "bool": ["true", "false"],
    "address": ["10.0.0.0/8", "127.0.0.1", "::1", "10.0.0.4", "fd00::/8"],
    "api": ["Fetch", "Produce", "18", "ApiVersions", "999"],
    "error": ["NONE", "3", "NOT_LEADER_OR_FOLLOWER", "REBALANCE_IN_PROGRESS", "-1"],
    "state": list(STATES),
    "release": ["2.3", "4.0.0", "4.1", "0.10.2"],
    "uuid": ["AAAAAAAAAAAAAAAAAAAAAA", "AAECAwQFBgcICQoLDA0ODw"],
    "body": ["0", "1", "orders"],
    "bytes": ["00:00", "a", "value", "key-1"],
    "value": ["0", "17", "orders", "2026-11-20", '"5"'],
}
NUMERIC: Final = ("==", "!=", "===", "!==", "<", "<=", ">", ">=")
TEXTUAL: Final = ("==", "!=", "===", "!==", "contains", "~", "<", ">=")
OPERATORS: Final[dict[Type, tuple[str, ...]]] = dict.fromkeys(VALUES, NUMERIC) | {
    "string": TEXTUAL,
    "api": (*NUMERIC, "contains", "~"),
    "error": (*NUMERIC, "contains", "~"),
    "address": (*NUMERIC, "contains", "~"),
    "release": (*NUMERIC, "contains", "~"),
    "bytes": TEXTUAL,
    "value": TEXTUAL,
    "bool": ("==", "!=", "===", "!=="),
    "state": ("==", "!=", "contains", "~"),
    "uuid": ("==", "!=", "contains", "~"),
}
ORDERED: Final = frozenset({"int", "size", "duration", "string", "release", "error"})


@st.composite
def comparisons(draw: st.DrawFn, fields: tuple[Field, ...] = FIELDS) -> str:
    """One comparison of the language, of any field and operator that go together."""
    field = draw(st.sampled_from(fields))
    values = st.sampled_from(VALUES[field.type])
    how = draw(st.sampled_from(["has", "compare", "compare", "in"]))
    if how == "has":
        return field.name
    front = draw(st.sampled_from(["", "", "any ", "all "]))
    if how == "compare":
        operator = draw(st.sampled_from(OPERATORS[field.type]))
        return f"{front}{field.name} {operator} {draw(values)}"
    items = draw(st.lists(values, min_size=1, max_size=3))
    if field.type in ORDERED and draw(st.booleans()):
        items.append(f"{draw(values)}..{draw(values)}")
    return f"{front}{field.name} in {{{', '.join(items)}}}"


EXTRA: Final = (
    '"fetch"',
    '"ok"',
    '"orders"',
    "time in {00:00..12:00:01}",
    "time in {2026-11-20..2026-11-21T05:10:00Z}",
    "client.ip in {10.0.0.1..10.0.0.9}",
    "request.max_wait_ms > 100",
    "response.error_code == 0",
    "body.name contains o",
    "record.value.id > 3",
    'all record.value."id" != x',
)


def joined(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaves | st.sampled_from(EXTRA),
        lambda parts: st.one_of(
            parts.map("not ({})".format),
            st.tuples(parts, parts).map(lambda two: f"({two[0]}) and ({two[1]})"),
            st.tuples(parts, parts).map(lambda two: f"({two[0]}) or ({two[1]})"),
        ),
        max_leaves=4,
    )


class Told:
    """A session and the same as rows. No dataclass: hypothesis would print it all."""

    def __init__(self, session: Session, rows: list[Row], exchanges: list[Exchange]) -> None:
        self.session = session
        self.rows = rows
        self.exchanges = exchanges


def _read(file: int, at: int, size: int) -> bytes:
    raise AssertionError("no bytes are wanted")


SMALL: Final = ("rebalance.pcap", "sasl-old.pcap", "zookeeper.pcap")
"""Samples that are read fast and differ most."""


@pytest.fixture(
    scope="module",
    params=mostly_slow(SAMPLES, lambda path: path.name in SMALL),
    ids=lambda path: path.name,
)
def sample(request: pytest.FixtureRequest) -> Iterator[Told]:
    with open_capture([request.param], spool=Spool()) as capture:
        session = session_of(capture)
        exchanges = [session.exchange(index) for index in range(len(session))]
        yield Told(session, [row_of(e, capture.context.names) for e in exchanges], exchanges)


def one_by_one(text: str, told: Told) -> list[bool]:
    single = compile_filter(text, KNOWN)
    pairs = zip(told.rows, told.exchanges, strict=True)
    return [single(row, exchange) for row, exchange in pairs]


def test_every_field_of_columns_has_a_source() -> None:
    homes = {*sources.NUMBERS, *sources.LISTS, "frame", *NOTED}
    assert {field.name for field in FIELDS if field.cost != "b"} == homes


def test_both_agree_on_every_field(sample: Told) -> None:
    for field in FIELDS:
        for text in (field.example, field.name, f"not {field.name}"):
            assert compile_query(text, KNOWN).mask(sample.session).tolist() == one_by_one(
                text, sample
            ), text


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(text=joined(comparisons()))
def test_both_agree_on_any_filter(sample: Told, text: str) -> None:
    assert compile_query(text, KNOWN).mask(sample.session).tolist() == one_by_one(text, sample)


# --- rows that no capture has --------------------------------------------------------------------

ENDS: Final = (Endpoint("10.0.0.4", 51422), Endpoint("10.0.1.2", 9092), Endpoint("fd00::2", 1))
texts = st.sampled_from(["", "orders", "a", "kafka-python 2.0.2", "librdkafka 2.6.1", "none"])
names = st.lists(st.sampled_from(["orders", "a", "AAECAwQF?"]), max_size=2, unique=True).map(tuple)
numbers = st.lists(st.sampled_from([-1, 0, 1, 3, 4711]), max_size=2, unique=True).map(tuple)
versions, suites = st.sampled_from(["", "TLS 1.2"]), st.sampled_from(["", "TLS_AES_128_GCM_SHA256"])
amounts = st.none() | st.sampled_from([0, 1, 96, 1000, 2**40])


AMOUNTS = """
    request_bytes response_bytes request_transfer_ns serving_ns response_transfer_ns rtt_ns records
    zero_window_ns broker_request_queue_ns broker_local_ns broker_remote_ns broker_send_ns
    broker_response_queue_ns
"""
ZNODES = st.builds(
    ZooKeeperFacts,
    st.none() | st.sampled_from([-1, 7]),
    st.none() | texts,
    texts,
    st.none() | st.sampled_from([-1, 32]),
)
OF_BOTH: Final = {
    "state": st.sampled_from(STATES),
    "correlation_id": st.none() | st.sampled_from([-1, 0, 4711]),
    "client_id": st.none() | texts,
    "software": texts,
    "user": texts,
    "tls": st.none() | st.builds(TlsSummary, versions, suites, st.booleans(), texts),
    "zookeeper": st.none() | ZNODES,
}
OF_ROW: Final = {
    **dict.fromkeys(AMOUNTS.split(), amounts),
    **dict.fromkeys(("topics", "groups", "members", "transactional_ids", "implied_topics"), names),
    **dict.fromkeys(("partitions", "generations", "producer_ids", "producer_epochs"), numbers),
    "time_ns": st.sampled_from([0, 1_795_176_187_114_000_000, 10**18]),
    "latency_ns": st.none() | st.sampled_from([0, 3_000_000, 2_000_000_000]),
    "retransmissions": st.none() | st.sampled_from([0, 1, 3]),
    "stalled_by": st.none() | st.sampled_from(["client", "broker", "network"]),
    "capture_point": st.none() | st.sampled_from(["client", "broker", "between"]),
    "wait_ns": st.sampled_from([0, 1_000_000]),
    "throttle_ms": st.sampled_from([0, 1, 500]),
    "topic_ids": st.sampled_from([(), (Uuid(range(16)),), (Uuid(bytes(16)),)]),
    "acks": st.none() | st.sampled_from([-1, 0, 1]),
    "codecs": st.sampled_from([(), ("none",), ("gzip", "none")]),
    "batches": st.none() | st.sampled_from([0, 1, 3]),
    "source": st.sampled_from(SOURCES),
    "listener": texts,
    "forwarded": st.booleans(),
}


@st.composite
def made(draw: st.DrawFn) -> list[tuple[Exchange, Row]]:
    """Exchanges without bytes, and rows with all kinds of values."""
    found = []
    ends = [draw(st.permutations(ENDS)) for _ in range(2)]
    connections = [Connection(7 * at, a, b, 0) for at, (a, b, _) in enumerate(ends)]
    for number in range(1, draw(st.integers(0, 6)) + 1):
        connection = draw(st.sampled_from(connections))
        client = draw(st.sampled_from([connection.a, connection.b]))
        broker = connection.b if client is connection.a else connection.a
        key = draw(st.none() | st.sampled_from([0, 1, 11, 18, 999]))
        version = None if key is None else draw(st.sampled_from([0, 1, 4, 17]))
        both = draw(st.fixed_dictionaries(OF_BOTH)) | {"number": number, "id": "00" * 8}
        both |= {"api_key": key, "api": "" if key is None else f"Api {key}", "api_version": version}
        exchange = Exchange(
            **both, connection=connection, client=client, broker=broker, request=None, response=None
        )
        codes = draw(st.lists(st.sampled_from([-1, 3, 6, 27]), max_size=2))
        row = row_with(
            **both,
            **draw(st.fixed_dictionaries(OF_ROW)),
            connection=connection.number,
            client_address=str(client),
            broker_address=str(broker),
            flexible=is_flexible(key, version),
            errors=tuple(
                RowError(code, error_name(code), top=at == 0) for at, code in enumerate(codes)
            ),
            expected=bool(codes) and draw(st.booleans()),
        )
        found.append((exchange, row))
    return found


def _add(session: Session, exchange: Exchange, row: Row) -> None:
    """Add an exchange as if this were its row."""
    with patch.object(Rows, "row", lambda *_: row):
        session.add(exchange)


IN_COLUMNS: Final = tuple(field for field in FIELDS if field.cost != "b")


@settings(deadline=None)
@given(pairs=made(), text=joined(comparisons(IN_COLUMNS)), late=st.booleans())
def test_both_agree_on_rows_of_any_kind(
    pairs: list[tuple[Exchange, Row]], text: str, late: bool
) -> None:
    bound = bind(text)
    if bound is not None and cost(bound) == "b":
        return  # these have no message to be read
    session = Session(Context(), _read)
    for exchange, row in pairs:
        _add(session, exchange, row)
    if late:
        session.context.names.learn(bytes(range(16)), "orders")
    query, single = compile_query(text, KNOWN), compile_filter(text, KNOWN)
    wanted = [single(renamed(row, session.context.names)) for _, row in pairs]
    assert query.cost == "fast"
    assert query.mask(session).tolist() == wanted
    # Piece by piece, as a growing capture is filtered.
    half = len(pairs) // 2
    pieces = [*query.mask(session, 0, half).tolist(), *query.mask(session, half).tolist()]
    assert pieces == wanted
    assert [query.decide(session, index) for index in range(len(pairs))] == wanted


def test_a_session_may_grow_behind_a_query() -> None:
    session = Session(Context(), _read)
    query = compile_query("frame or number > 0 or topic or client.ip == 10.0.0.0/8")
    assert query.mask(session).tolist() == []
    # Views of columns that stay would keep these from growing.
    for path in SAMPLES[:2]:
        with open_capture([path]) as capture:
            for exchange in capture.exchanges():
                session.add(exchange)
        assert query.mask(session).all()
        assert len(query.mask(session)) == len(session)


def test_names_that_came_late_are_found() -> None:
    session = Session(Context(), _read)
    query = compile_query("topic == orders")
    for exchange, row in _with_topic("AAECAwQF?"):
        _add(session, exchange, row)
    assert query.mask(session).tolist() == [False]
    session.context.names.learn(bytes(range(16)), "orders")
    assert query.mask(session).tolist() == [True]


def test_topics_that_a_fetch_session_implies_are_found() -> None:
    ((exchange, row),) = _with_topic("payments")
    row = replace(row, topics=(), implied_topics=("payments",))
    session = Session(Context(), _read)
    _add(session, exchange, row)
    assert compile_query("topic == payments").mask(session).tolist() == [True]
    assert compile_filter("topic == payments")(row)


def _with_topic(topic: str) -> list[tuple[Exchange, Row]]:
    with open_capture([SAMPLES[0]]) as capture:
        exchange = next(capture.exchanges())
        row = row_of(exchange, capture.context.names)
    return [(exchange, replace(row, topics=(topic,), implied_topics=()))]


def test_messages_are_read_only_where_the_answer_depends_on_them() -> None:
    with open_capture([SAMPLES[0]], spool=Spool()) as capture:
        session = session_of(capture)
        query = compile_query("request.max_wait_ms >= 0 and api == Fetch and number < 50")
        assert query.cost == "decodes"
        yes, maybe = query.settle(session)
        assert not yes.any()
        fetches = compile_query("api == Fetch and number < 50").mask(session)
        assert 0 < maybe.sum() == fetches.sum() < len(session)
        assert query.mask(session).sum() == fetches.sum()
        found = compile_query('"fetch"').settle(session)
        assert found[0].sum() >= fetches.sum()


def test_rows_whose_bytes_are_gone_are_not_wanted() -> None:
    with open_capture([SAMPLES[0]]) as capture:
        session = session_of(capture)
        whole = compile_query("request.max_wait_ms >= 0").mask(session)
    session._read = Mock(side_effect=NotKept("bytes not kept"))
    assert whole.any()
    assert not compile_query("request.max_wait_ms >= 0").mask(session).any()


# --- how values of tables are judged --------------------------------------------------------------


KEYS = st.lists(st.integers(0, 5) | st.integers(0, 1 << 23), max_size=30)


@given(st.lists(KEYS, max_size=5))
def test_every_row_is_judged_by_its_value(pieces: list[list[int]]) -> None:
    lookup = sources.Lookup(lambda values: values[0] % 3 == 0)
    for keys in pieces:
        found = lookup(sources.KeyedValues(np.array(keys, dtype=np.int64), lambda key: (key,)))
        assert found.tolist() == [key % 3 == 0 for key in keys]


def test_few_rows_of_a_large_table_are_not_remembered() -> None:
    judged: list[Values] = []

    def judge(values: Values) -> bool:
        judged.append(values)
        return True

    for top, again in ((sources.FEW - 1, 1), (10_000, 2), (2_000_000, 2)):
        judged.clear()
        lookup = sources.Lookup(judge)
        for _ in range(2):
            lookup(sources.KeyedValues(np.array([top, top]), lambda key: (key,)))
        assert len(judged) == again
    judged.clear()
    lookup = sources.Lookup(judge)
    rows = np.arange(1_000) * (sources.SPARSE - 1)
    for _ in range(2):
        lookup(sources.KeyedValues(rows, lambda key: (key,)))
    assert len(judged) == 1_000
