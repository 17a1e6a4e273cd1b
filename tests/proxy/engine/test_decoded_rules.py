"""Rules about keys and values that are decoded by schema, before real sockets."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Record
from kafkascope.proxy.engine.schemas import LateSchemas
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.faults import FaultError, parse_fault
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.model import Schema, SchemaKey
from tests.analyzer.filter.decoded import orders
from tests.analyzer.filter.decoded.orders import VALUE, avro, frames, payloads, user
from tests.kit import proxy as kit
from tests.kit.proxy import until

RULE = "api == Produce and record.value.count > 100"
SLOW = f"{RULE} -> delay 1ms"
SMALL = VALUE | {"count": 5}


@asynccontextmanager
async def traffic(
    *rules: str, **options: Any
) -> AsyncIterator[tuple[kit.Proxied, kit.Link, list[bytes]]]:
    """A proxy, a client, and what the broker got."""
    upstream = kit.Noted(lambda *_: frames()[1])
    async with kit.proxied(upstream, *rules, **options) as proxy:
        yield proxy, await proxy.client(), upstream.asked


def order(value: dict[str, Any] = VALUE, **more: Any) -> bytes:
    return frames((user('{"user-id": 1}'), avro(value)), **more)[0]


@pytest.fixture
def decoding(tmp_path: Path) -> Any:
    """Traffic of which the proxy knows the schemas."""
    schemas = SchemaOptions((str(orders.schema_folder(tmp_path / "schemas")),))
    return partial(traffic, schemas=schemas)


async def test_what_matches_is_held_edited_and_goes_on_in_its_schema(decoding: Any) -> None:
    async with decoding(f"{RULE} -> hold") as (proxy, client, got):
        plain = order(SMALL)
        await client.ask(plain)
        assert got == [plain]  # looked at, and passed as it came
        client.send(order())
        await until(lambda: len(proxy.held))
        (held,) = proxy.held.list()
        assert held["rule"] == f"{RULE} -> hold"
        body = proxy.held.body(held["number"])
        records_in(body)[0]["value_decoded"] |= {"count": 7, "items": []}
        proxy.held.edit(held["number"], body)
        await client.frame()
        (record,) = records_of(got[1])
        before = payloads().decode("t", "value", avro(), ())
        after = payloads().decode("t", "value", record.value, ())
        assert after.value == before.value | {"count": 7, "items": []}


async def test_rules_follow_each_other_and_count(decoding: Any) -> None:
    rules = f"{RULE} -> delay 10ms", "record.key.user-id == 1 -> error NOT_LEADER_OR_FOLLOWER nth 2"
    async with decoding(*rules) as (proxy, client, got):
        first, second = (each.trigger for each in proxy.rules)
        answers = [await client.ask(order(value)) for value in (SMALL, VALUE, VALUE)]
        assert first.fired == 2
        assert (second.matched, second.fired) == (2, 1)
        assert answers[0] == answers[2] != answers[1]
        assert len(got) == 2


async def test_a_recording_says_what_was_done_to_which_frame(decoding: Any, tmp_path: Path) -> None:
    path = tmp_path / "seen.pcapng"

    async with decoding(SLOW, recorder=Recorder(path)) as (_, client, _):
        for value in (SMALL, VALUE):
            await client.ask(order(value))
    with open_capture([path]) as capture:
        notes = [[note.text for note in each.notes] for each in capture.exchanges()]
    assert notes[0] == []
    assert [text.rpartition(": ")[2] for text in notes[1]] == ["delay 1ms"]


async def test_records_are_decoded_beside_the_event_loop(
    decoding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Payloads.decode
    slow, threads = threading.Event(), set()

    def decode(self: Payloads, *given: Any) -> Any:
        threads.add(threading.current_thread())
        slow.wait(60)
        return plain(self, *given)

    monkeypatch.setattr(Payloads, "decode", decode)

    async with decoding(f"{RULE} -> hold") as (proxy, client, got):
        client.send(order(SMALL))
        await until(lambda: threads)
        # Another connection, whose frame no such rule looks at, does not wait.
        proxy.rules.clear()
        await proxy.ask(order(SMALL, number=2))
        assert len(got) == 1
        slow.set()
        await client.frame()
    assert threading.main_thread() not in threads


async def test_a_schema_that_nobody_knows_is_told_once() -> None:
    async with traffic(f"not ({RULE}) -> delay 1ms") as (proxy, client, _):
        for _ in range(3):
            await client.ask(order())
        said = [text for text in proxy.said() if "schema" in text]
        assert len(said) == len(set(said))
        assert [text for text in said if "id 7" in text] == [
            "no schema with id 7: rules about decoded keys and values do not match its records"
        ]
        assert proxy.fault.trigger.fired == 3


async def test_a_registry_is_asked_beside_the_traffic() -> None:
    known = {key: each for each in payloads().known for key in each.keys}
    answer = threading.Event()

    def ask(key: SchemaKey) -> list[Schema]:
        assert threading.current_thread() is not threading.main_thread()
        answer.wait(60)
        return [known[key]] if key in known else []

    async with traffic() as (proxy, client, _):
        proxy.schemas.late = LateSchemas(ask)
        fault = parse_fault(SLOW)
        proxy.rules.add(fault)
        await client.ask(order())  # the registry hangs, the frame does not
        assert proxy.fault.trigger.fired == 0
        answer.set()
        await until(lambda: proxy.schemas.late.changes)
        await client.ask(order())
        assert proxy.fault.trigger.fired == 1


async def test_schemas_that_pass_serve_what_follows() -> None:
    said = {
        "subject": "t-value",
        "version": 1,
        "id": 7,
        "schema": orjson.dumps(orders.ORDER).decode(),
    }
    key = b'{"keytype":"SCHEMA","subject":"t-value","version":1,"magic":1}'
    registration = frames((key, orjson.dumps(said | {"deleted": False})), topic="_schemas")[0]

    async with traffic(SLOW) as (proxy, client, _):
        await client.ask(order())
        assert proxy.fault.trigger.fired == 0
        assert proxy.schemas.held is None
        await client.ask(registration)
        await client.ask(order())
        assert proxy.fault.trigger.fired == 1
        assert proxy.schemas.held is not None


async def test_of_a_large_frame_the_first_records_count(decoding: Any) -> None:
    async with decoding(limits=Limits(rule_record_bytes=1000)) as (proxy, client, _):
        fault = parse_fault(SLOW)
        proxy.rules.add(fault)
        await client.ask(frames((None, avro()), *[(None, avro(SMALL))] * 50)[0])
        assert proxy.fault.trigger.fired == 1
        await client.ask(frames(*[(None, avro(SMALL))] * 50, (None, avro()))[0])
        assert proxy.fault.trigger.fired == 1
        said = [text for text in proxy.said() if "see only the first ones" in text]
        assert len(said) == 1


async def test_a_frame_that_takes_too_long_goes_on(decoding: Any) -> None:
    async with decoding(SLOW, limits=Limits(rule_record_s=-1.0)) as (proxy, client, _):
        await client.ask(order())
        assert proxy.fault.trigger.fired == 0
        assert any("see only the first ones" in text for text in proxy.said())


async def test_a_wrong_edit_is_refused_and_the_frame_stays(decoding: Any) -> None:
    async with decoding(f"{RULE} -> hold") as (proxy, client, got):
        client.send(order())
        await until(lambda: len(proxy.held))
        (number,) = proxy.held
        body = proxy.held.body(number)
        records_in(body)[0]["value_decoded"]["count"] = "many"
        with pytest.raises(DissectError, match="does not match its schema at count"):
            proxy.held.edit(number, body)
        proxy.held.release(number)
        await client.frame()
        assert got == [order()]


def records_of(frame: bytes) -> list[Record]:
    return kit.opened(kit.produced_records(frame))[1]


def records_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a body as it is shown."""
    whole = body["topic_data"][0]["partition_data"][0]["records"]
    return list(whole["batches"][0]["records"])


NEW = SMALL | {"note": "changed"}


async def test_a_value_that_rules_give_is_written_by_its_schema(decoding: Any) -> None:
    """Headers, ids and other records stay; text without a schema, and null, are what they say."""

    async with decoding(f"-> records set value '{orjson.dumps(NEW).decode()}'") as (
        proxy,
        client,
        got,
    ):
        pairs = (user("{}"), avro()), (b"k", avro(SMALL)), (None, b"plain"), (b"gone", None)
        await client.ask(frames(*pairs)[0])
        changed = records_of(got[0])
        assert [each.value for each in changed[:2]] == [avro(NEW), avro(NEW)]
        assert [each.value for each in changed[2:]] == [orjson.dumps(NEW)] * 2
        assert [each.key for each in changed] == [user("{}"), b"k", None, b"gone"]
        proxy.rules.clear()
        for number, rule in enumerate(["set key '{\"user-id\": 3}'", "set value null"], 1):
            proxy.rules.clear()
            proxy.rules.add(parse_fault(f"-> records {rule}"))
            await client.ask(frames(*pairs)[0])
            changed = records_of(got[number])
            assert [each.key == user('{"user-id":3}') for each in changed[:1]] == [number == 1]
            assert [each.value is None for each in changed[:1]] == [number == 2]


async def test_a_value_that_does_not_fit_is_told_once_and_the_frame_passes(decoding: Any) -> None:
    async with decoding("""-> records set value '{"id": 5}' first 1""") as (proxy, client, got):
        plain = frames((None, b"text"), (None, avro()))[0]
        for _ in range(3):
            await client.ask(plain)
        assert got == [plain] * 3
        said = proxy.said()
        assert len([text for text in said if "is forwarded unchanged" in text]) == 1, said
        assert proxy.fault.trigger.fired == 0
        unknown = frames((None, b"\0\0\0\0\x63" + avro()[5:]))[0]
        await client.ask(unknown)
        assert got[-1] == unknown
        assert any("no schema with id 99" in text for text in proxy.said())


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ('topic == t -> records set value \'{"id": "x"}\'', "without its field count"),
        ("topic in {t} and api == Produce -> records set key 5", "no schema of t"),
        ("(topic == t and api == Fetch) or topic == t -> records set value hello", "of t"),
    ],
)
async def test_a_value_that_fits_no_schema_of_its_topic_is_refused(
    decoding: Any, rule: str, reason: str
) -> None:
    others = ("topic == u", "topic in {t, u}", "topic != t", "not topic == t", "api == Produce")

    async with decoding() as (proxy, _, _):
        with pytest.raises(FaultError, match=reason):
            proxy.rules.add(parse_fault(rule))
        assert len(proxy.rules) == 0
        for each in others:  # where it may find something that it fits
            proxy.rules.add(parse_fault(f"{each} -> {rule.partition('-> ')[2]}"))
    with pytest.raises(FaultError, match=reason):
        KafkaProxy("127.0.0.1:1", rules=[parse_fault(rule)], **decoding.keywords)


async def test_a_schema_that_the_user_assigned_serves_values_without_ids(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_bytes(orjson.dumps(orders.ORDER))
    told = SchemaOptions(assigned=(f"t={file}",))

    async with traffic(f"-> records set value '{orjson.dumps(NEW).decode()}'", schemas=told) as (
        proxy,
        client,
        got,
    ):
        await client.ask(frames((None, avro()[5:]), (None, None))[0])
        assert [each.value for each in records_of(got[0])] == [avro(NEW)[5:]] * 2
        with pytest.raises(FaultError, match="no schema of t"):
            proxy.rules.add(parse_fault("topic == t -> records set value 5"))
