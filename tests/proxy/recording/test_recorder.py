"""Recordings: what the client saw, readable by us and by Wireshark, without secrets."""

from __future__ import annotations

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

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.captures.model import Endpoint
from kafkascope.proxy.control.attach import Attached
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.packing import LARGE
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.faults import parse_fault
from tests.kit.proxy import (
    HEARTBEAT,
    METADATA,
    PATIENCE_S,
    broker,
    connect,
    echo,
    endpoint,
    produce,
    read_frame,
    request,
    response,
    until,
)
from tests.kit.run import objects
from tests.kit.wire import framed

COMPLAINTS = "tcp.analysis.flags or tcp.checksum.status == 0 or ip.checksum.status == 0"
CHECKED = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
"""What Wireshark leaves to whoever asks for it, since network cards compute checksums."""
SECRET = b"hunter2-hunter2"


def answer(key: int, version: int, asked: bytes) -> bytes:
    correlation_id = int.from_bytes(asked[8:12], "big")
    if key == METADATA:
        body = {"brokers": [endpoint(1), endpoint(2)]}
        return response(METADATA, version, body, correlation_id=correlation_id)
    return echo(key, version, asked)


async def session(recorder: Recorder, *, rules: Any = ()) -> None:
    """Some traffic of one client."""
    async with broker(answer) as up, KafkaProxy(str(up), recorder=recorder, rules=rules) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        for data in (
            request(18, 3, {"client_software_name": "kit", "client_software_version": "1"}),
            request(17, 1, {"mechanism": "PLAIN"}, correlation_id=2),
            request(36, 2, {"auth_bytes": b"\0alice\0" + SECRET}, correlation_id=3),
            request(METADATA, 12, correlation_id=4),
            produce(size=200_000, correlation_id=5),
            request(HEARTBEAT, 4, correlation_id=6),
        ):
            writer.write(data)
            await read_frame(reader)
        writer.close()
        await asyncio.sleep(0.05)


def exchanges(path: Path, legs: Any = "client") -> list[Any]:
    with open_capture([path], legs=legs) as capture:
        found = list(capture.exchanges())
        assert capture.damage is None
    return found


def test_our_reader_sees_what_passed(tmp_path: Path) -> None:
    path = tmp_path / "session.pcapng"
    asyncio.run(session(Recorder(path)))
    told = exchanges(path)
    assert [(e.api, e.state) for e in told] == [
        ("ApiVersions", "answered"),
        ("SaslHandshake", "answered"),
        ("SaslAuthenticate", "answered"),
        ("Metadata", "answered"),
        ("Produce", "answered"),
        ("Heartbeat", "answered"),
    ]
    assert not any(e.undecoded for e in told)
    assert told[3].response.body["brokers"][0]["host"] == "127.0.0.1"
    assert told[4].request_bytes > 200_000
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_a_host_that_is_no_utf_8_does_not_end_the_recording(tmp_path: Path) -> None:
    # Comments tell which addresses were replaced.
    def told(key: int, version: int, asked: bytes) -> bytes:
        if key != METADATA:
            return echo(key, version, asked)
        hosts = [endpoint(1), endpoint(2) | {"host": "h\udcff\x1b"}]
        correlation_id = int.from_bytes(asked[8:12], "big")
        return response(METADATA, version, {"brokers": hosts}, correlation_id=correlation_id)

    async def passed(recorder: Recorder) -> None:
        async with broker(told) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
            reader, writer = await connect(proxy.bootstrap)
            for data in (request(METADATA, 12), request(HEARTBEAT, 4, correlation_id=2)):
                writer.write(data)
                await read_frame(reader)
            writer.close()
            await asyncio.sleep(0.05)

    path = tmp_path / "session.pcapng"
    asyncio.run(passed(Recorder(path)))
    found = exchanges(path)
    assert [(each.api, each.state) for each in found] == [
        ("Metadata", "answered"),
        ("Heartbeat", "answered"),
    ]
    assert rb"node 2 h\udcff" in path.read_bytes()


@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("before", ["open file", "link"])
def test_a_recording_takes_no_mode_and_no_link_of_what_was_there(
    tmp_path: Path, before: str, rotated: bool
) -> None:
    path, victim = tmp_path / "session.pcapng", tmp_path / "victim"
    victim.write_bytes(b"theirs")
    victim.chmod(0o666)
    first = tmp_path / "session-0001.pcapng" if rotated else path
    if before == "link":
        first.symlink_to(victim)
    else:
        first.hardlink_to(victim)
    recorder = Recorder(path, overwrite=True, rotate_bytes=1 << 30 if rotated else 0)
    asyncio.run(session(recorder))
    assert recorder.files == [first]
    told = first.lstat()
    assert (oct(told.st_mode), told.st_nlink) == ("0o100600", 1)
    assert len(exchanges(first)) == 6
    assert victim.read_bytes() == b"theirs"


def test_the_brokers_leg_holds_what_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "session.pcapng"
    asyncio.run(session(Recorder(path)))
    both = exchanges(path, "both")
    assert len(both) == 7
    hosts = {e.response.body["brokers"][0]["host"] for e in both if e.api == "Metadata"}
    assert hosts == {"127.0.0.1", "10.9.8.7"}
    assert b"addresses: node 1 10.9.8.7:9092" in path.read_bytes()
    (node, *_) = objects("cluster", path, "--only", "nodes", "--json")  # as the broker has them
    assert (node["node"], node["address"]) == (1, "10.9.8.7:9092")


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "session.pcapng"
    asyncio.run(session(Recorder(path)))
    assert SECRET not in path.read_bytes()
    path = tmp_path / "open.pcapng"
    asyncio.run(session(Recorder(path, secrets=True)))
    assert SECRET in path.read_bytes()


async def test_raw_tokens_are_hidden(tmp_path: Path) -> None:
    def old(key: int, version: int, asked: bytes) -> bytes:
        return echo(17, 0, asked) if key == 17 else framed(b"")

    async with (
        broker(old) as upstream,
        KafkaProxy(str(upstream), recorder=Recorder(tmp_path / "old.pcapng")) as proxy,
    ):
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(17, 0, {"mechanism": "PLAIN"}))
        await read_frame(reader)
        writer.write(framed(b"\0alice\0" + SECRET))
        await read_frame(reader)
        writer.close()
    assert SECRET not in (tmp_path / "old.pcapng").read_bytes()


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
async def test_tokens_without_a_handshake_are_hidden(
    tmp_path: Path, token: bytes, first: bool
) -> None:
    path = tmp_path / "mid.pcapng"
    came: list[bytes] = []

    def old(key: int, version: int, asked: bytes) -> bytes:
        came.append(asked)
        return framed(b"") if token in asked else answer(key, version, asked)

    async with broker(old) as upstream, KafkaProxy(str(upstream), recorder=Recorder(path)) as p:
        reader, writer = await connect(p.bootstrap)
        frames = [framed(token), request(HEARTBEAT, 4, correlation_id=2)]
        if not first:
            frames.insert(0, request(METADATA, 12, correlation_id=1))
        for data in frames:
            # In two parts, as a network may bring it.
            writer.write(data[:7])
            await writer.drain()
            writer.write(data[7:])
            await read_frame(reader)
        writer.close()
    assert any(token in asked for asked in came)
    assert SECRET not in path.read_bytes()
    with open_capture([path]) as capture:
        told = [each.api for each in capture.exchanges()]
    # On a port of which nothing is known, a connection has to begin with a request.
    assert told == ([] if first else ["Metadata", "SaslToken", "Heartbeat"])


async def test_bytes_that_nobody_can_read_are_hidden(tmp_path: Path) -> None:
    path = tmp_path / "odd.pcapng"

    recorder = Recorder(path)
    async with broker(answer) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
        _, writer = await connect(proxy.bootstrap)
        writer.write(b"\0\0\0\x20" + b"\xff" * 14 + SECRET * 3)
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.close()
    assert SECRET not in path.read_bytes()


@pytest.mark.parametrize("side", ["client", "broker", "token", "rule"])
async def test_a_frame_that_ends_early_shows_no_secret_either(tmp_path: Path, side: str) -> None:
    path = tmp_path / "cut.pcapng"
    secret = b"\0alice\0" + SECRET

    def cut(key: int, version: int, asked: bytes) -> bytes:
        if key == HEARTBEAT:
            raise ConnectionError("the broker hangs up")
        if key != 36:
            return answer(key, version, asked)
        told = response(36, 2, {"auth_bytes": secret + bytes(9)}, correlation_id=3)
        return told[:-5] if side == "broker" else told

    version = 0 if side == "token" else 1
    fault = parse_fault("api == SaslAuthenticate -> truncate 40 on response")
    rules = [fault] if side == "rule" else []
    async with (
        broker(cut) as up,
        KafkaProxy(str(up), recorder=Recorder(path), rules=rules) as proxy,
    ):
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(17, version, {"mechanism": "PLAIN"}, correlation_id=2))
        await read_frame(reader)
        if side == "token":
            writer.write(framed(secret + b"more")[:-4])
        else:
            asked = request(36, 2, {"auth_bytes": secret}, correlation_id=3)
            writer.write(asked[:-3] if side == "client" else asked)
        if side == "broker":
            writer.write(request(HEARTBEAT, 4, correlation_id=4))
        else:
            writer.write_eof()
        await reader.read()
        writer.close()
    found = path.read_bytes()
    assert SECRET[:7] not in found
    assert b"******" in found


@pytest.mark.parametrize("throttled", [False, True])
async def test_frames_that_are_too_large_to_keep_show_no_secret(
    tmp_path: Path, throttled: bool
) -> None:
    """They pass as they come; what is recorded of them is as long, and is paired."""
    path = tmp_path / "large.pcapng"
    secret = SECRET * 40_000
    seen: list[bytes] = []

    def large(key: int, version: int, asked: bytes) -> bytes:
        if key != 36:
            return answer(key, version, asked)
        seen.append(asked)
        return response(36, 2, {"auth_bytes": secret}, correlation_id=3)

    rules = [parse_fault("api == SaslAuthenticate -> throttle 4MB/s")] if throttled else []
    async with (
        broker(large) as up,
        KafkaProxy(
            str(up), recorder=Recorder(path), rules=rules, limits=Limits(frame_bytes=1000)
        ) as proxy,
    ):
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(17, 1, {"mechanism": "PLAIN"}, correlation_id=2))
        await read_frame(reader)
        asked = request(36, 2, {"auth_bytes": secret}, correlation_id=3)
        writer.write(asked[:9])
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(asked[9:] + request(HEARTBEAT, 4, correlation_id=4))
        assert secret in await read_frame(reader)
        await read_frame(reader)
        assert secret in seen[0]
        writer.close()
    assert SECRET[:7] not in path.read_bytes()
    told = exchanges(path)
    assert [(e.api, e.state) for e in told] == [
        ("SaslHandshake", "answered"),
        ("SaslAuthenticate", "answered"),
        ("Heartbeat", "answered"),
    ]
    assert told[1].request_bytes > len(secret) < told[1].response_bytes


async def test_a_version_of_a_secret_that_is_not_known_is_hidden_whole(tmp_path: Path) -> None:
    async with (
        broker(lambda *_: None) as upstream,
        KafkaProxy(str(upstream), recorder=Recorder(tmp_path / "new.pcapng")) as proxy,
    ):
        _, writer = await connect(proxy.bootstrap)
        head = bytes.fromhex("0024 0063 00000001 ffff".replace(" ", ""))
        writer.write(framed(head + b"\0" + SECRET))
        await until(lambda: proxy.hub.metrics.requests)
        writer.close()
    assert SECRET not in (tmp_path / "new.pcapng").read_bytes()


@pytest.mark.tshark
@pytest.mark.parametrize("checks", [(), CHECKED])
def test_wireshark_has_nothing_to_complain_about(tmp_path: Path, checks: tuple[str, ...]) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark")
    path = tmp_path / "session.pcapng"
    asyncio.run(session(Recorder(path)))
    # Asked to check, it meets those of large packets as they come from a kernel.
    told = f"({COMPLAINTS}) and tcp.len < {LARGE}" if checks else COMPLAINTS
    for wanted, found in ((told, False), (f"tcp.len >= {LARGE}", True)):
        done = subprocess.run(
            ["tshark", "-r", str(path), *checks, "-Y", wanted],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert bool(done.stdout) is found, done.stdout


def test_a_fault_is_told_in_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "session.pcapng"
    rules = [parse_fault("api == Heartbeat -> error REBALANCE_IN_PROGRESS")]
    asyncio.run(session(Recorder(path), rules=rules))
    (heartbeat,) = [e for e in exchanges(path) if e.api == "Heartbeat"]
    assert heartbeat.response.body["error_code"] == 27
    assert b"fault: error REBALANCE_IN_PROGRESS" in path.read_bytes()


async def test_files_rotate_and_the_oldest_go(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.pcapng", rotate_bytes=300_000, keep_bytes=900_000)

    async with broker(answer) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        for number in range(30):
            writer.write(produce(size=100_000, correlation_id=number))
            await read_frame(reader)
            await until(lambda: recorder.idle)  # a batch may not be cut
        writer.close()
    files = sorted(tmp_path.iterdir())
    assert files == recorder.files
    assert 1 < len(files) <= 4
    assert sum(f.stat().st_size for f in files) <= 1_000_000
    for path in files:
        exchanges(path)


async def test_a_disk_that_hangs_stops_nobody(tmp_path: Path) -> None:
    pipe = tmp_path / "slow.pcapng"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # opened, never read
    recorder = Recorder(pipe)

    async def drain() -> None:
        while True:
            try:
                os.read(reading, 1 << 20)
            except BlockingIOError:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)

    async with broker(answer) as upstream:
        proxy = KafkaProxy(str(upstream), recorder=recorder)
        await proxy.start()
        reader, writer = await connect(proxy.bootstrap)
        for number in range(60):  # nothing is read from the pipe: who waited for it, hung
            writer.write(produce(size=1_000_000, correlation_id=number))
            await read_frame(reader)
        writer.close()
        await until(lambda: recorder.dropped + sum(s.dropped for s in recorder.sinks))
        os.set_blocking(reading, False)
        draining = asyncio.create_task(drain())
        await proxy.stop()
        draining.cancel()
    os.close(reading)


def test_a_full_disk_is_said_and_traffic_goes_on() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    recorder = Recorder(Path("/dev/full"))

    async def main() -> None:
        async with broker(answer) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
            reader, writer = await connect(proxy.bootstrap)
            writer.write(request(HEARTBEAT, 4))
            await read_frame(reader)
            writer.close()

    with pytest.raises(OSError, match="No space"):
        asyncio.run(main())


@pytest.mark.parametrize(
    "broken",
    [
        "kafkascope.proxy.recording.packing.Packing.add",
        "kafkascope.proxy.recording.sinks.FileSink._write",
    ],
)
async def test_a_recorder_that_fails_says_so_and_keeps_nothing(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*told: Any) -> None:
        raise ArithmeticError("a fault of ours")

    monkeypatch.setattr(broken, fail)
    recorder = Recorder(tmp_path / "r.pcapng")

    async with broker(answer) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await read_frame(reader)
        await until(lambda: recorder.sinks[0].failed)
        for number in range(20):
            writer.write(request(HEARTBEAT, 4, correlation_id=number))
            await read_frame(reader)
        await until(lambda: recorder.idle)
        writer.close()
    assert recorder.sinks[0].failed == "internal error"
    assert caplog.text.count("ArithmeticError: a fault of ours") == 1


def run_cli(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "kafkascope.tui.cli", "proxy", *arguments], **more
    )


async def through_cli(
    process: subprocess.Popen[bytes], ready: Path, how: signal.Signals, count: int = 20
) -> None:
    await until(lambda: ready.exists() and ready.read_text())
    reader, writer = await connect(ready.read_text().strip())
    for number in range(count):
        writer.write(request(HEARTBEAT, 4, correlation_id=number))
        await read_frame(reader)
    await asyncio.to_thread(flush, ready.with_name("control"))
    process.send_signal(how)
    writer.close()


def flush(path: Path) -> None:
    """What passed is in the file now, not only when it is closed."""
    with Attached(path) as attached:
        attached.ask("flush")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_command_records_and_a_kill_loses_at_most_the_last_moments(
    tmp_path: Path, how: signal.Signals
) -> None:
    path, ready = tmp_path / "cli.pcapng", tmp_path / "ready"

    async def main() -> tuple[bytes, bytes]:
        async with broker(echo) as upstream:
            process = run_cli(
                *("--upstream", str(upstream), "--listen", "127.0.0.1:0", "-w", str(path)),
                *("--ready-file", str(ready), "--json", "--control", str(tmp_path / "control")),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                await through_cli(process, ready, how)
                return await asyncio.to_thread(process.communicate, None, PATIENCE_S)
            finally:
                process.kill()
                process.wait()

    output, said = asyncio.run(main())
    assert len(exchanges(path)) == 20
    if how is signal.SIGTERM:
        lines = [json.loads(line) for line in output.splitlines()]
        assert [line["api"] for line in lines] == ["Heartbeat"] * 20
        assert str(path) in said.decode()
        assert not (tmp_path / "control").exists()


def test_recording_loads_no_scapy() -> None:
    code = (
        "import sys, kafkascope.proxy.recording.recorder, kafkascope.proxy.engine.server\n"
        "import kafkascope.proxy.engine.handler, kafkascope.proxy.engine.route\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('scapy', 'pyspark', 'textual')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_who_asks_for_the_recording_does_not_wait_for_more_to_come(tmp_path: Path) -> None:
    patient = Limits(collect_s=PATIENCE_S, settle_s=PATIENCE_S)

    recorder = Recorder(tmp_path / "s.pcapng", limits=patient)
    recorder.start()
    client, server = Endpoint("127.0.0.1", 1), Endpoint("127.0.0.1", 2)
    tap = recorder.tap(1, client, server, 1)
    assert tap is not None
    await until(lambda: recorder.idle)
    for data in (request(HEARTBEAT, 4), produce(size=1_000_000)):
        tap.client(0, data, 2)
        await asyncio.sleep(0.1)
        assert not recorder.idle  # it gathers
        async with asyncio.timeout(PATIENCE_S / 2):
            while not recorder.idle:
                recorder.hurry()
                await asyncio.sleep(0.005)
    recorder.stop()
    assert len(exchanges(tmp_path / "s.pcapng")) == 2
