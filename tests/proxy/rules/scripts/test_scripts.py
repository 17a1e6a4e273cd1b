"""Scripts: what their functions see and decide, what goes wrong, and those of docs/scripts.md."""

import asyncio
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import decode_request, decode_response
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.rules.faults import FaultError
from kafkascope.proxy.rules.scripts.script import load_script
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Drop, Replace, Respond
from tests.kit import proxy as kit
from tests.kit.samples import ROOT

DOCS = (ROOT / "docs" / "scripts.md").read_text("utf-8")
PAGE = dict(re.findall(r"```python\n# (\w+)\n(.*?)```", DOCS, re.DOTALL))


class Trial:
    """A script, and frames that its rules are asked about."""

    def __init__(
        self, folder: Path, text: str, name: str = "script.py", limits: Limits = LIMITS
    ) -> None:
        self.path = folder / name
        self.path.write_text(text)
        self.rules = load_script(self.path)
        self.seen: list[Any] = []
        sights = [kit.Always(side) for side in (CLIENT, BROKER)]
        for sight in sights:
            sight.seen = self.seen
        self.bench = kit.Bench(*sights, limits=limits)

    def ask(self, asked: bytes, answered: bytes | None = None) -> Any:
        """The verdict about a request, or about the response to it; "not asked" where the filter
        leaves the frame out."""
        self.bench.feed(CLIENT, asked)
        if answered is not None:
            self.bench.feed(BROKER, answered)
        frame = self.seen[-1]
        rule = self.rules[frame.side]
        if rule.look(frame) == "no":
            return "not asked"
        found = rule.judge(frame)
        if found is None:
            return "not asked"

        async def soon() -> Any:
            return await found.verdict

        return asyncio.run(soon())

    @property
    def told(self) -> list[str]:
        return self.bench.said()


def records(values: Iterable[bytes | None]) -> bytes:
    return encode_batch([Record(n, 1000, None, value, ()) for n, value in enumerate(values)])


def produced(*values: bytes | None, **more: Any) -> bytes:
    return kit.produce(records=records(values), partition=3, **more)


def fetch_of(*values: bytes | None) -> bytes:
    return kit.fetched(12, records=records(values))


def sent_records(verdict: Any) -> list[Record]:
    assert isinstance(verdict, Replace)
    return kit.opened(kit.produced_records(bytes(4) + verdict.payload))[1]


# --- what functions see and decide


def test_a_frame_says_what_it_is(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        "def request(frame):\n"
        "    assert (frame.kind, frame.api, frame.version) == ('request', 'Produce', 9)\n"
        "    assert (frame.client, frame.correlation_id, frame.connection) == ('test', 7, 1)\n"
        "    assert (frame.client_address, frame.broker) == ('10.0.0.1:5000', '10.0.0.2:9092')\n"
        "    (record,) = frame.records()\n"
        "    assert (record.topic, record.partition, record.value) == ('orders', 3, b'v')\n"
        "    frame.drop()\n",
    )
    assert trial.ask(produced(b"v", correlation_id=7)) == Drop()
    assert trial.told == []


def test_a_response_has_its_request_and_a_connection_its_state(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        "def request(frame):\n"
        "    frame.state['asked'] = frame.body['max_wait_ms']\n"
        "def response(frame):\n"
        "    assert frame.request['max_wait_ms'] == frame.state['asked'] == 77\n"
        "    frame.body['throttle_time_ms'] = 5\n",
    )
    asked = kit.request(kit.FETCH, 12, {"max_wait_ms": 77})
    assert trial.ask(asked) is None
    verdict = trial.ask(asked, fetch_of(b"v"))
    assert isinstance(verdict, Replace)
    assert decode_response(verdict.payload, kit.FETCH, 12).body["throttle_time_ms"] == 5
    assert trial.told == []


def test_requests_are_answered_with_bodies_and_errors(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        "def request(frame):\n"
        "    if frame.body['generation_id'] == 1:\n"
        "        frame.answer(body={'throttle_time_ms': 3})\n"
        "    else:\n"
        "        frame.answer(error='rebalance_in_progress')\n",
    )
    for generation, wanted in ((1, (3, 0)), (2, (0, 27))):
        verdict = trial.ask(kit.request(kit.HEARTBEAT, 4, {"generation_id": generation}))
        assert isinstance(verdict, Respond)
        body = decode_response(verdict.payload, kit.HEARTBEAT, 4).body
        assert (body["throttle_time_ms"], body["error_code"]) == wanted


# --- what goes wrong


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("frame.body['max_wait_ms'] = 'x'", "max_wait_ms"),
        ("frame.body['max_wait'] = 3", "no such field"),
        ("frame.answer(error='NO_SUCH')", "unknown error 'NO_SUCH'"),
        ("frame.answer()", "answer(error=...) or answer(body=...)"),
        ("1 / 0", "script.py, line 2: ZeroDivisionError: division by zero"),
        ("raise SystemError('mine')", "script.py, line 2: SystemError: mine"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_frame_passes(
    tmp_path: Path, line: str, said: str
) -> None:
    trial = Trial(tmp_path, f"def request(frame):\n    {line}\n")
    for _ in range(3):
        assert trial.ask(kit.request(kit.FETCH, 12)) is None
    (told,) = trial.told
    assert said in told
    assert told.endswith("the frame is forwarded unchanged")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def request(frame:\n", "line 1: SyntaxError"),
        ("import nothing_like_that\n", "line 1: ModuleNotFoundError"),
        ("x = 1\n", "neither request(frame) nor response(frame)"),
        ("request = 5\n", "neither"),
        ("FILTER = 'apy == 1'\ndef request(frame): pass\n", "unknown field"),
        ("FILTER = 5\ndef request(frame): pass\n", "FILTER is a text"),
    ],
)
def test_a_script_that_is_wrong_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "wrong.py").write_text(text)
    with pytest.raises(FaultError) as refused:
        load_script(tmp_path / "wrong.py")
    assert said in str(refused.value)


def test_an_endless_loop_is_interrupted(tmp_path: Path) -> None:
    trial = Trial(
        tmp_path,
        "def request(frame):\n    while frame.api == 'Fetch':\n        pass\n    frame.drop()\n",
        limits=Limits(script_s=0.2),
    )
    assert trial.ask(kit.request(kit.FETCH, 12)) is None
    (told,) = trial.told
    assert "and was interrupted; the frame is forwarded unchanged" in told
    assert trial.ask(kit.beat()) == Drop()


def test_a_script_is_loaded_again_when_it_changes(tmp_path: Path) -> None:
    trial = Trial(tmp_path, "def request(frame):\n    frame.drop()\n")
    shared = trial.rules[0]._shared

    def write(text: str, number: int) -> None:
        trial.path.write_text(text)
        os.utime(trial.path, ns=(number, number))
        shared._next = 0.0

    assert trial.ask(kit.request(kit.FETCH, 12)) == Drop()
    write("def request(frame):\n    pass\n", 10**18)
    assert trial.ask(kit.request(kit.FETCH, 12)) is None
    write("def request(frame:\n", 2 * 10**18)
    assert trial.ask(kit.request(kit.FETCH, 12)) is None
    write("FILTER = 'api == Produce'\ndef request(frame):\n    frame.drop()\n", 3 * 10**18)
    assert trial.ask(kit.request(kit.FETCH, 12)) == "not asked"
    assert trial.ask(produced(b"v")) == Drop()
    told = trial.told
    assert [text for text in told if "was reloaded" in text]
    assert [text for text in told if "SyntaxError" in text and "stays" in text]


async def test_before_real_sockets(tmp_path: Path) -> None:
    path = tmp_path / "late.py"
    path.write_text(
        "def request(frame):\n    frame.delay(0.05)\n    frame.body['group_id'] = 'other'\n"
        "def response(frame):\n    frame.body['throttle_time_ms'] = 9\n"
    )
    upstream = kit.Noted(lambda *_: kit.pulse())

    async with kit.proxied(upstream, *load_script(path)) as proxy:
        told = await proxy.ask(kit.beat(group_id="mine"))
    assert decode_response(told[4:], kit.HEARTBEAT, 4).body["throttle_time_ms"] == 9
    assert decode_request(upstream.asked[0][4:]).body["group_id"] == "other"


# --- the page


def page(tmp_path: Path, name: str) -> Trial:
    return Trial(tmp_path, PAGE[name], f"{name}.py")


def test_the_page_has_ten_scripts() -> None:
    assert len(PAGE) == 10


def test_slow_leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("kafkascope.proxy.rules.scripts.script.asyncio.sleep", sleep)
    trial = page(tmp_path, "slow_leader")
    assert trial.ask(produced(b"v", client_id="billing-3")) is None
    assert slept == [0.25]
    assert trial.ask(produced(b"v", client_id="orders")) == "not asked"


def test_moving_leader(tmp_path: Path) -> None:
    trial = page(tmp_path, "moving_leader")
    verdicts = [trial.ask(produced(b"v")) for _ in range(6)]
    assert [isinstance(each, Respond) for each in verdicts] == [False, False, True] * 2


def test_no_cards(tmp_path: Path) -> None:
    trial = page(tmp_path, "no_cards")
    (record, other) = sent_records(trial.ask(produced(b"card 4111111111111111 of x", b"none")))
    assert (record.value, other.value) == (b"card **************** of x", b"none")
    assert trial.ask(produced(b"nothing")) is None


def test_no_tombstones(tmp_path: Path) -> None:
    trial = page(tmp_path, "no_tombstones")
    verdict = trial.ask(kit.request(kit.FETCH, 12), fetch_of(b"a", None, b"b"))
    assert isinstance(verdict, Replace)
    _, found = kit.opened(kit.fetched_partition(bytes(4) + verdict.payload)["records"])
    assert [(each.offset, each.value) for each in found] == [(0, b"a"), (2, b"b")]


def test_traced(tmp_path: Path) -> None:
    trial = page(tmp_path, "traced")
    (record,) = sent_records(trial.ask(produced(b"v")))
    assert [*record.headers] == [("via", b"test#1")]


def test_short_polls(tmp_path: Path) -> None:
    trial = page(tmp_path, "short_polls")
    verdict = trial.ask(kit.request(kit.FETCH, 12, {"max_wait_ms": 500}))
    assert decode_request(verdict.payload).body["max_wait_ms"] == 50
    assert trial.ask(kit.request(kit.FETCH, 12, {"max_wait_ms": 10})) is None


def test_false_lag(tmp_path: Path) -> None:
    trial = page(tmp_path, "false_lag")
    verdict = trial.ask(kit.request(kit.FETCH, 12), fetch_of(b"a"))
    assert kit.fetched_partition(bytes(4) + verdict.payload)["high_watermark"] == 1005


def test_no_auto_create(tmp_path: Path) -> None:
    trial = page(tmp_path, "no_auto_create")
    verdict = trial.ask(kit.request(kit.METADATA, 12, {"allow_auto_topic_creation": True}))
    assert decode_request(verdict.payload).body["allow_auto_topic_creation"] is False
    assert trial.ask(kit.request(kit.METADATA, 1)) is None


def test_lost_commits(tmp_path: Path) -> None:
    trial = page(tmp_path, "lost_commits")
    part = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1}
    topics = [{"name": "orders", "partitions": [part | {"committed_metadata": ""}]}]
    verdict = trial.ask(kit.request(8, 8, {"group_id": "g", "topics": topics}))
    assert isinstance(verdict, Respond)
    body = decode_response(verdict.payload, 8, 8).body
    assert body["topics"][0]["partitions"][0]["error_code"] == 14
    trial.rules[0]._shared.state(trial.seen[-1].context)["begun"] -= 11
    assert trial.ask(kit.request(8, 8, {"group_id": "g", "topics": topics})) is None


def test_no_old_clients(tmp_path: Path) -> None:
    trial = page(tmp_path, "no_old_clients")
    assert trial.ask(kit.request(kit.FETCH, 12)) == "not asked"
    trial.ask(kit.request(kit.FETCH, 3))
    (told,) = trial.told
    assert "test of 10.0.0.1:5000 fetches with version 3" in told
