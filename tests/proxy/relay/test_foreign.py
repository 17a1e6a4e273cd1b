"""Another protocol than Kafka through the proxy: what it says, and what its recording shows."""

import re
from pathlib import Path
from typing import Any

import pytest

from kafkascope.captures.model import Endpoint
from kafkascope.captures.signatures import Side
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Send
from tests.captures.signatures import ALL
from tests.kit.proxy import API_VERSIONS, METADATA, Bench, request, response
from tests.kit.run import run

SECRET = b"hunter2hunter2"
KAFKA = request(METADATA, 8) + request(METADATA, 8, correlation_id=2)


class Recorded(Bench):
    """A relay with a recording."""

    def __init__(self, path: Path) -> None:
        super().__init__(rewrite=False)
        self.path = path
        self.recorder = Recorder(path)
        self.recorder.start()
        self.ends = Endpoint("10.0.0.4", 40_001), Endpoint("10.0.1.2", 9092)
        self.context.tap = self.recorder.tap(1, *self.ends, self.now_ns)

    def check(self) -> str:
        """End the connection and return what `check` says of the recording, on one line."""
        tap: Any = self.context.tap
        tap.end(None, "fin", self.now_ns + 1000)
        self.recorder.stop()
        words = ["check", "--all", *map(str, self.recorder.files)]
        found = run(*words, env={"COLUMNS": "200"})
        assert found.exception is None or isinstance(found.exception, SystemExit)
        return re.sub(r"\s+", " ", found.output)


@pytest.fixture
def bench(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "r.pcapng")


def named(name: str, text: str) -> bool:
    return name.partition(" ")[0] in text


@pytest.mark.parametrize(("side", "data", "name"), ALL, ids=lambda each: str(each)[:30])
def test_a_recording_names_what_either_side_speaks(
    side: Side, data: bytes, name: str, bench: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    whole = data + SECRET
    if side == "client" and name.startswith(("ZooKeeper", "PostgreSQL", "Redis")):
        whole = data  # the end of a word tells it
    if side == "server":
        bench.feed(CLIENT, request(API_VERSIONS, 0, client_id="shipping"))
        bench.feed(BROKER, whole)
        assert bench.sent(CLIENT) == whole
    else:
        bench.feed(CLIENT, whole)
    assert named(name, caplog.text)
    assert "10.0.0.2:9092" in caplog.text if side == "server" else "10.0.0.1" in caplog.text
    said = bench.check()
    assert named(name, said)
    assert "10.0.1.2:9092" in said
    assert SECRET not in bench.path.read_bytes()


def test_what_a_server_speaks_that_is_asked_by_a_client_of_kafka(bench: Recorded) -> None:
    bench.feed(CLIENT, request(API_VERSIONS, 0, client_id="shipping"))
    bench.feed(BROKER, b"HTTP/1.1 401 Unauthorized\r\nSet-Cookie: session=" + SECRET + b"\r\n\r\n")
    said = bench.check()
    assert "10.0.1.2:9092 speaks HTTP, not Kafka" in said
    assert "HTTP/1.1 401 Unauthorized)" in said
    assert "shipping" in said


def test_an_alert_is_forwarded_at_once_and_says_what_to_change(
    bench: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    bench.feed(CLIENT, request(API_VERSIONS, 0, client_id="shipping"))
    alert = b"\x15\3\3\0\2\2\x0a"
    assert bench.feed(BROKER, alert) == [Send(CLIENT, alert)]
    assert "--upstream-tls" in caplog.text
    assert "security.protocol=SSL" in bench.check()


@pytest.mark.parametrize("side", [CLIENT, BROKER])
def test_bytes_without_a_signature_are_masked_and_no_size(side: int, bench: Recorded) -> None:
    if side == BROKER:
        bench.feed(CLIENT, request(API_VERSIONS, 0))
    bench.feed(side, b"\xfe\xdc\xba\x98" + SECRET)
    said = bench.check()
    assert "not a Kafka request" in said if side == CLIENT else "not a Kafka response" in said
    assert "707406378" not in said
    assert b"\xfe\xdc\xba\x98" not in bench.path.read_bytes()


def test_frames_before_lost_framing_stay_readable(bench: Recorded) -> None:
    """They came with one read: what is not Kafka begins behind them."""
    bench.feed(CLIENT, KAFKA)
    bench.feed(BROKER, response(METADATA, 8))
    bench.feed(BROKER, response(METADATA, 8, correlation_id=2) + b"HTTP/1.1 408 Timeout\r\n")
    bench.check()
    listed = run("ls", bench.path).output
    rows = [line.split("\t") for line in listed.splitlines() if "Metadata v8" in line]
    assert [row[7] != "-" for row in rows] == [True, True]
    assert "HTTP" in listed


@pytest.mark.parametrize("side", [CLIENT, BROKER])
def test_lost_framing_without_a_signature_is_no_size(side: int, bench: Recorded) -> None:
    bench.feed(CLIENT, KAFKA)
    bench.feed(BROKER, response(METADATA, 8))
    bench.feed(side, b"\xfe\xdc\xba\x98" + SECRET)
    said = bench.check()
    assert "masked in the recording" in said
    assert "707406378" not in said
    assert SECRET not in bench.path.read_bytes()
