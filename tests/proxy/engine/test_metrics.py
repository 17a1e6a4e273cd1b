"""What is noted is counted, whenever somebody asks."""

from __future__ import annotations

import pytest

from kafkascope.proxy.hub import Metrics
from tests.kit.proxy import HEARTBEAT, PRODUCE, Bench, request, response


@pytest.mark.parametrize("count", [1, Metrics.many - 1, Metrics.many, 3 * Metrics.many + 1])
def test_every_answer_is_counted_with_its_latency(count: int) -> None:
    metrics = Metrics()
    for number in range(count):
        metrics.answered(PRODUCE if number % 3 else HEARTBEAT, number * 1_000_000)
        assert len(metrics.answers) < Metrics.many  # what waits is bounded
    beats = range(0, count, 3)
    told = metrics.latencies()
    assert told["Heartbeat"]["count"] == len(beats)
    assert told["Heartbeat"]["sum_ns"] == sum(beats) * 1_000_000
    assert told["Heartbeat"]["buckets"][0] == sum(number <= 1 for number in beats)
    assert sum(metrics.snapshot()["responses_total"].values()) == count
    assert f'latency_seconds_count{{api="Heartbeat"}} {len(beats)}' in metrics.text()


@pytest.mark.parametrize("together", [1, 1000])
def test_answers_that_pass_are_counted_and_do_not_pile_up(together: int) -> None:
    bench = Bench()
    for _ in range(1000 // together):
        bench.relay.feed(0, request(HEARTBEAT, 4) * together, 1_000)
        bench.relay.feed(1, response(HEARTBEAT, 4) * together, 2_001_000)
        assert len(bench.hub.metrics.answers) < Metrics.many
        assert not bench.relay.busy
    told = bench.hub.metrics.latencies()["Heartbeat"]
    assert (told["count"], told["sum_ns"]) == (1000, 2_000_000_000)


def test_labels_that_peers_choose_are_text_on_one_line() -> None:
    # A broker's host was written as it said it, and one that is no UTF-8 ended every answer.
    metrics = Metrics()
    hosts = ["h\x1b[2J\x9b\u202e", "h\udcff", "h\n", r"h\x0a", 'h"\\', "h"]
    for host in hosts:
        metrics.add("upstream_failures_total", f"{host}:9092")
    text = metrics.text()
    assert text.encode().decode().replace("\n", "").isprintable()
    lines = [line for line in text.split("\n") if "upstream_failures_total{" in line]
    assert len(set(lines)) == len(hosts)
    assert r'kafkascope_upstream_failures_total{upstream="h\\x1b[2J\\x9b\\u202e:9092"} 1' in lines
    assert r'kafkascope_upstream_failures_total{upstream="h\"\\:9092"} 1' in lines
