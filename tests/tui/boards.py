"""Boards without the program around them: a scene of a capture that is read already, an app that
shows one board, and screens as text."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from textual.app import App, ComposeResult

from kafkascope.analyzer.exchanges import rows
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.tui.data.store import Store
from kafkascope.tui.host import Shell
from kafkascope.tui.screens.board import Board, BoardSpec
from kafkascope.tui.settings.notes import Notes
from kafkascope.tui.settings.palette import Glyphs, register

SNAPSHOTS = Path(__file__).parent / "snapshots"
WRITE = "KAFKASCOPE_SNAPSHOTS"
"""In the environment: snapshots are written, not compared."""

Steps = Callable[["Stage", Any], Awaitable[None]]


class ReadScene:
    """A capture and all statistics of it; what a board asks for is noted."""

    def __init__(self, path: Path, *logs: Path) -> None:
        capture = open_capture([path], keylog=logs)
        self.store = Store(capture.source.read, capture.context)
        self.statistics: dict[str, Any] = {**accumulators()}
        watchers = [each.saw for each in self.statistics.values() if hasattr(each, "saw")]
        capture.watch = lambda event: [watch(event) for watch in watchers]  # type: ignore[func-returns-value, assignment]
        for exchange in capture.exchanges():
            row = rows.row_of(exchange, capture.context.names)
            self.store.add(exchange)
            for each in self.statistics.values():
                each.add(ExchangeBatch.of(row, exchange))
        self.store.progress.done = True
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

    def fresh(self, *, plain: bool = False) -> ReadScene:
        """The same capture, nothing noted."""
        new = object.__new__(ReadScene)
        new.store, new.statistics = self.store, self.statistics
        new.glyphs, new.proxy, new.filter, new.counting = Glyphs(plain), None, "", False
        new.limited, new.shown, new.prepared, new.exchanges, new.told = [], [], [], [], []
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

    def __init__(self, board: Board, theme: str = "") -> None:
        super().__init__()
        self.board = board
        self.wanted = theme
        self.glyphs = board.host.glyphs
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield self.board

    def on_mount(self) -> None:
        register(self, self.wanted)
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

    async def main() -> None:
        app = Stage(spec.made(scene))  # type: ignore[arg-type]
        scene.pick, scene.put_on_clipboard = app.pick, app.put_on_clipboard
        async with app.run_test(size=size) as pilot:
            await settled(app, pilot)
            await steps(app, pilot)

    asyncio.run(main())


async def settled(app: Stage, pilot: Any) -> None:
    """Wait until all is drawn and counted."""
    await pilot.pause(0.06)
    for _ in range(20):
        app.board.tick()
        await pilot.pause()
        if not app.board.work():
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
