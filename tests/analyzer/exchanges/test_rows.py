"""Exchanges as rows: what they are about, what went wrong, and the words for it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.bodies.facts import facts_in
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.rows import Row, nameless_topics, renamed, row_of, to_json
from kafkascope.analyzer.model import Frame, Part
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.registry import APIS, Decoded, encode_body, layout_of
from kafkascope.dissectors.values import Uuid
from tests.kit.batches import batch
from tests.kit.wire import (
    MS,
    Wire,
    beat,
    heartbeat,
    partition,
    produce,
    produced,
    request,
    response,
    told,
)
from tests.strategies import bodies

ID = Uuid(range(16))


def row(wire: Wire, context: Context | None = None) -> Row:
    context = context or Context()
    (one,) = told(wire.events, context)
    return row_of(one, context.names)


def fetch(records: bytes | None, waited_ms: int = 1, error: int = 0, **asked: Any) -> Row:
    wire = Wire().client(request("Fetch", 5, 1, max_wait_ms=500, min_bytes=1, **asked))
    wire.time_ns += (waited_ms - 1) * MS
    topics = [{"topic": "t", "partitions": [partition(blob=records, error_code=error)]}]
    return row(wire.broker(response("Fetch", 5, 1, responses=topics)))


def test_a_produce_says_where_its_records_went() -> None:
    asked = produce(1, records=batch([(b"k", b"v"), (None, b"w")]))
    found = row(Wire().client(asked).broker(produced()))
    assert (found.topics, found.partitions, found.acks) == (("t",), (3,), -1)
    assert (found.records, found.batches, found.codecs) == (2, 1, ("none",))
    assert result(found) == "ok t-3 offset 88123"


def test_errors_say_what_they_are_about() -> None:
    wire = Wire().client(produce(1)).broker(produced(error_code=6, base_offset=-1))
    found = row(wire)
    error = {"code": 6, "name": "NOT_LEADER_OR_FOLLOWER", "topic": "t", "partition": 3}
    assert to_json(found)["errors"] == [error]
    assert result(found) == "! NOT_LEADER_OR_FOLLOWER t-3"


def test_an_error_that_names_no_group_is_about_the_one_that_was_asked_for() -> None:
    found = row(Wire().client(heartbeat(1)).broker(beat(1, 27)))
    assert result(found) == "! REBALANCE_IN_PROGRESS g"
    assert found.errors[0].top


def test_a_wrong_checksum_is_a_note_on_the_exchange() -> None:
    damaged = bytearray(batch([(b"k", b"value")]))
    damaged[-3] ^= 1
    found = row(Wire().client(produce(1, records=bytes(damaged))).broker(produced()))
    (note,) = found.notes
    assert (note.severity, note.text) == ("error", "a record batch has a checksum mismatch")


def test_an_empty_fetch_waited_as_long_as_it_was_told_to() -> None:
    found = fetch(None, waited_ms=503)
    assert (found.wait_ns, found.latency_beyond_wait_ns) == (500 * MS, 3 * MS)
    assert result(found) == "ok t-0 no records (waited 500 ms)"


def test_a_fetch_that_data_ended_waited_for_it() -> None:
    """As far as anybody can tell: see test_log_ends."""
    found = fetch(batch([(None, b"v")]), waited_ms=303)
    assert (found.wait_ns, found.latency_beyond_wait_ns) == (303 * MS, 0)
    assert result(found) == "ok t-0 1 record (waited 303 ms)"


def test_a_fetch_that_was_denied_did_not_wait() -> None:
    topics = [{"topic": "t", "partitions": [{"partition": 0}]}]
    assert fetch(None, waited_ms=503, error=29, topics=topics).wait_ns == 0


def test_a_batch_that_the_end_cuts_is_not_counted() -> None:
    whole = batch([(None, b"v")])
    assert fetch(whole + whole[:30]).records == 1


def test_join_group_waits_for_the_group() -> None:
    wire = Wire().client(request("JoinGroup", 5, 1, group_id="g"))
    wire.time_ns += 3000 * MS
    found = row(wire.broker(response("JoinGroup", 5, 1, generation_id=4)))
    assert found.wait_ns == 3001 * MS
    assert (found.groups, found.generations) == (("g",), (4,))


@pytest.mark.parametrize(
    ("version", "fields"),
    [(3, {"key": "g", "key_type": 0}), (4, {"coordinator_keys": ["g"], "key_type": 0})],
)
def test_find_coordinator_is_about_a_group(version: int, fields: dict[str, Any]) -> None:
    assert row(Wire().client(request("FindCoordinator", version, 1, **fields))).groups == ("g",)


def test_a_topic_without_name_shows_its_id_until_the_name_is_known() -> None:
    topics = [{"topic_id": ID, "partitions": [{"partition_max_bytes": 1}]}]
    context = Context()
    found = row(Wire().client(request("Fetch", 13, 1, topics=topics)), context)
    assert found.topics == (f"{ID!s:.8}?",)
    assert nameless_topics(found)
    context.names.learn(ID, "orders")
    assert renamed(found, context.names).topics == ("orders",)
    assert not nameless_topics(renamed(found, context.names))


def test_the_words_for_exchanges_without_answer() -> None:
    assert result(row(Wire().client(produce(1, acks=0)))) == "acks=0 t-3 no records"
    lost = row(Wire().client(heartbeat(1)).close("broker"))
    assert result(lost) == "? no answer, closed by the broker"
    tls = row(Wire().client(b"\x16\x03\x01\x00\x05\x01" + bytes(20)).close())
    assert result(tls).startswith("~ TLS")


def test_the_json_of_a_row_has_the_names_of_the_documentation() -> None:
    value = json.loads(dumps(to_json(row(Wire().client(heartbeat(7)).broker(beat(7))))))
    expected = {
        "schema": "exchange/1",
        "number": 1,
        "time": "2023-11-14T22:13:20.001000Z",
        "connection": 0,
        "client_address": "10.0.0.4:51422",
        "broker_address": "10.0.1.2:9092",
        "client_id": "app",
        "api_key": 12,
        "api": "Heartbeat",
        "api_version": 3,
        "correlation_id": 7,
        "latency_ms": 1.0,
        "latency_ns": MS,
        "wait_ms": 0,
        "throttle_ms": 0,
        "state": "answered",
        "frames": [1, 2],
    } | {key: [] for key in ("errors", "topics", "undecoded")}
    assert value.items() >= expected.items()


def test_a_client_id_that_is_no_text_is_still_written() -> None:
    wire = Wire().client(heartbeat(1).replace(b"app", b"a\xffp"), heartbeat(2))
    (first, _) = told(wire.events)
    assert b"\\udcff" in dumps(to_json(row_of(first, Context().names)))


@given(st.data())
def test_the_facts_of_an_exchange_are_those_of_its_bodies(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(sorted(APIS.values())))
    version = data.draw(st.integers(api.versions.low, api.versions.high))
    names = [f"{api.name}{kind}" for kind in ("Request", "Response")]
    asked, answer = (layout_of(name, version) for name in names)
    one, other = data.draw(bodies(asked)), data.draw(bodies(answer))
    payloads = [
        encode_body(name, version, body) for name, body in zip(names, (one, other), strict=True)
    ]
    frames = [Frame(each, 0, len(each), 0, 0, (Part(-1, 0, 0, 0),)) for each in payloads]
    sent, answered = (
        Decoded(layout.message.name, version, {}, body, 0, len(frame.payload), "", layout, layout)
        for layout, body, frame in ((asked, one, frames[0]), (answer, other, frames[1]))
    )
    both_payloads = payloads[0], payloads[1]
    facts = facts_in(sent, answered, both_payloads)
    # Of both as of each: those of the request first.
    parts = facts_in(sent, None, both_payloads), facts_in(None, answered, both_payloads)
    for name in ("topics", "partitions", "groups", "errors"):
        both = (*getattr(parts[0], name), *getattr(parts[1], name))
        assert getattr(facts, name) == (both if name == "errors" else tuple(dict.fromkeys(both)))
    assert all(isinstance(each, str) for each in facts.topics)
    assert all(isinstance(each, int) for each in facts.partitions)
