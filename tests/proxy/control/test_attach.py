"""The control channel from its other end: states, streams, finding it, `--open`."""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
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
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit import proxy as kit
from tests.kit.proxy import beat, pulse, until
from tests.kit.run import objects


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


@asynccontextmanager
async def controlled(path: Path, **options: Any) -> AsyncIterator[tuple[kit.Proxied, Control]]:
    async with kit.proxied(**options) as made:
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


def numbers(path: Path) -> list[int]:
    """The correlation ids in a capture."""
    return [each["correlation_id"] for each in objects("ls", path, "--json")]


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


async def test_a_wish_that_is_no_number_of_seconds_is_refused(path: Path) -> None:
    async with controlled(path):
        for every in (float("nan"), True, "1"):
            with pytest.raises(RequestRefused, match="must be seconds"):
                await ask(path, "watch", every=every)


async def test_states_come_at_once_and_when_frames_are_held_and_decided(path: Path) -> None:
    async with controlled(path) as (made, _):
        with Attached(path) as attached:
            reader = Reader(attached.events(every=3600))
            await until(lambda: len(reader.seen) == 1)
            await ask(path, "hold", filter="api == Heartbeat")
            client = await made.client()
            client.send(beat(group_id="orders"))
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
        await until(lambda: not reader.is_alive())
        await until(lambda: made.hub.watchers == set())


async def test_a_watcher_that_does_not_read_stops_nobody(path: Path) -> None:
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
async def test_a_capture_starts_in_the_middle_of_open_connections(
    path: Path, tmp_path: Path, recording: bool
) -> None:
    recorder = Recorder(tmp_path / "w.pcapng") if recording else None
    async with controlled(path, recorder=recorder) as (made, control):
        client = await made.client()
        await client.ask(beat(1))
        await ask(path, "flush")
        attached = Attached(path)
        stream = await asyncio.to_thread(attached.capture)
        reading = asyncio.create_task(asyncio.to_thread(stream.read))
        await until(lambda: bool(control.streaming) and made.hub.recording is not None)
        await client.ask(beat(2), beat(3))
        await client.leave()
        await made.stop(1)
        await control.close()
        (tmp_path / "stream.pcapng").write_bytes(await reading)
        attached.close()
    assert numbers(tmp_path / "stream.pcapng") == [2, 3]


async def test_a_proxy_that_records_nothing_stops_recording_with_the_last_stream(
    path: Path,
) -> None:
    async with controlled(path) as (made, _):
        client = await made.client()
        await client.ask(beat())
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
        assert all(h.kafka.relay.context.tap is None for h in made.handlers)
        await client.ask(beat())


async def test_exchanges_come_as_lines_of_json(path: Path) -> None:
    async with controlled(path) as (made, _):
        with Attached(path) as attached:
            with pytest.raises(RequestRefused, match="filter"):
                await asyncio.to_thread(attached.exchanges, "api = = 5")
            lines = await asyncio.to_thread(attached.exchanges, "correlation_id == 2")
            reading = Reader(lines)
            await until(lambda: made.hub.recording is not None)
            assert await made.ask(*map(beat, (1, 2, 3))) == pulse(3)
            await until(lambda: bool(reading.seen))
        await until(lambda: made.recorder is None)
        assert [each["correlation_id"] for each in reading.seen] == [2]


async def test_after_a_flush_the_file_holds_what_passed(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "w.pcapng"
    async with controlled(path, recorder=Recorder(file)) as (made, _):
        client = await made.client()
        await client.ask(*map(beat, range(5)))
        assert (await ask(path, "flush"))["files"] == [str(file)]
        assert await asyncio.to_thread(numbers, file) == list(range(5))


async def test_proxies_are_found_by_pid_path_or_because_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(NoProxy, match="no proxy of yours is running"):
        find()
    words = ("--upstream", "127.0.0.1:1", "-q", "--until-eof")
    async with kit.started(tmp_path, *words) as one, kit.started(tmp_path, *words) as two:
        with pytest.raises(NoProxy, match="several"):
            find()
        path = find(str(one.process.pid))
        assert find(str(path)) == path
        assert (await ask(path, "status"))["pid"] == one.process.pid
        assert await ask(path, "stop") == {}
        assert await asyncio.wait_for(one.process.wait(), kit.PATIENCE_S) == 0
        assert find() == find(str(two.process.pid))
        assert (await two.ended())[0] == 0


async def test_a_second_signal_ends_it_whatever_hangs(path: Path, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        up = await stack.enter_async_context(kit.broker(lambda *asked: None))  # it never answers
        words = ("--upstream", up, "-q", "--grace", "600s", "--control", path)
        child = await stack.enter_async_context(kit.started(tmp_path, *words))
        client = await kit.Link.to(child.bootstrap)
        client.send(beat())
        connections: list[dict[str, Any]] = []
        while not (connections and connections[0]["in_flight"]):
            connections = (await ask(path, "connections"))["connections"]
        child.process.send_signal(signal.SIGINT)
        # It has heard that one: two that come together are one.
        await until(lambda: kit.refused(parse_address(child.bootstrap)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(child.process.wait()), 0.5)
        child.process.send_signal(signal.SIGINT)
        await asyncio.wait_for(child.process.wait(), kit.PATIENCE_S)
        assert not path.exists()
        await client.leave()


async def test_a_second_signal_ends_it_while_nobody_reads_the_lines(tmp_path: Path) -> None:
    ends = os.pipe()
    async with kit.broker(kit.echo) as up:
        words = ("--upstream", up, "--json", "--control", "none")
        async with kit.started(tmp_path, *words, stdout=ends[1]) as child:
            # More lines than a pipe holds, and fewer packets.
            await kit.ask(child.bootstrap, *map(beat, range(150)))
            child.process.send_signal(signal.SIGTERM)
            await until(lambda: kit.refused(parse_address(child.bootstrap)))
            child.process.send_signal(signal.SIGTERM)
            # What prints the lines goes on until nobody has the other end of its pipe.
            await until(lambda: child.process.returncode is not None)
            assert child.process.returncode == 130
            for end in ends:
                os.close(end)


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


async def test_only_lines_that_a_filter_wants_are_printed(tmp_path: Path) -> None:
    async with kit.broker(kit.echo) as up:
        words = ("--upstream", up, "--json", "--control", "none", "--until-eof")
        async with kit.started(tmp_path, *words, "-Y", "correlation_id == 2") as child:
            await kit.ask(child.bootstrap, *map(beat, (1, 2, 3)))
            _, printed, _ = await child.ended()
    assert [json.loads(line)["correlation_id"] for line in printed.splitlines()] == [2]
