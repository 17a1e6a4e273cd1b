"""The control channel from its other end: states, streams, finding it, `--open`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.proxy.answers import PROTOCOL
from kafkascope.proxy.cli import OPEN_HOOK, proxy
from kafkascope.proxy.control.attach import Attached, NoProxy, RequestRefused, find
from kafkascope.proxy.control.control import Control
from kafkascope.proxy.engine.directory import parse_address
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit.proxy import (
    HEARTBEAT,
    PATIENCE_S,
    broker,
    connect,
    echo,
    read_frame,
    refused,
    request,
    response,
    run,
    until,
)


@asynccontextmanager
async def controlled(path: Path, **options: Any) -> AsyncIterator[tuple[KafkaProxy, Control]]:
    async with broker(echo) as up:
        made = KafkaProxy(str(up), **options)
        await made.start()
        control = Control(made)
        await control.listen(path)
        try:
            yield made, control
        finally:
            await made.stop(0.5)
            await control.close()


async def ask(path: Path, do: str, **members: Any) -> dict[str, Any]:
    def once() -> dict[str, Any]:
        with Attached(path) as attached:
            return attached.ask(do, **members)

    return await asyncio.to_thread(once)


async def leave(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class Reader(threading.Thread):
    """Collects what an iterator of a connection gives, beside the test."""

    def __init__(self, what: Any) -> None:
        super().__init__(daemon=True)
        self.what = what
        self.seen: list[Any] = []
        self.start()

    def run(self) -> None:
        for each in self.what:
            self.seen.append(each)

    @property
    def state(self) -> dict[str, Any]:
        """The last state; a notice may have come after it, or come before the next one."""
        return next(each for each in reversed(self.seen) if each["event"] == "state")


async def test_a_wish_that_is_no_number_of_seconds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with controlled(path):
        for every in (float("nan"), True, "1"):
            with pytest.raises(RequestRefused, match="must be seconds"):
                await ask(path, "watch", every=every)


async def test_states_come_at_once_and_when_frames_are_held_and_decided(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with controlled(path) as (made, _):
        with Attached(path) as attached:
            reader = Reader(attached.events(every=3600))
            await until(lambda: len(reader.seen) == 1)
            await ask(path, "hold", filter="api == Heartbeat")
            _, writer = await connect(made.bootstrap)
            writer.write(request(HEARTBEAT, 4, {"group_id": "orders"}))
            await until(lambda: bool(reader.state["held"]))
            state = reader.state
            (held,) = state["held"]
            assert held["rule"] == "hold request"
            assert held["summary"] == "orders"
            assert held["editable"]
            assert [rule["action"] for rule in state["rules"]] == ["hold"]
            assert state["status"]["held"] == 1
            assert state["metrics"]["requests_total"] == {"Heartbeat": 1}
            (connection,) = (await ask(path, "connections"))["connections"]
            assert connection["stopped"] == ["hold", None]
            assert connection["held"] == [held["number"]]
            await ask(path, "release", number=held["number"])
            await until(lambda: not reader.state["held"])
            await ask(path, "clear")
            await until(lambda: not reader.state["rules"])
            made.hub.once("key", "something is worth saying")
            await until(lambda: reader.state["status"]["notices"] != [])
            notices = [each for each in reader.seen if each["event"] == "notice"]
            assert [each["text"] for each in notices] == ["something is worth saying"]
            await leave(writer)
        await until(lambda: not reader.is_alive())
        await until(lambda: made.hub.watchers == set())


async def test_a_watcher_that_does_not_read_stops_nobody(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with controlled(path) as (made, control):
        _, deaf = await asyncio.open_unix_connection(path)
        deaf.write(b'{"do":"watch","every":0.1}\n')
        await until(lambda: bool(made.hub.watchers))
        for turn in range(300):
            made.hub.changed()
            assert (await ask(path, "status"))["protocol"] == PROTOCOL
            if turn % 100 == 0:
                await asyncio.sleep(0.1)
        deaf.close()
        await control.close()


@pytest.mark.parametrize("recording", [False, True])
def test_a_capture_starts_in_the_middle_of_open_connections(
    tmp_path: Path, recording: bool
) -> None:
    async def main() -> bytes:
        path = tmp_path / "s"
        recorder = Recorder(tmp_path / "w.pcapng") if recording else None
        async with controlled(path, recorder=recorder) as (made, control):
            reader, writer = await connect(made.bootstrap)
            writer.write(request(HEARTBEAT, 4, correlation_id=1))
            await read_frame(reader)
            await ask(path, "flush")
            attached = Attached(path)
            stream = await asyncio.to_thread(attached.capture)
            reading = asyncio.create_task(asyncio.to_thread(stream.read))
            await until(lambda: bool(control.streaming) and made.hub.recording is not None)
            for number in (2, 3):
                writer.write(request(HEARTBEAT, 4, correlation_id=number))
                await read_frame(reader)
            await leave(writer)
            await made.stop(1)
            await control.close()
            data = await reading
            attached.close()
            return data

    data = run(main())
    (tmp_path / "stream.pcapng").write_bytes(data)
    assert _ids(tmp_path / "stream.pcapng") == [2, 3]


def _ids(path: Path) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-m", "kafkascope.tui.cli", "ls", str(path), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["correlation_id"] for line in done.stdout.splitlines()]


async def test_a_proxy_that_records_nothing_stops_recording_with_the_last_stream(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s"
    async with controlled(path) as (made, _):
        reader, writer = await connect(made.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await read_frame(reader)
        first, second = Attached(path), Attached(path)
        await asyncio.to_thread(first.capture)
        await asyncio.to_thread(second.capture)
        await until(lambda: made.recorder is not None and len(made.recorder.sinks) == 2)
        assert made.hub.recording is made.recorder
        first.close()
        await until(lambda: made.recorder is not None and len(made.recorder.sinks) == 1)
        second.close()
        await until(lambda: made.recorder is None)
        assert made.hub.recording is None
        assert all(h.kafka.relay.context.tap is None for h in made.handlers)  # type: ignore[union-attr]
        writer.write(request(HEARTBEAT, 4))
        await read_frame(reader)
        await leave(writer)


async def test_exchanges_come_as_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with controlled(path) as (made, _):
        with Attached(path) as attached:
            with pytest.raises(RequestRefused, match="filter"):
                await asyncio.to_thread(attached.exchanges, "api = = 5")
            lines = await asyncio.to_thread(attached.exchanges, "correlation_id == 2")
            reading = Reader(lines)
            await until(lambda: made.hub.recording is not None)
            reader, writer = await connect(made.bootstrap)
            for number in (1, 2, 3):
                writer.write(request(HEARTBEAT, 4, correlation_id=number))
                assert await read_frame(reader) == response(HEARTBEAT, 4, correlation_id=number)
            await until(lambda: bool(reading.seen))
            await leave(writer)
        await until(lambda: made.recorder is None)
        assert [each["correlation_id"] for each in reading.seen] == [2]


async def test_after_a_flush_the_file_holds_what_passed(tmp_path: Path) -> None:
    path, file = tmp_path / "s", tmp_path / "w.pcapng"
    async with controlled(path, recorder=Recorder(file)) as (made, _):
        reader, writer = await connect(made.bootstrap)
        for number in range(5):
            writer.write(request(HEARTBEAT, 4, correlation_id=number))
            await read_frame(reader)
        assert (await ask(path, "flush"))["files"] == [str(file)]
        assert await asyncio.to_thread(_ids, file) == list(range(5))
        await leave(writer)


async def test_a_socket_that_is_in_use_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with controlled(path):
        with pytest.raises(OSError, match="another process listens"):
            await Control(KafkaProxy("127.0.0.1:1")).listen(path)
        assert (await ask(path, "status"))["mode"] == "reverse"


async def test_a_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "s"
        await asyncio.start_unix_server(lambda r, w: None, path)
        async with controlled(path):
            assert (await ask(path, "status"))["mode"] == "reverse"

    import socket

    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "s"))
    left.close()

    async with controlled(tmp_path / "s"):
        assert (await ask(tmp_path / "s", "status"))["mode"] == "reverse"


def test_proxies_are_found_by_pid_path_or_because_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(NoProxy, match="no proxy of yours is running"):
        find()
    command = [
        sys.executable,
        "-m",
        "kafkascope.proxy.cli",
        "--upstream",
        "127.0.0.1:1",
        "-q",
        "--until-eof",
    ]
    command += ["--listen", "127.0.0.1:0", "--ready-file"]
    children = [
        subprocess.Popen(
            [*command, str(tmp_path / f"ready{turn}")],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for turn in range(2)
    ]

    async def ready() -> None:
        await until(lambda: all((tmp_path / f"ready{turn}").exists() for turn in range(2)))

    try:
        run(ready())
        with pytest.raises(NoProxy, match="several"):
            find()
        path = find(str(children[0].pid))
        assert find(str(path)) == path
        with Attached(path) as attached:
            assert attached.ask("status")["pid"] == children[0].pid
            assert attached.ask("stop") == {}
        assert children[0].wait(PATIENCE_S) == 0
        assert find() == find(str(children[1].pid))
        assert children[1].stdin is not None
        children[1].stdin.close()
        assert children[1].wait(PATIENCE_S) == 0
    finally:
        for child in children:
            child.kill()
            child.wait()
            assert child.stdin is not None
            child.stdin.close()


async def test_a_second_signal_ends_it_whatever_hangs(tmp_path: Path) -> None:
    ready, path = tmp_path / "ready", tmp_path / "s"
    async with broker(lambda *asked: None) as up:  # a broker that never answers
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kafkascope.proxy.cli", "--upstream", str(up), "-q"),
            *("--listen", "127.0.0.1:0", "--grace", "600s"),
            *("--control", str(path), "--ready-file", str(ready)),
        )
        await until(lambda: ready.exists() and ready.read_text() != "")
        _, writer = await connect(ready.read_text().strip())
        writer.write(request(HEARTBEAT, 4))
        connections: list[dict[str, Any]] = []
        while not (connections and connections[0]["in_flight"]):
            connections = (await ask(path, "connections"))["connections"]
        child.send_signal(signal.SIGINT)
        # It has heard that one: two that come together are one.
        await until(lambda: refused(parse_address(ready.read_text().strip())))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(child.wait()), 0.5)
        child.send_signal(signal.SIGINT)
        await asyncio.wait_for(child.wait(), PATIENCE_S)
        assert not path.exists()
        await leave(writer)


def test_a_second_signal_ends_it_while_nobody_reads_the_lines(tmp_path: Path) -> None:
    async def main() -> int:
        ready = tmp_path / "ready"
        async with broker(echo) as up:
            command = [
                sys.executable,
                "-m",
                "kafkascope.proxy.cli",
                "--upstream",
                str(up),
                "--json",
            ]
            command += ["--listen", "127.0.0.1:0", "--control", "none", "--ready-file", str(ready)]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            await until(lambda: ready.exists() and ready.read_text() != "")
            address = parse_address(ready.read_text().strip())
            reader, writer = await connect(str(address))
            for number in range(150):  # more lines than a pipe holds, and fewer packets
                writer.write(request(HEARTBEAT, 4, correlation_id=number))
                await read_frame(reader)
            await leave(writer)
            child.send_signal(signal.SIGTERM)
            await until(lambda: refused(address))
            child.send_signal(signal.SIGTERM)
            code = await asyncio.to_thread(child.wait, PATIENCE_S)
            # What prints the lines could not: the pipe holds a part of them.
            assert child.stdout is not None
            child.stdout.close()
            return code

    assert run(main()) == 130


def test_open_shows_a_proxy_of_its_own_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--open"]
    arguments += ["-w", str(tmp_path / "w.pcapng"), "--schemas", str(tmp_path)]
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["kafkascope", "proxy", *arguments])
    seen = []

    def screen(path: Path, schemas: SchemaOptions, filter_text: str) -> int:
        assert schemas.folders == (str(tmp_path),)
        assert filter_text == ""
        with Attached(path) as attached:
            seen.append(attached.ask("status"))
        return 7

    @click.group()
    @click.pass_context
    def group(context: click.Context) -> None:
        context.meta[OPEN_HOOK] = screen

    group.add_command(proxy)
    done = CliRunner().invoke(group, ["proxy", *arguments], standalone_mode=False)
    assert done.return_value == 7, done.output
    (status,) = seen
    assert status["pid"] != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(status["pid"], 0)
    assert f"capture: {tmp_path / 'w.pcapng'}" in done.output
    assert (tmp_path / "w.pcapng").exists()


def test_only_lines_that_a_filter_wants_are_printed() -> None:
    async def main() -> bytes:
        async with broker(echo) as up:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "kafkascope.proxy.cli", "--upstream", str(up), "--json"),
                *("--listen", "127.0.0.1:0", "--control", "none", "--until-eof"),
                *("-Y", "correlation_id == 2", "--ready-file", "/dev/stderr"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert child.stderr is not None
            bootstrap = ""
            while not bootstrap.startswith("127."):
                bootstrap = (await child.stderr.readline()).decode()
            reader, writer = await connect(bootstrap.strip())
            for number in (1, 2, 3):
                writer.write(request(HEARTBEAT, 4, correlation_id=number))
                await read_frame(reader)
            await leave(writer)
            return (await child.communicate(b""))[0]

    printed = run(main()).splitlines()
    assert [json.loads(line)["correlation_id"] for line in printed] == [2]
