"""A disk that fills while a proxy records: the UI says it when it happens, and when it is over."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.proxy.control.control import Control as Steered
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store
from kafkascope.tui.process.control import Control, ProxyWatch
from tests.kit.proxy import Link, broker, echo, produce, until
from tests.proxy.small_disk import SmallDisk
from tests.tui.pilots import StillFeed, text_of

SIZE = 50_000


def test_a_full_disk_is_said_in_the_ui_when_it_happens(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And on stderr; recording goes on when there is space again, and says what it left out."""
    disk, path = SmallDisk(monkeypatch), tmp_path / "r.pcapng"
    toasts: list[str] = []
    notify = ScopeApp.notify

    def noted(self: ScopeApp, message: str, **rest: Any) -> None:
        toasts.append(message)
        notify(self, message, **rest)

    monkeypatch.setattr(ScopeApp, "notify", noted)
    recorder = Recorder(path, limits=Limits(disk_retry_s=0.0))

    async def steps(app: ScopeApp, made: KafkaProxy) -> int:
        client = await Link.to(made.bootstrap)
        number = 0

        async def send(words: str) -> None:
            """Until the UI has said them."""
            nonlocal number
            while not any(words in text for text in toasts):
                await client.ask(produce(size=SIZE, correlation_id=number))
                number += 1
                await asyncio.sleep(0.02)

        for _ in range(3):
            await client.ask(produce(size=SIZE, correlation_id=number))
            number += 1
        await until(lambda: recorder.idle)
        assert not toasts
        disk.room = 10  # less than any packet
        await send("No space left on device")
        assert recorder.sinks[0].full, "said while the disk is full"
        await until(lambda: "proxy: recording" in text_of(app), 20)
        disk.room = 1 << 40
        await send("recording continues")
        for _ in range(3):
            await client.ask(produce(size=SIZE, correlation_id=number))
            number += 1
        await client.leave()
        return number

    async def main() -> int:
        app = ScopeApp(StillFeed(store), "proxy")
        async with broker(echo) as up, KafkaProxy(str(up), recorder=recorder) as made:
            control = Steered(made)
            await control.listen(tmp_path / "p.sock")
            async with app.run_test(size=(160, 50), notifications=True) as pilot:
                app.host.proxy = watch = ProxyWatch(Control(tmp_path / "p.sock"))
                watch.start(app.run_worker)
                await pilot.pause(0.1)
                count = await steps(app, made)
            await watch.control.close()
            await control.close()
            await asyncio.sleep(0.05)
        return count

    with caplog.at_level(logging.WARNING):
        count = asyncio.run(asyncio.wait_for(main(), 120))
    full, again = (text for text in toasts if "recording" in text)
    assert full.startswith("proxy: recording")
    assert str(path) in full
    assert "packets" in again
    assert "are missing" in again
    assert [full.removeprefix("proxy: "), again.removeprefix("proxy: ")] == caplog.messages
    with open_capture([path]) as capture:
        found = {each.correlation_id for each in capture.exchanges() if each.state == "answered"}
        assert capture.damage is None
    assert {0, 1, 2, count - 1} <= found
    assert len(found) < count
