"""The program in a test: on a store that is read already, with waits for what it does beside the
keyboard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from textual.command import CommandList

from kafkascope.schemas.decoding import Payloads
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store

Steps = Callable[[ScopeApp, Any], Awaitable[None]]


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

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def text_of(app: ScopeApp) -> str:
    """What is on the screen."""
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
    return "\n".join(lines).rstrip() + "\n"


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
        if (
            not app.inspector.decoding
            and not app.workspace.activity
            and not app.workspace.view.behind
        ):
            break
        await asyncio.sleep(0.01)
    app.tick()
    await pilot.pause()
    app.screen._compositor.render_strips()


def run(
    store: Store,
    steps: Steps,
    size: tuple[int, int] = (160, 50),
    *,
    few: int = 0,
    payloads: Payloads | None = None,
    **options: Any,
) -> None:
    """Show a store, and do something with it. `few`: exchanges up to which findings are counted
    without being asked for. `payloads`: decodes keys and values."""

    async def main() -> None:
        app = ScopeApp(StillFeed(store, payloads), "libraries.pcap", **options)
        app.findings.few = few
        async with app.run_test(size=size) as pilot:
            await idle(app, pilot)
            await steps(app, pilot)

    asyncio.run(main())


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
