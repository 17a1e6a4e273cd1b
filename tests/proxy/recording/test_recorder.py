"""Recordings: what the client saw, readable by us and by Wireshark, without secrets."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkascope.captures.model import Endpoint
from kafkascope.proxy.control.attach import Attached
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.packing import LARGE
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit import proxy as kit
from tests.kit.proxy import HEARTBEAT, METADATA, beat, proxied, request, response, until
from tests.kit.run import objects
from tests.kit.samples import exchanges_of
from tests.kit.wire import framed

COMPLAINTS = "tcp.analysis.flags or tcp.checksum.status == 0 or ip.checksum.status == 0"
CHECKED = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
"""What Wireshark leaves to whoever asks for it, since network cards compute checksums."""
SECRET = b"hunter2-hunter2"
HANDSHAKE = request(17, 1, {"mechanism": "PLAIN"}, correlation_id=2)
answer = kit.cluster(kit.endpoint(1), kit.endpoint(2))


def login(secret: bytes) -> bytes:
    return request(36, 2, {"auth_bytes": secret}, correlation_id=3)


def let_in(secret: bytes) -> bytes:
    return response(36, 2, {"auth_bytes": secret}, correlation_id=3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.pcapng"


async def session(recorder: Recorder, *rules: str) -> None:
    """Some traffic of one client."""
    async with proxied(answer, *rules, recorder=recorder) as proxy:
        client = await proxy.client()
        await client.ask(
            request(18, 3, {"client_software_name": "kit", "client_software_version": "1"}),
            HANDSHAKE,
            login(b"\0alice\0" + SECRET),
            request(METADATA, 12, correlation_id=4),
            kit.produce(size=200_000, correlation_id=5),
            beat(6),
        )
        await client.leave()
        await asyncio.sleep(0.05)


def answered(path: Path) -> list[str]:
    """The APIs in a recording, all of which were answered."""
    found = exchanges_of(path)
    assert {each.state for each in found} <= {"answered"}
    return [each.api for each in found]


SESSION = ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Metadata", "Produce", "Heartbeat"]


async def test_our_reader_sees_what_passed(path: Path) -> None:
    await session(Recorder(path))
    assert answered(path) == SESSION
    told = exchanges_of(path)
    assert not any(e.undecoded for e in told)
    assert told[3].response.body["brokers"][0]["host"] == "127.0.0.1"
    assert told[4].request_bytes > 200_000
    assert oct(path.stat().st_mode & 0o777) == "0o600"


async def test_a_host_that_is_no_utf_8_does_not_end_the_recording(path: Path) -> None:
    # Comments tell which addresses were replaced.
    odd = kit.endpoint(2) | {"host": "h\udcff\x1b"}
    async with proxied(kit.cluster(kit.endpoint(1), odd), recorder=Recorder(path)) as proxy:
        await proxy.ask(request(METADATA, 12), beat(2))
        await asyncio.sleep(0.05)
    assert answered(path) == ["Metadata", "Heartbeat"]
    assert rb"node 2 h\udcff" in path.read_bytes()


@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("before", ["open file", "link"])
async def test_a_recording_takes_no_mode_and_no_link_of_what_was_there(
    path: Path, tmp_path: Path, before: str, rotated: bool
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"theirs")
    victim.chmod(0o666)
    first = tmp_path / "session-0001.pcapng" if rotated else path
    if before == "link":
        first.symlink_to(victim)
    else:
        first.hardlink_to(victim)
    recorder = Recorder(path, overwrite=True, rotate_bytes=1 << 30 if rotated else 0)
    await session(recorder)
    assert recorder.files == [first]
    told = first.lstat()
    assert (oct(told.st_mode), told.st_nlink) == ("0o100600", 1)
    assert len(exchanges_of(first)) == 6
    assert victim.read_bytes() == b"theirs"


async def test_the_brokers_leg_holds_what_was_changed(path: Path) -> None:
    await session(Recorder(path))
    both = exchanges_of(path, legs="both")
    assert len(both) == 7
    hosts = {e.response.body["brokers"][0]["host"] for e in both if e.api == "Metadata"}
    assert hosts == {"127.0.0.1", "10.9.8.7"}
    assert b"addresses: node 1 10.9.8.7:9092" in path.read_bytes()
    (node, *_) = objects("cluster", path, "--only", "nodes", "--json")  # as the broker has them
    assert (node["node"], node["address"]) == (1, "10.9.8.7:9092")


@pytest.mark.parametrize("secrets", [False, True])
async def test_a_secret_is_in_the_file_if_that_is_wanted(path: Path, secrets: bool) -> None:
    await session(Recorder(path, secrets=secrets))
    assert (SECRET in path.read_bytes()) == secrets


TOKENS = [
    b"\0alice\0" + SECRET,
    b"admin\0a\0" + SECRET,
    b"c=biws,r=abc,p=" + SECRET,
    b"n,a=alice,\x01auth=Bearer " + SECRET + b"\x01\x01",
    b'{"version":"2020_10_22","x-amz-signature":"' + SECRET + b'"}',
    b"\0alice\0" + SECRET * 1000,
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("first", [True, False])
async def test_tokens_without_a_handshake_are_hidden(path: Path, token: bytes, first: bool) -> None:
    upstream = kit.Noted(lambda *asked: framed(b"") if token in asked[2] else answer(*asked))
    async with proxied(upstream, recorder=Recorder(path)) as proxy:
        client = await proxy.client()
        frames = [framed(token), beat(2)]
        for data in frames if first else [request(METADATA, 12), *frames]:
            await client.pour(data[:7])  # in two parts, as a network may bring it
            await client.ask(data[7:])
    assert any(token in asked for asked in upstream.asked)
    assert SECRET not in path.read_bytes()
    told = [each.api for each in exchanges_of(path)]
    # On a port of which nothing is known, a connection has to begin with a request.
    assert told == ([] if first else ["Metadata", "SaslToken", "Heartbeat"])


async def test_bytes_that_nobody_can_read_are_hidden(path: Path) -> None:
    async with proxied(answer, recorder=Recorder(path)) as proxy:
        client = await proxy.client()
        await client.pour(b"\0\0\0\x20" + b"\xff" * 14 + SECRET * 3)
        await asyncio.sleep(0.1)
    assert SECRET not in path.read_bytes()


@pytest.mark.parametrize("side", ["client", "broker", "token", "rule"])
async def test_a_frame_that_ends_early_shows_no_secret_either(path: Path, side: str) -> None:
    secret = b"\0alice\0" + SECRET

    def cut(key: int, version: int, asked: bytes) -> bytes:
        if key == HEARTBEAT:
            raise ConnectionError("the broker hangs up")
        if key != 36:
            return answer(key, version, asked)
        told = let_in(secret + bytes(9))
        return told[:-5] if side == "broker" else told

    rules = ["api == SaslAuthenticate -> truncate 40 on response"] if side == "rule" else []
    async with proxied(cut, *rules, recorder=Recorder(path)) as proxy:
        client = await proxy.client()
        old = request(17, 0, {"mechanism": "PLAIN"}, correlation_id=2)
        await client.ask(old if side == "token" else HANDSHAKE)
        if side == "token":
            client.send(framed(secret + b"more")[:-4])
        else:
            client.send(login(secret)[:-3] if side == "client" else login(secret))
        if side == "broker":
            client.send(beat(4))
        else:
            client.end()
        await client.reader.read()
    found = path.read_bytes()
    assert SECRET[:7] not in found
    assert b"******" in found


@pytest.mark.parametrize("rules", [[], ["api == SaslAuthenticate -> throttle 4MB/s"]])
async def test_frames_that_are_too_large_to_keep_show_no_secret(
    path: Path, rules: list[str]
) -> None:
    """They pass as they come; what is recorded of them is as long, and is paired."""
    secret = SECRET * 40_000
    upstream = kit.Noted(lambda key, *more: let_in(secret) if key == 36 else answer(key, *more))
    options = {"recorder": Recorder(path), "limits": Limits(frame_bytes=1000)}
    async with proxied(upstream, *rules, **options) as proxy:
        client = await proxy.client()
        await client.ask(HANDSHAKE)
        await client.pour(login(secret)[:9])
        await asyncio.sleep(0.05)
        assert secret in await client.ask(login(secret)[9:] + beat(4))
        await client.frame()
        assert secret in upstream.asked[1]
    assert SECRET[:7] not in path.read_bytes()
    assert answered(path) == ["SaslHandshake", "SaslAuthenticate", "Heartbeat"]
    told = exchanges_of(path)
    assert told[1].request_bytes > len(secret) < told[1].response_bytes


async def test_a_version_of_a_secret_that_is_not_known_is_hidden_whole(path: Path) -> None:
    async with proxied(lambda *_: None, recorder=Recorder(path)) as proxy:
        client = await proxy.client()
        client.send(framed(bytes.fromhex("0024 0063 00000001 ffff") + b"\0" + SECRET))
        await until(lambda: proxy.hub.metrics.requests)
    assert SECRET not in path.read_bytes()


@pytest.mark.tshark
@pytest.mark.parametrize("checks", [(), CHECKED])
async def test_wireshark_has_nothing_to_complain_about(path: Path, checks: tuple[str, ...]) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark")
    await session(Recorder(path))
    # Asked to check, it meets those of large packets as they come from a kernel.
    told = f"({COMPLAINTS}) and tcp.len < {LARGE}" if checks else COMPLAINTS
    for wanted, found in ((told, False), (f"tcp.len >= {LARGE}", True)):
        words = ["tshark", "-r", str(path), *checks, "-Y", wanted]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert bool(done.stdout) is found, done.stdout


async def test_a_disk_that_hangs_stops_nobody(path: Path) -> None:
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opened, never read
    recorder = Recorder(path)

    async def drain() -> None:
        while True:
            try:
                os.read(reading, 1 << 20)
            except BlockingIOError:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)

    async with proxied(answer, recorder=recorder) as proxy:
        # Nothing is read from the pipe: who waited for it, hung.
        await proxy.ask(*(kit.produce(size=1_000_000, correlation_id=n) for n in range(60)))
        await until(lambda: recorder.dropped + sum(s.dropped for s in recorder.sinks))
        os.set_blocking(reading, False)
        draining = asyncio.create_task(drain())
        await proxy.stop()
        draining.cancel()
    os.close(reading)


async def test_a_full_disk_is_said_and_traffic_goes_on() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with pytest.raises(OSError, match="No space"):
        async with proxied(answer, recorder=Recorder(Path("/dev/full"))) as proxy:
            await proxy.ask(beat())


@pytest.mark.parametrize("broken", ["packing.Packing.add", "sinks.FileSink._write"])
async def test_a_recorder_that_fails_says_so_and_keeps_nothing(
    broken: str, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*told: Any) -> None:
        raise ArithmeticError("a fault of ours")

    monkeypatch.setattr(f"kafkascope.proxy.recording.{broken}", fail)
    recorder = Recorder(path)
    async with proxied(answer, recorder=recorder) as proxy:
        client = await proxy.client()
        await client.ask(beat())
        await until(lambda: recorder.sinks[0].failed)
        await client.ask(*map(beat, range(20)))
        await until(lambda: recorder.idle)
    assert recorder.sinks[0].failed == "internal error"
    assert caplog.text.count("ArithmeticError: a fault of ours") == 1


def flush(path: Path) -> None:
    """What passed is in the file now, not only when it is closed."""
    with Attached(path) as attached:
        attached.ask("flush")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_the_command_records_and_a_kill_loses_at_most_the_last_moments(
    path: Path, tmp_path: Path, how: signal.Signals
) -> None:
    control = tmp_path / "control"
    async with kit.broker(kit.echo) as upstream:
        words = ("--upstream", upstream, "-w", path, "--json", "--control", control)
        async with kit.started(tmp_path, *words) as child:
            await kit.ask(child.bootstrap, *map(beat, range(20)))
            await asyncio.to_thread(flush, control)
            child.process.send_signal(how)
            _, output, said = await child.ended()
    assert len(exchanges_of(path)) == 20
    if how is signal.SIGTERM:
        lines = [json.loads(line) for line in output.splitlines()]
        assert [line["api"] for line in lines] == ["Heartbeat"] * 20
        assert str(path) in said
        assert not control.exists()


def test_recording_loads_no_scapy() -> None:
    code = (
        "import sys, kafkascope.proxy.recording.recorder, kafkascope.proxy.engine.server\n"
        "import kafkascope.proxy.engine.handler, kafkascope.proxy.engine.route\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('scapy', 'pyspark', 'textual')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_who_asks_for_the_recording_does_not_wait_for_more_to_come(path: Path) -> None:
    patient = Limits(collect_s=kit.PATIENCE_S, settle_s=kit.PATIENCE_S)
    recorder = Recorder(path, limits=patient)
    recorder.start()
    tap = recorder.tap(1, Endpoint("127.0.0.1", 1), Endpoint("127.0.0.1", 2), 1)
    await until(lambda: recorder.idle)
    for data in (beat(), kit.produce(size=1_000_000)):
        tap.client(0, data, 2)
        await asyncio.sleep(0.1)
        assert not recorder.idle  # it gathers
        async with asyncio.timeout(kit.PATIENCE_S / 2):
            while not recorder.idle:
                recorder.hurry()
                await asyncio.sleep(0.005)
    recorder.stop()
    assert len(exchanges_of(path)) == 2
