"""Bars of the stages of exchanges."""

from dataclasses import replace
from functools import cache
from itertools import chain, groupby

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Exchange, Logged, Stages
from kafkascope.analyzer.render.stages import BAR, SIGNS, stage_bar, stage_lines, stage_list
from kafkascope.analyzer.requestlog.model import BrokerTimes
from tests.kit.samples import CAPTURES
from tests.kit.wire import MS


@cache
def example() -> Exchange:
    """A Produce that was answered after 45 ms."""
    with open_capture([CAPTURES / "nagle.pcap.gz"]) as capture:
        return next(each for each in capture.exchanges() if each.api == "Produce")


def with_stages(*stages: object, wait_ns: int = 0) -> Exchange:
    return replace(example(), stages=Stages(*stages), wait_ns=wait_ns)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["nagle.pcap.gz", "midstream.pcap.gz", "throttled.pcap.gz"])
def test_stages_are_the_latency(name: str) -> None:
    with open_capture([CAPTURES / name]) as capture:
        exchanges = [each for each in capture.exchanges() if each.response is not None]
    assert exchanges
    for each in exchanges:
        if each.request is not None:
            assert sum(stage.took_ns for stage in stage_list(each)) >= (each.latency_ns or 0)


def test_each_stage_has_a_sign_in_a_bar_of_about_one_width() -> None:
    captured = with_stages(3 * MS, 12 * MS, 1, 5 * MS, wait_ns=2 * MS)
    times = BrokerTimes(1 * MS, 4 * MS, 9 * MS, 2 * MS, 3 * MS, None)
    facts = Logged(0, 19 * MS, times, "PLAINTEXT", False, False, {}, packets=True)
    logged = replace(captured, logged=facts)
    fetch = replace(logged, api="Fetch")
    names = [[stage.name for stage in stage_list(each)] for each in (captured, logged, fetch)]
    inside = ["request queue", "request handler", "replicas", "wait"]
    inside += ["response queue", "send", "outside of the broker"]
    assert names[0] == ["request transfer", "round trip", "server", "wait", "response transfer"]
    assert names[1] == inside
    assert names[2] == ["purgatory" if each == "replicas" else each for each in inside]
    assert {*chain(*names), "server and round trip"} == set(SIGNS)
    for exchange, signs in ((captured, ">~#.<"), (logged, ":#+.;<~"), (fetch, ":#+.;<~")):
        stages = stage_list(exchange)
        bar = "".join(signs for signs, _ in stage_bar(stages))
        assert [sign for sign, _ in groupby(bar)] == list(signs)
        assert BAR <= len(bar) <= BAR + len(SIGNS)


def test_what_is_unknown_is_one_stage() -> None:
    exchange = with_stages(0, None, 0)
    assert [stage.name for stage in stage_list(exchange)] == ["server and round trip"]
    assert list(stage_lines(with_stages())) == []


def test_remarks_stand_beside_the_bar() -> None:
    exchange = with_stages(0, 40 * MS, 0, 5 * MS, 2, 30 * MS, "network", "between")
    bar, legend = stage_lines(exchange)
    assert bar.endswith(
        "#  stalled by network, 2 retransmissions, receive window closed for 30 ms, "
        "captured between client and broker"
    )
    assert legend.startswith("~ round trip ")
