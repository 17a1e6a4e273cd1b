"""The demo capture, read once; `async def` tests, done in the program; pilots that wait for all
that is to be done."""

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual._wait import wait_for_idle
from textual.app import App
from textual.pilot import Pilot

from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.palette import Glyphs
from tests.kit.samples import SAMPLES
from tests.tui import pilots


@pytest.fixture(scope="session")
def store() -> Store:
    return pilots.store_of(SAMPLES / "libraries.pcap")


@cache
def sample(name: str) -> pilots.ReadScene:
    return pilots.ReadScene(SAMPLES / name)


@pytest.fixture(scope="session")
def demo() -> pilots.ReadScene:
    return sample("libraries.pcap")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for settings and state of the user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def _shown(item: pytest.Item) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The boards and options of `@pytest.mark.shown`."""
    mark = item.get_closest_marker("shown")
    return ((), {}) if mark is None else (mark.args, dict(mark.kwargs))


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> pilots.ReadScene:
    """The capture of a board: the sample or fixture `of`, or `demo`."""
    _, options = _shown(request.node)
    of = options.get("of", "demo")
    found = (sample(of) if ".pcap" in of else request.getfixturevalue(of)).fresh()
    found.glyphs = Glyphs(options.get("plain", False))
    return found


@pytest.fixture
def app(request: pytest.FixtureRequest) -> App[Any]:
    """The program on the store `of`, or `store`; or a board on `scene`."""
    boards, options = _shown(request.node)
    if "board" in request.fixturenames:
        boards = (request.getfixturevalue("board"),)
    if not boards:
        options.pop("size", None)
        return pilots.program(request.getfixturevalue(options.pop("of", "store")), **options)
    scene = request.getfixturevalue("scene")
    return pilots.Stage(boards[0].made(scene), scene)


@pytest.fixture
def pilot() -> None:
    """Made when the app runs."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test that has an `app` in it; others are run as everywhere."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj) or "app" not in pyfuncitem.funcargs:
        return None
    given = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters
    }
    size = pyfuncitem.funcargs.get("size") or _shown(pyfuncitem)[1].get("size", (160, 50))

    async def steps(app: App[Any], pilot: pilots.Hands) -> None:
        await pyfuncitem.obj(**given | {"pilot": pilot})

    pilots.show(given["app"], steps, size)
    return True


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
        await pilots.drained()

    async def paused(pilot: Pilot[Any], delay: float | None = None) -> None:
        await pause(pilot, delay)
        await pilots.drained()
        pilot.app.screen._on_timer_update()
        await pilots.drained()

    monkeypatch.setattr(Compositor, "render_update", unpainted)
    monkeypatch.setattr("textual.app.wait_for_idle", idle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", idle)
    monkeypatch.setattr(Pilot, "pause", paused)
    monkeypatch.setattr("kafkascope.tui.screens.board.SLICE", 60.0)
    monkeypatch.setattr(App, "NOTIFICATION_TIMEOUT", 600.0)
