"""The program, or a board of it, in a test: on a capture that is read already, with waits for what
it does beside the keyboard. Screens as text.

An `async def` test is done in what its `app` is (`conftest.py`), with the keyboard `pilot`:

    @pytest.mark.shown(few=9, size=(80, 24))  # options of the program
    async def test_it(app, pilot, store): ...

    @pytest.mark.shown(live.BOARD, of="sasl.pcap")  # that board alone
    async def test_it(app, pilot, scene): ...
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from textual.app import App, ComposeResult
from textual.command import CommandList
from textual.pilot import Pilot

from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.schemas.decoding import Payloads
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store
from kafkascope.tui.host import Shell
from kafkascope.tui.screens.board import Board, BoardSpec
from kafkascope.tui.settings.notes import Notes
from kafkascope.tui.settings.palette import Glyphs, register

SNAPSHOTS = Path(__file__).parent / "snapshots"
WRITE = "KAFKASCOPE_SNAPSHOTS"
"""In the environment: snapshots are written, not compared."""

Steps = Callable[[Any, "Hands"], Awaitable[None]]


class Hands(Pilot[Any]):
    """A pilot that can wait for what keys do."""

    async def do(self, *keys: str) -> None:
        """Press keys, and wait until all is counted, decoded, drawn and written."""
        await self.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        if isinstance(self.app, Stage):
            await settled(self.app, self)
        else:
            await counted(self.app, self)
            await idle(self.app, self)


def show(app: App[Any], steps: Steps, size: tuple[int, int] = (160, 50), **options: bool) -> None:
    """Show the program, or a board, and do something with it."""

    async def main() -> None:
        async with app.run_test(size=size, **options):
            pilot = Hands(app)
            await (settled if isinstance(app, Stage) else idle)(app, pilot)
            await steps(app, pilot)

    asyncio.run(main())


def filled(store: Store, exchanges: Iterable[Exchange]) -> Store:
    """A store with these exchanges, and no more to come."""
    for exchange in exchanges:
        store.add(exchange)
    store.progress.done = True
    return store


def store_of(capture: OpenInput | Path) -> Store:
    """A store with all exchanges of a capture."""
    opened = open_capture([capture]) if isinstance(capture, Path) else capture
    return filled(Store(opened.source.read, opened.context), opened.exchanges())


# --- the program --------------------------------------------------------------------------------


class StillFeed:
    """A feed whose exchanges are all there already."""

    keylog: tuple[str, ...] = ()
    zone = ""
    decodes = True
    schema_words: tuple[str, ...] = ()

    def __init__(self, store: Store, payloads: Payloads | None = None) -> None:
        self.store = store
        self.payloads = lambda: payloads
        store.progress.done = True

    def poll(self, seconds: float) -> bool:
        return False

    def stop(self) -> None: ...

    def close(self) -> None: ...


def program(
    store: Store,
    *,
    few: int = 0,
    payloads: Payloads | None = None,
    name: str = "libraries.pcap",
    **options: Any,
) -> ScopeApp:
    """The program on a store. `few`: exchanges up to which findings are counted without being asked
    for. `payloads`: decodes keys and values."""
    app = ScopeApp(StillFeed(store, payloads), name, **options)
    app.findings.few = few
    return app


def run(store: Store, steps: Steps, size: tuple[int, int] = (160, 50), **options: Any) -> ScopeApp:
    """Show a store, and do something with it."""
    app = program(store, **options)
    show(app, steps, size)
    return app


async def drained() -> None:
    """Until the event loop has nothing to do but to wait for timers, threads and sockets."""
    loop = asyncio.get_running_loop()
    until, alone = loop.time() + 60, 0
    while alone < 3 and loop.time() < until:
        await asyncio.sleep(0)
        alone = 0 if loop._ready else alone + 1  # type: ignore[attr-defined]


async def idle(app: ScopeApp, pilot: Any) -> None:
    """Until the message under the cursor is decoded and drawn, and nothing is written or sought."""
    await pilot.pause(0.08)
    for _ in range(1000):
        await pilot.pause()
        if not (app.inspector.decoding or app.workspace.activity or app.workspace.view.behind):
            break
        await asyncio.sleep(0.01)
    app.tick()
    await pilot.pause()
    app.screen._compositor.render_strips()


async def counted(app: ScopeApp, pilot: Any) -> None:
    """Wait until all numbers are there."""
    end = time.monotonic() + 60
    while app.host.counting() and time.monotonic() < end:
        app.host.tick()
        await pilot.pause(0.01)
    app.host.tick()
    await pilot.pause()


async def found(app: ScopeApp, pilot: Any, words: str) -> None:
    """Until the palette's search, which runs beside the keyboard, has the words at its top."""
    for _ in range(3000):
        await pilot.pause(0.02)
        for hits in app.screen.query(CommandList):
            if hits.option_count and words in str(hits.get_option_at_index(0).prompt):
                return
    raise AssertionError(f"the palette does not find {words}")


# --- a board alone ------------------------------------------------------------------------------


class ReadScene:
    """A capture and all statistics of it; what a board asks for is noted."""

    def __init__(self, path: Path, *logs: Path) -> None:
        capture = open_capture([path], keylog=logs)
        self.statistics: dict[str, Any] = {**accumulators()}
        watchers = [each.saw for each in self.statistics.values() if hasattr(each, "saw")]
        capture.watch = lambda event: [watch(event) for watch in watchers]  # type: ignore[func-returns-value, assignment]
        exchanges = list(capture.exchanges())
        self.store = filled(Store(capture.source.read, capture.context), exchanges)
        for exchange in exchanges:
            batch = ExchangeBatch.of(row_of(exchange, capture.context.names), exchange)
            for each in self.statistics.values():
                each.add(batch)
        self._nothing_noted()

    def _nothing_noted(self) -> None:
        self.glyphs = Glyphs()
        self.proxy: Any = None
        self.filter = ""
        self.counting = False
        self.limited: list[str] = []
        self.shown: list[str] = []
        self.prepared: list[str] = []
        self.exchanges: list[int] = []
        self.told: list[str] = []
        self.pick: Any = None
        self.put_on_clipboard: Any = None

    def fresh(self) -> ReadScene:
        """The same capture, nothing noted."""
        new = object.__new__(ReadScene)
        new.store, new.statistics = self.store, self.statistics
        new._nothing_noted()
        return new

    def statistic(self, name: str, *, limited: bool) -> Any | None:
        if limited:
            self.limited.append(name)
        return self.statistics.get(name)

    def so_far(self, *, limited: bool) -> str:
        return "counting 43 %" if self.counting else ""

    def times(self) -> Times:
        return Times("u")

    @property
    def shell(self) -> ReadScene:
        return self

    @property
    def workspace(self) -> Any:
        view = SimpleNamespace(text=self.filter)
        feed = SimpleNamespace(payloads=lambda: None)
        return SimpleNamespace(view=view, input_name="libraries.pcap", feed=feed, notes=Notes())

    def show_filter(self, text: str) -> None:
        self.shown.append(text)

    async def show_limited(self, number: int, text: str) -> None:
        self.shown.append(f"{number}: {text}")

    def push_view(self) -> None:
        self.told.append("went in")

    def prepare_filter(self, text: str) -> None:
        self.prepared.append(text)

    def show_exchange(self, number: int) -> None:
        self.exchanges.append(number)

    def say(self, text: str, severity: Any = "information") -> None:
        self.told.append(text)


class Stage(Shell):
    """One board."""

    def __init__(self, board: Board, scene: ReadScene) -> None:
        super().__init__()
        self.board = board
        scene.pick, scene.put_on_clipboard = self.pick, self.put_on_clipboard
        self.glyphs = scene.glyphs
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield self.board

    def on_mount(self) -> None:
        register(self, "")
        self.board.table.focus()
        self.board.refresh_numbers()


def text_of(app: App[Any]) -> str:
    """What is on the screen."""
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
    return "\n".join(lines).rstrip() + "\n"


def perform(
    spec: BoardSpec, scene: ReadScene, steps: Steps, size: tuple[int, int] = (160, 50)
) -> None:
    """Show a board, and do something with it."""
    show(Stage(spec.made(scene), scene), steps, size)  # type: ignore[arg-type]


async def settled(app: Stage, pilot: Any) -> None:
    """Wait until all is drawn and counted, and an attached proxy has answered."""
    await pilot.pause(0.06)
    rounds = 3 if app.board.host.proxy else 0
    for number in range(20):
        app.board.tick()
        steering = [each for each in app.workers if each.group == "steer"]
        if steering:  # of none it would wait for all, and a watch never ends
            await app.workers.wait_for_complete(steering)
        await pilot.pause(0.02 if rounds else None)
        if not app.board.work() and number >= rounds:
            break
    await pilot.pause()


def compare(name: str, text: str) -> None:
    """The screen is as it was when the snapshot was taken."""
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get(WRITE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert text == path.read_text("utf-8"), f"{path.name}; {WRITE}=1 writes it anew"


async def speaks_in_any_size(app: Stage, pilot: Hands) -> None:
    """Each tab of a board says something, without a character that is not ASCII."""
    for size in [(20, 5), (7, 2), (160, 40)]:
        await pilot.resize_terminal(*size)
        for _ in app.board.tabs:
            app.board.action_tab(1)
            app.board.enter_pane()
            await pilot.pause()
        app.board.zoom()
    app.board.zoom()
    await pilot.settle()
    for tab in app.board.tabs:
        assert f"[{tab}]" in text_of(app)
        for line in text_of(app).splitlines():
            # The scroll bar is Textual's.
            assert line.rstrip("▁▂▃▄▅▆▇█ ").isascii(), line
        await pilot.do("R")
