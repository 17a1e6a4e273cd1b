"""A store with the demo capture, read once; pilots that wait for all that is to be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual._wait import wait_for_idle
from textual.app import App
from textual.pilot import Pilot

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.tui.data.store import Store
from tests.tui.pilots import drained

SAMPLES = Path(__file__).parents[2] / "captures" / "samples"


@pytest.fixture(scope="session")
def store() -> Store:
    capture = open_capture([SAMPLES / "libraries.pcap"])
    found = Store(capture.source.read, capture.context)
    for exchange in capture.exchanges():
        found.add(exchange)
    return found


def unpainted(compositor: Compositor, *_: object, **__: object) -> None:
    """Paint nothing: there is no terminal, and painting is a third of what a test takes. `idle` and
    `text_of` paint what is there then."""
    compositor._dirty_regions.clear()


@pytest.fixture(autouse=True)
def patient_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests see does not depend on how busy the machine is. Textual's pilot takes a process
    that gets no CPU time for one that is idle, and would go on before a key has done its work;
    charts are made in slices of time; sentences go after some seconds."""
    pause = Pilot.pause

    async def idle(*limits: float) -> None:
        await wait_for_idle(*limits)
        await drained()

    async def paused(pilot: Pilot[Any], delay: float | None = None) -> None:
        await pause(pilot, delay)
        await drained()
        pilot.app.screen._on_timer_update()
        await drained()

    monkeypatch.setattr(Compositor, "render_update", unpainted)
    monkeypatch.setattr("textual.app.wait_for_idle", idle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", idle)
    monkeypatch.setattr(Pilot, "pause", paused)
    monkeypatch.setattr("kafkascope.tui.screens.board.SLICE", 60.0)
    monkeypatch.setattr(App, "NOTIFICATION_TIMEOUT", 600.0)
