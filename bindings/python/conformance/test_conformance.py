"""The scenarios of `bindings/scenarios` with librdkafka; its README says what each member means."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pytest_kafkascope import KafkascopeError, Proxy, ReplayBroker

PATIENCE_S = 30.0
OLD = """#!/bin/sh
read line
echo '{"ok":true,"protocol":1,"bootstrap":"127.0.0.1:1"}'
cat
"""
QUIET = {"log_level": 0}
COMMAND = shlex.split(os.environ.get("KAFKASCOPE", ""))


def scenarios() -> Iterator[tuple[dict[str, Any], str | None]]:
    """Scenarios, each with what it is run before."""
    folder, only = os.environ.get("KAFKASCOPE_SCENARIOS"), os.environ.get("KAFKASCOPE_SCENARIO")
    for path in sorted(Path(folder).glob("*.json")) if folder else ():
        if path.name == "scenario.schema.json" or (only and path.stem != only):
            continue
        scenario = json.loads(path.read_text())
        if only or "ends" not in scenario:
            for before in scenario.get("before", [None]):
                if before != "broker" or os.environ.get("KAFKASCOPE_BROKER"):
                    yield scenario, before


@pytest.fixture(scope="module")
def captured() -> Iterator[Callable[[], str]]:
    """The address of the served capture, which is one for all."""
    with contextlib.ExitStack() as ends:

        @cache
        def start() -> str:
            broker = ReplayBroker(COMMAND, Path(os.environ["KAFKASCOPE_CAPTURE"]), ())
            ends.callback(broker.stop)
            return broker.bootstrap

        yield start


@pytest.mark.parametrize(
    ("scenario", "before"), [pytest.param(s, b, id=f"{s['name']}-{b}") for s, b in scenarios()]
)
def test_scenario(
    scenario: dict[str, Any],
    before: str | None,
    kafka_proxy: Callable[..., Proxy],
    captured: Callable[[], str],
    tmp_path: Path,
) -> None:
    if before is None:
        starts(scenario, tmp_path)
    else:
        upstream = os.environ.get("KAFKASCOPE_BROKER", "")
        if before == "capture":
            upstream = captured()
        topic = made_topic(upstream, scenario["name"])
        proxy = kafka_proxy(upstream, faults=scenario.get("rules", ()))
        run = Run(proxy, topic)
        for step in json.loads(json.dumps(scenario["steps"]).replace("{topic}", topic)):
            getattr(run, step["do"])(step)
    with Path(os.environ["KAFKASCOPE_RESULTS"]).open("a") as results:
        results.write(json.dumps({"scenario": scenario["name"], "before": before}) + "\n")


def starts(scenario: dict[str, Any], folder: Path) -> None:
    """Starting a proxy fails as the scenario says."""
    command, arguments = COMMAND, []
    if scenario["start"].get("command") == "missing":
        command = [str(folder / "kafkascope")]
    elif scenario["start"].get("command") == "old":
        old = folder / "kafkascope"
        old.write_text(OLD)
        old.chmod(0o700)
        command = [str(old)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        if scenario["start"].get("listen") == "taken":
            arguments = ["--listen", f"127.0.0.1:{taken.getsockname()[1]}"]
        with pytest.raises(KafkascopeError) as raised:
            Proxy(command, "127.0.0.1:1", folder / "kafka.pcapng", arguments)
    for text in scenario["fails"]:
        assert text in str(raised.value)


def made_topic(bootstrap: str, name: str) -> str:
    """Create a topic of one partition with a unique name."""
    topic = f"{name}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(PATIENCE_S)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic]
        if not found.error and all(each.leader >= 0 for each in found.partitions.values()):
            return topic
        time.sleep(0.05)
    raise TimeoutError(topic)


def _count(step: dict[str, Any]) -> dict[str, int]:
    return {"count": step["count"]} if "count" in step else {}


class Run:
    """Does steps."""

    def __init__(self, proxy: Proxy, topic: str) -> None:
        self.proxy = proxy
        self.topic = topic
        self.begun: dict[str, Future[None]] = {}
        self.threads = ThreadPoolExecutor()

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self.proxy.bootstrap, **QUIET, **more}

    # --- the client

    def produce(self, step: dict[str, Any]) -> None:
        if "begin" in step:
            self.begun[step["begin"]] = self.threads.submit(self._produce, step)
        else:
            self._produce(step)

    def _produce(self, step: dict[str, Any]) -> None:
        begun = time.monotonic()
        reports: list[Any] = []
        settings = {"acks": step.get("acks", "all"), "linger.ms": 50}
        producer = Producer(self.settings(**settings))
        for value in step["values"]:
            producer.produce(self.topic, value, on_delivery=lambda e, _: reports.append(e))
        assert producer.flush(PATIENCE_S) == 0
        errors = [each.name() for each in reports if each is not None]
        if "delivered" in step:
            assert (len(reports) - len(errors), errors) == (step["delivered"], [])
        if "error" in step:
            assert errors[:1] == [step["error"]]
        assert time.monotonic() - begun >= step.get("at_least_ms", 0) / 1000

    def finish(self, step: dict[str, Any]) -> None:
        self.begun[step["which"]].result(PATIENCE_S)

    def running(self, step: dict[str, Any]) -> None:
        assert not self.begun[step["which"]].done()

    def consume(self, step: dict[str, Any]) -> None:
        topic = step.get("topic", self.topic)
        consumer = Consumer(self.settings(**{"group.id": "g", "enable.auto.commit": False}))
        partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        values: list[str] = []
        end = time.monotonic() + PATIENCE_S
        while len(values) < step["count"] and time.monotonic() < end:
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                values.append(message.value().decode())
        consumer.close()
        if step.get("any_order"):
            values.sort()
        assert values == step["values"]

    def transaction(self, step: dict[str, Any]) -> None:
        producer = Producer(self.settings(**{"transactional.id": uuid.uuid4().hex}))
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for value in step["values"]:
            producer.produce(self.topic, value)
        producer.flush(PATIENCE_S)
        end = producer.commit_transaction if step["commit"] else producer.abort_transaction
        try:
            end(PATIENCE_S)
        except KafkaException as error:
            raise AssertionError(str(error)) from None

    # --- the binding

    def rule(self, step: dict[str, Any]) -> None:
        self.proxy.add_rule(step["rule"])

    def clear(self, _: dict[str, Any]) -> None:
        self.proxy.clear()

    def fired(self, step: dict[str, Any]) -> None:
        assert self.proxy.rules()[0]["fired"] == step["count"]

    def hold(self, step: dict[str, Any]) -> None:
        self.proxy.hold(step["filter"])

    def held(self, step: dict[str, Any]) -> None:
        assert len(self.proxy.held(step["count"])) == step["count"]

    def release(self, _: dict[str, Any]) -> None:
        self.proxy.release()

    def sent(self, step: dict[str, Any]) -> None:
        self._asserted(step, self.proxy.assert_request, where=step["filter"], **_count(step))

    def records(self, step: dict[str, Any]) -> None:
        self._asserted(step, self.proxy.assert_records, where=step["filter"], **_count(step))

    def findings(self, step: dict[str, Any]) -> None:
        told = {"level": step["level"], "allow": step.get("allow", [])}
        self._asserted(step, self.proxy.assert_no_findings, **told)

    def _asserted(self, step: dict[str, Any], check: Callable[..., Any], **told: Any) -> None:
        if "fails" not in step:
            check(**told)
            return
        with pytest.raises((AssertionError, KafkascopeError)) as raised:
            check(**told)
        for text in step["fails"]:
            assert text in str(raised.value)

    def kill(self, _: dict[str, Any]) -> None:
        os.kill(self.proxy.ask("status")["pid"], signal.SIGKILL)

    def fail(self, _: dict[str, Any]) -> None:
        pytest.fail("as the scenario says")

    def die(self, _: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
