"""What a replay asks for again, and what it no longer waits for: against a served sample."""

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.replay import retries
from kafkascope.proxy.replay.compare import Comparison
from kafkascope.proxy.replay.remap import Remap
from kafkascope.proxy.serve.broker import Broker
from kafkascope.tui.cli import main
from tests.explosion.turns import exchange, write_capture
from tests.kit.served import serving
from tests.kit.wire import full_body

SAMPLE = "kafka-python.pcap"
TRIES = 3


def fetches(path: Path, topic: str, *numbers: int) -> Path:
    """A capture of fetches of partitions, each of which finds nothing."""

    def turn(number: int) -> Any:
        part = {"partition": number, "partition_max_bytes": 1 << 20}
        topics = [{"topic": topic, "partitions": [part]}]
        asked = full_body("FetchRequest", 11, {"session_epoch": -1, "topics": topics})
        told = [{"topic": topic, "partitions": [{"partition_index": number, "records": b""}]}]
        return exchange("Fetch", 11, asked, full_body("FetchResponse", 11, {"responses": told}))

    write_capture(path, map(turn, numbers))
    return path


async def replayed(
    path: Path, monkeypatch: pytest.MonkeyPatch, **limits: int
) -> tuple[Result, Counter[str]]:
    """Replay a capture to a served sample; also, how often it was asked what."""
    asked: Counter[str] = Counter()
    respond = Broker.respond

    async def counted(broker: Broker, key: int, *more: Any) -> Any:
        asked[APIS[key].name] += 1
        return await respond(broker, key, *more)

    monkeypatch.setattr(Broker, "respond", counted)
    small = Limits(tries=TRIES, pause_s=0, **limits)
    async with serving(SAMPLE) as served:
        to = f"{served.host}:{served.port}"
        words = ("--to", to, "--speed", "max", "--create-topics")
        arguments = ["replay", str(path), *words]
        result = await asyncio.to_thread(CliRunner().invoke, main, arguments, obj=small)
    return result, asked


def test_only_what_is_missing_is_no_longer_waited_for() -> None:
    layout = layout_of("FetchResponse", 11)
    part = {"records": b"", "high_watermark": 0}

    def told(*codes: int) -> dict[str, Any]:
        parts = [
            {**part, "partition_index": at, "error_code": each} for at, each in enumerate(codes)
        ]
        return {"error_code": 0, "responses": [{"topic": "t", "partitions": parts}]}

    exchange: Any = SimpleNamespace(response=None, api="Fetch")
    decoded: Any = SimpleNamespace(layout=layout)
    made = retries.Retries(Comparison(), Remap())

    def worth(*codes: int) -> bool:
        return made.turns(exchange, decoded, told(*codes)) == LIMITS.tries - 1

    assert worth(3, 6)
    made.ended(exchange, decoded, told(3, 6), well=False)
    assert not worth(3, 0)
    # A leader may come back, and another partition be made.
    assert worth(3, 6)
    assert worth(0, 3)
    made.changed()
    assert worth(3, 0)


async def test_topics_get_the_partitions_that_requests_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The capture has no Metadata: they had one partition, and each of the others was waited for.
    path = fetches(tmp_path / "fetches.pcapng", "new", 2, 7, 0)
    result, asked = await replayed(path, monkeypatch)
    assert "3 responses equal, 0 different" in result.output
    assert asked["CreateTopics"] == 1
    assert asked["Fetch"] == 3


async def test_a_partition_that_is_not_there_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = fetches(tmp_path / "fetches.pcapng", "kafka-python.none", 9, 9, 9, 0, 8, 9)
    result, asked = await replayed(path, monkeypatch)
    assert "1 responses equal, 5 different, 0 without" in result.output
    # Of partitions 9 and 8 all tries, of which none is beyond the last answer; and once the others.
    assert asked["Fetch"] == 2 * TRIES + 4
    assert not [each for each in caplog.records if "never retrieved" in each.message]


async def test_an_api_of_which_no_answer_settles_is_no_longer_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3,000 answers that could not be the captured ones took two seconds each."""
    path = fetches(tmp_path / "fetches.pcapng", "kafka-python.none", *range(9, 15))
    result, asked = await replayed(path, monkeypatch, failed_in_a_row=2)
    assert "0 responses equal, 6 different, 0 without" in result.output
    assert asked["Fetch"] == 2 * TRIES + 4
    assert "Fetch was retried 2 times without success, then no longer" in result.output


def test_an_api_that_settles_goes_on_being_waited_for() -> None:
    made = retries.Retries(Comparison(), Remap())
    layout = layout_of("FindCoordinatorResponse", 3)
    exchange: Any = SimpleNamespace(response=None, api="FindCoordinator")
    decoded: Any = SimpleNamespace(layout=layout)
    unready = {"error_code": 15}
    for _ in range(3):
        for _ in range(LIMITS.failed_in_a_row - 1):
            made.ended(exchange, decoded, unready, well=False)
        assert made.turns(exchange, decoded, unready)
        made.ended(exchange, decoded, unready, well=True)
    for _ in range(LIMITS.failed_in_a_row):
        made.ended(exchange, decoded, unready, well=False)
    assert not made.turns(exchange, decoded, unready)


async def test_what_the_capture_has_no_answer_to_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "asked.pcapng"
    write_capture(path, iter([exchange("ApiVersions", 0, {}, {})[:1]]))
    result, _ = await replayed(path, monkeypatch)
    said = "0 responses equal, 0 different, 0 without a response, 1 without a decodable response"
    assert said in result.output
