"""What a running proxy and a served capture say, held against docs/control.schema.json."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from tests import control_schema
from tests.kit.batches import batch
from tests.kit.proxy import HEARTBEAT, PATIENCE_S, PRODUCE, request
from tests.kit.samples import ROOT

SAMPLE = str(ROOT / "captures" / "samples" / "librdkafka.pcap")


class Steered:
    """kafkascope with `--control -`; what is said is held against the schema."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kafkascope", *arguments, "--control", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.asked: set[str] = set()

    def line(self) -> dict[str, Any]:
        return json.loads(self.process.stdout.readline())

    def ask(self, do: str, **members: Any) -> dict[str, Any]:
        asked = {"do": do, **members}
        control_schema.check_request(asked)
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.line()
        control_schema.check_answer(asked, answer)
        self.asked.add(do)
        return answer

    def end(self) -> int:
        """Close its stdin; its exit code."""
        with self.process as process:
            process.stdin.close()
            return process.wait(PATIENCE_S)


@pytest.fixture
def served() -> Iterator[Steered]:
    broker = Steered("serve", SAMPLE, "--listen", "127.0.0.1:0")
    yield broker
    assert broker.end() == 0


@pytest.fixture
def steered(served: Steered, tmp_path: Path) -> Iterator[Steered]:
    upstream = served.ask("status")["bootstrap"]
    listen = ("--listen", "127.0.0.1:0", "--quiet", "-w", str(tmp_path / "w.pcapng"))
    made = Steered("proxy", "--upstream", upstream, *listen, "--grace", "0s")
    yield made
    assert made.end() == 0


def connected(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def test_the_schema_is_one() -> None:
    schema = json.loads(control_schema.PATH.read_text())
    Draft202012Validator.check_schema(schema)
    for wrong in ({"do": "dance"}, {"ok": 1}, {"event": "nothing"}, {"do": "drop", "number": "1"}):
        with pytest.raises(ValidationError):
            Draft202012Validator(schema).validate(wrong)


def test_it_has_what_the_page_has() -> None:
    page = (ROOT / "docs" / "control.md").read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) - {"do"}
    assert told == control_schema.names("request") == control_schema.names("answer")


def test_a_served_capture_is_steered_and_ends_with_stdin(served: Steered) -> None:
    status = served.ask("status", id=[1])
    assert status["id"] == [1]
    assert status["mode"] == "serve"
    connected(status["bootstrap"]).close()
    assert served.ask("flush")["error"] == "unknown command 'flush' for a served capture"


@pytest.mark.parametrize("do", ["status", "stop"])
def test_it_is_stopped(served: Steered, do: str) -> None:
    assert served.ask(do)["ok"]


def test_all_requests_answers_and_events(steered: Steered) -> None:
    ask = steered.ask
    status = ask("status", id="first")
    assert status["protocol"] == 3
    with connected(status["bootstrap"]) as client:
        ask("fault", rule="api == Fetch -> delay 1ms", name="slow")
        assert not ask("fault", rule="nonsense")["ok"]
        ask("hold", filter="api == Heartbeat")
        client.sendall(request(HEARTBEAT, 4))
        while not (held := ask("held")["held"]):
            pass
        number = held[0]["number"]
        ask("edit", number=number, body={**ask("show", number=number)["body"], "group_id": "g"})
        client.sendall(request(HEARTBEAT, 4, correlation_id=2) * 2)
        while len(held := ask("held")["held"]) < 1:
            pass
        ask("drop", number=held[0]["number"])
        ask("release", number="all")
        ask("rules")
        ask("connections")
        ask("metrics")
        ask("remove", name="slow")
        ask("hold", filter=None)
        ask("clear")
        ask("flush")
        met = ask("expect", filter="api == Heartbeat", within=PATIENCE_S, limit=1)
        assert met["met"]
        assert len(met["exchanges"]) == 1
        for stream in ("capture", "exchanges"):
            assert ask(stream)["error"] == "streams need the control socket"
        ask("watch", every=0.1)
        steered.process.stdin.write('{"do":"status"}\n')
        steered.process.stdin.flush()
        events = [line for line in (steered.line() for _ in range(3)) if "event" in line]
        assert events
        for event in events:
            control_schema.check_event(event)
    assert steered.asked == control_schema.names("request") - {"stop"}


def test_what_was_sent_instead_is_told(steered: Steered) -> None:
    ask = steered.ask
    with connected(ask("status")["bootstrap"]) as client:
        client.sendall(request(HEARTBEAT, 4) + request(HEARTBEAT, 3))
        assert ask("expect", filter="api == Heartbeat", count=2, within=PATIENCE_S)["text"] == ""
    wrong = ask("expect", filter="api == Heartbeat and version == 2")
    sent = {"Heartbeat v3": 1, "Heartbeat v4": 1}
    assert (wrong["met"], wrong["found"], wrong["sent"]) == (False, 0, sent)
    assert wrong["text"] == (
        "no request with api == Heartbeat and version == 2; "
        "there were 1 Heartbeat v3, 1 Heartbeat v4\n"
        "  Heartbeat v4 of test (number 1) came nearest: version is 4"
    )
    near = ask(
        "expect", filter="(api == Fetch or api == Heartbeat) and client == x and version > 1"
    )
    assert near["text"].endswith("Heartbeat v4 of test (number 1) came nearest: client is test")
    far = ask("expect", filter='api == Fetch and "nothing"')
    assert far["text"].endswith("there were 1 Heartbeat v3, 1 Heartbeat v4")
    with connected(ask("status")["bootstrap"]) as client:
        client.sendall(request(HEARTBEAT, 1, client_id="\x1b[31m\n"))
        ask("expect", filter="version == 1", within=PATIENCE_S)
    raw = ask("expect", filter="version == 1 and client == x")["text"]
    assert raw.count("\n") == 1
    assert "\x1b" not in raw
    many = ask("expect", filter="api == Heartbeat and version > 2", count=1, within=0.2)
    assert many["text"].startswith(
        "2 requests, not 1, with api == Heartbeat and version > 2; there "
    )
    none = ask("expect", filter="version == 4", count=0)
    assert none["text"].startswith("1 request, not 0, with version == 4;")
    assert ask("expect", filter="api == Fetch", count=0)["met"]
    last = max(each["time"] for each in ask("expect")["exchanges"])
    assert last
    later = ask("expect", since_ns=4_000_000_000 * 10**9)
    assert later["text"] == "no request; there were none at all"


def test_records_are_expected(steered: Steered) -> None:
    ask = steered.ask
    with connected(ask("status")["bootstrap"]) as client:
        data = [{"index": 0, "records": batch([(None, b"milk"), (None, b"eggs")])}]
        topics = [{"name": "orders", "partition_data": data}]
        client.sendall(request(PRODUCE, 9, {"acks": 1, "topic_data": topics}))
        met = ask("expect", of="records", filter="topic == orders", count=2, within=PATIENCE_S)
    assert met["text"] == ""
    assert [each["value"] for each in met["records"]] == ["milk", "eggs"]
    assert met["sent"] == {"orders (produce)": 2}
    one = ask("expect", of="records", filter='record.value == "eggs"', limit=0)
    assert (one["met"], one["found"], one["records"]) == (True, 1, [])
    none = ask("expect", of="records", filter='record.value == "bread"')
    assert none["text"] == (
        'no record with record.value == "bread"; there were 2 of orders (produce)'
    )
    later = ask("expect", of="records", since_ns=4_000_000_000 * 10**9)
    assert later["text"] == "no record; there were none at all"


def test_findings_are_expected(steered: Steered) -> None:
    ask = steered.ask
    assert ask("expect", of="findings", count=0)["met"]
    ask("fault", rule="api == Heartbeat -> error UNKNOWN_MEMBER_ID")
    with connected(ask("status")["bootstrap"]) as client:
        client.sendall(request(HEARTBEAT, 4))
        assert ask("expect", filter="api == Heartbeat", within=PATIENCE_S)["met"]
    some = ask("expect", of="findings", limit=1)
    assert (some["met"], len(some["findings"])) == (True, 1)
    worst = some["findings"][0]
    bad = ask("expect", of="findings", level=worst["severity"], count=0)
    head, first, *rest = bad["text"].split("\n")
    noun = "finding" if bad["found"] == 1 else "findings"
    at = "" if worst["severity"] == "chat" else f" of level {worst['severity']} or worse"
    assert head == f"{bad['found']} {noun}{at}:"
    assert first == f"{worst['severity']}: {worst['text']}"
    assert any(line.startswith("    fix: ") for line in rest)
    assert bad["sent"][f"{worst['severity']} {worst['name']}"] >= 1
    names = [each["name"] for each in ask("expect", of="findings")["findings"]]
    assert ask("expect", of="findings", count=0, allow=names)["met"]
    begun = ask("expect", of="findings", since_ns=4_000_000_000 * 10**9)
    assert begun["found"] == 0


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"filter": "api = Fetch"}, 'filter: unexpected "="'),
    ({"filter": 5}, "`filter` must be a string"),
    ({"count": -1}, "`count` must be 0 or a positive number"),
    ({"within": "1s"}, "`within` must be seconds"),
    ({"limit": True}, "`limit` must be"),
    ({"filter": "marked"}, "marked is available in the terminal UI only"),
    ({"of": "topics"}, "`of` must be one of exchanges, records, findings, not 'topics'"),
    ({"of": "records", "filter": "record.value ="}, "filter: "),
    (
        {"of": "findings", "level": "grave"},
        "`level` must be one of error, warning, note, chat, not",
    ),
    ({"of": "findings", "allow": ["x"]}, "`allow`: unknown rule 'x' (kafkascope check "),
    ({"of": "findings", "allow": "x"}, "`allow` must be a list of names"),
]


def test_a_wrong_expectation_is_refused(steered: Steered) -> None:
    for members, sentence in WRONG:
        steered.process.stdin.write(json.dumps({"do": "expect", **members}) + "\n")
        steered.process.stdin.flush()
        answer = steered.line()
        assert not answer["ok"]
        assert sentence in answer["error"], members
        assert steered.ask("expect", filter="api == Fetch", count=0)["met"]


def test_without_a_recording_nothing_can_be_expected(served: Steered) -> None:
    upstream = served.ask("status")["bootstrap"]
    made = Steered("proxy", "--upstream", upstream, "--listen", "127.0.0.1:0", "--quiet")
    try:
        told = made.ask("expect")
    finally:
        assert made.end() == 0
    assert told["error"] == "nothing is recorded: start the proxy with -w FILE"


def readers(of: Steered) -> list[int]:
    """The processes that read the recording of a proxy."""
    place = Path(f"/proc/{of.process.pid}/task/{of.process.pid}/children")
    found = []
    for pid in map(int, place.read_text().split()):
        with contextlib.suppress(OSError):  # it has ended
            if b"verdicts" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_the_reader_of_the_recording_is_one_and_ends_with_the_proxy(
    served: Steered, tmp_path: Path
) -> None:
    upstream = served.ask("status")["bootstrap"]
    listen = ("--listen", "127.0.0.1:0", "--quiet", "-w", str(tmp_path / "w.pcapng"))
    made = Steered("proxy", "--upstream", upstream, *listen)
    assert readers(made) == []
    assert made.ask("expect", count=0)["met"]
    (first,) = readers(made)
    assert made.ask("expect", count=0)["met"]
    assert readers(made) == [first]
    os.kill(first, signal.SIGKILL)
    while readers(made) == [first]:
        pass
    told = made.ask("expect", count=0)
    assert told["ok"] or "has ended" in told["error"]
    assert made.ask("expect", count=0)["met"]
    (second,) = readers(made)
    with made.process as process:
        process.kill()
    end = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{second}").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("given", ["stdin", "stdout"])
@pytest.mark.parametrize("command", [("serve", SAMPLE), ("proxy", "--upstream", "x:1", "--quiet")])
def test_a_file_is_no_control_channel(command: tuple[str, ...], given: str, tmp_path: Path) -> None:
    words = [*command, "--listen", "127.0.0.1:0", "--control", "-"]
    with (tmp_path / "file").open("w+") as file:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | {given: file}
        done = subprocess.Popen([sys.executable, "-m", "kafkascope", *words], text=True, **streams)
        _, said = done.communicate(timeout=PATIENCE_S)
    assert done.returncode == 2
    assert "--control - needs pipes as stdin and stdout" in said
