"""Each field in each place that takes filters: some value makes it true, another false, or the
place refuses it when the filter is compiled. Rules of the proxy have a module of their own,
`tests/proxy/rules/test_matching.py`."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest

from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter.backends.columns import Query
from kafkascope.analyzer.filter.backends.exchange import Filter, ends_of, is_about_connections
from kafkascope.analyzer.filter.backends.logdir import GETTERS, compile_at_rest
from kafkascope.analyzer.filter.bind import IN_TABLES, IN_TASKS, bind, demand
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.fields import DECODED, FIELDS, Field
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.pipeline.stored import row_of_table
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.schemas import EXCHANGES
from kafkascope.analyzer.pipeline.tables.values import exchange_values
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.inputs.spool import Spool
from kafkascope.dissectors.reference.codes import error_name
from kafkascope.proxy.rules.matching import refusal
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT
from tests.analyzer.filter.decoded.orders import capture_of_orders, payloads
from tests.kit.captures import session_of
from tests.kit.samples import ALL_CAPTURES, ROOT, TLS

NAMES = """
    rebalance transactions cluster sasl java-codecs java-old zookeeper odd-requests wrong-answers
    stopped-broker midstream throttled lost-answers zookeeper-failover nagle share-group
    proxy-protocol-v2-taken
"""
BY_NAME = {path.name.partition(".")[0]: path for path in reversed(ALL_CAPTURES)}
EVERY = [
    *(BY_NAME[name] for name in NAMES.split()),
    ROOT / "captures" / "logs" / "demo.log.zst",
    ROOT / "tests" / "captures" / "streams" / "proxied.pcap.gz",
]
ENCRYPTED = ("tls13-mutual", "tls12-tickets")
SCHEMAS = payloads()
KNOWN = Known(
    marked={1},
    comments={1: "slow", 2: "odd"},
    findings={1: ["late-answer"], 2: ["lag"]},
    severities={1: ["error"], 2: ["note"]},
    ignored={1},
    decoding=Decoding(lambda: SCHEMAS, lambda: TopicNames()),
)


Sample: TypeAlias = tuple[Session, list[tuple[Row, Exchange]], list[Row]]
"""A capture as a session, its rows with their exchanges, and its rows from a table."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sample]]:
    with ExitStack() as stack:
        found: list[Sample] = []
        orders = capture_of_orders(tmp_path_factory.mktemp("orders") / "orders.pcapng")
        opened = [open_capture([path], spool=Spool()) for path in (*EVERY, orders)]
        for name in ENCRYPTED:
            log = TLS / f"{name}.keys"
            capture = open_capture([TLS / f"{name}.pcap.gz"], spool=Spool(), keylog=[log])
            opened.append(named(capture))
        for capture in map(stack.enter_context, opened):
            session = session_of(capture)
            pairs = [(session.row(i), session.exchange(i)) for i in range(len(session))]
            found.append((session, pairs, from_table(pairs)))
        yield found


def named(capture: OpenInput) -> OpenInput:
    """The capture with names in its handshakes: the real ones were of connections to addresses."""
    read = capture.batches

    def batches() -> Iterator[list[Exchange]]:
        for items in read():
            found = list(map(exchange_of, items))
            for each in found:
                each.tls = each.tls and each.tls._replace(
                    server_name="one.example", protocol="kafka"
                )
            yield found

    setattr(capture, "batches", batches)  # noqa: B010 - mypy refuses the plain form
    return capture


def spelled(field: Field, value: Any) -> str:
    """A value as a filter writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if field.type == "error":
        return error_name(value)
    if field.type in ("duration",):
        return f"{value}ns"
    if isinstance(value, bytes):
        return ":".join(f"{byte:02x}" for byte in value[:40])
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def values_of(field: Field, row: Row, exchange: Exchange) -> tuple[Any, ...]:
    if field.read is not None:
        return field.read(exchange)
    if field.told_by == "schemas":
        return KNOWN.decoding.values(exchange, field.name, ())
    return KNOWN.values(field.name, row.number) if field.get is None else field.get(row)


def from_table(pairs: list[tuple[Row, Exchange]]) -> list[Row]:
    """The rows as they come back from the table of exchanges."""
    values = [exchange_values(row, exchange) for row, exchange in pairs]
    return list(map(row_of_table, record_batch(values, EXCHANGES.schema).to_pylist()))


def texts_for(field: Field, samples: list[Sample]) -> list[str]:
    """Filters about a field of which one holds somewhere and one does not."""
    if field.name == "time.delta":
        return ["time.delta > 0ns", "time.delta > 900d"]
    seen: dict[Any, None] = {}
    for _, pairs, _ in samples:
        for row, exchange in pairs:
            seen |= dict.fromkeys(values_of(field, row, exchange))
            if len(seen) > 4:
                break
    assert seen, f"no capture has a value of {field.name}"
    relation = "contains" if field.type == "bytes" else "=="
    if field.type == "time":
        return [f"{field.name} > 2000-01-01", f"{field.name} > 2999-01-01"]
    texts = [f"{field.name} {relation} {spelled(field, value)}" for value in [*seen][:5]]
    # Samples were made on one machine.
    return [*texts, f"{field.name} == 192.0.2.1"] if field.type == "address" else texts


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_each_field_holds_for_some_exchanges_and_not_for_others(
    field: Field, samples: list[Sample]
) -> None:
    one_by_one, whole = set(), set()
    for text in texts_for(field, samples):
        bound = bind(text)
        for session, pairs, rows in samples:
            single = Filter(bound, KNOWN)
            told = [single(row, exchange) for row, exchange in pairs]
            one_by_one |= set(told)
            if field.name in IN_TABLES:
                stored = Filter(bound)
                assert told == list(map(stored, rows)), text
            else:
                with pytest.raises(FilterError):
                    demand(bound, text, IN_TABLES, "{} is not in tables", "")
            mask = Query(bound, KNOWN).mask(session).tolist()
            assert mask == told, text
            whole |= set(mask)
        if one_by_one == {True, False}:
            break
    assert one_by_one == {True, False}
    assert whole == {True, False}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_connections_answer_what_connections_tell(field: Field) -> None:
    bound = bind(field.example)
    assert is_about_connections(bound) == (field.told_by in ("connection", "tls"))
    if is_about_connections(bound):
        line = {"connection": 3, "client_address": "10.0.0.4:51422", "opened": 5}
        line |= {"via": "10.0.1.9:443"}
        tls = {"tls": "TLS 1.3 TLS_AES_128_GCM_SHA256", "resumed": True}
        tls |= {"sni": "one.example", "alpn": "kafka", "tls_client": "CN=a"}
        ends = ends_of({**line, **tls, "broker_address": "[fd00::2]:9092"})
        assert field.get is not None
        values = field.get(ends)  # type: ignore[arg-type]
        assert values
        wanted = Filter(bind(f"{field.name} == {spelled(field, values[0])}"))
        assert wanted(ends)  # type: ignore[arg-type]
        other = ends._replace(
            connection=4, client_address="[::9]:1", broker_address="[::8]:2", tls=None, via=""
        )
        assert not wanted(other)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_log_directories_answer_or_refuse(field: Field) -> None:
    if field.name in GETTERS:
        assert compile_at_rest(field.name) is not None
    else:
        why = "decoded with a schema" if field.name in DECODED else "is a field of exchanges"
        with pytest.raises(FilterError, match=why):
            compile_at_rest(field.example)


def test_log_directories_invent_no_field() -> None:
    assert GETTERS.keys() <= {field.name for field in FIELDS}


@pytest.mark.parametrize("text", ["record.value.amount > 100", 'record.key."user-id" == 5'])
def test_decoded_fields_hold_or_are_refused(text: str, samples: list[Sample]) -> None:
    bound = bind(text)
    found = set()
    for session, pairs, _ in samples:
        single = Filter(bound, KNOWN)
        told = [single(row, exchange) for row, exchange in pairs]
        assert Query(bound, KNOWN).mask(session).tolist() == told
        found |= set(told)
    assert found == {True, False}
    assert not is_about_connections(bound)
    for known in (IN_TABLES, IN_TASKS):
        with pytest.raises(FilterError, match=r"record\.(key|value)\.<path> is not known here"):
            demand(bound, text, known, "{} is not known here", "")
    with pytest.raises(FilterError, match="decoded with a schema"):
        compile_at_rest(text)
    for side in (CLIENT, BROKER):
        assert refusal(bound, side) is None
