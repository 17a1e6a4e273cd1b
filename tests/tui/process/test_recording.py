"""What a recorder says, of a full disk for instance, the UI and stderr say when it happens."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy.control.control import Control as Steered
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store
from kafkascope.tui.process.control import Control, ProxyWatch
from tests.kit.proxy import run, until
from tests.tui.pilots import StillFeed, text_of

SAID = ["recording: No space left on device", "recording continues: 7 packets are missing"]


def test_a_full_disk_is_said_in_the_ui_when_it_happens(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the thread that writes says, and when: `tests/proxy/recording/test_disk.py`."""
    toasts: list[str] = []
    notify = ScopeApp.notify

    def noted(self: ScopeApp, message: str, **rest: Any) -> None:
        toasts.append(message)
        notify(self, message, **rest)

    monkeypatch.setattr(ScopeApp, "notify", noted)
    recorder = Recorder(tmp_path / "r.pcapng")

    async def main() -> None:
        app = ScopeApp(StillFeed(store), "proxy")
        async with KafkaProxy("127.0.0.1:1", recorder=recorder) as made:
            control = Steered(made)
            await control.listen(tmp_path / "p.sock")
            async with app.run_test(size=(160, 50), notifications=True) as pilot:
                app.host.proxy = watch = ProxyWatch(Control(tmp_path / "p.sock"))
                watch.start(app.run_worker)
                await pilot.pause(0.1)
                for number, text in enumerate(SAID, 1):
                    await asyncio.to_thread(recorder.sinks[0].tell, text)
                    await until(lambda: len(toasts) == number)  # noqa: B023
                await until(lambda: f"proxy: {SAID[1]}" in text_of(app), 20)
            await watch.control.close()
            await control.close()
            await asyncio.sleep(0.05)

    with caplog.at_level(logging.WARNING):
        run(main())
    assert toasts == [f"proxy: {text}" for text in SAID]
    assert caplog.messages == SAID
