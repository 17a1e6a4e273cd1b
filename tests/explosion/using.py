"""What a person at the screen or an assistant does with a capture from start to end, a replay of it
to itself, and its bytes through a proxy, as programs:
`python -m tests.explosion.using NAME CAPTURE`."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from kafkascope.errors import Error

if TYPE_CHECKING:
    from kafkascope.tui.app import ScopeApp

SIZE: Final = (160, 50)
STEP_S: Final = 0.05


def screens(name: str) -> None:
    """Open a capture in the UI, look at exchanges from both ends of the list, at each screen and
    what its first lines unfold to, filter and sort."""
    from kafkascope.tui.app import ScopeApp
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.data.numbers import ProcessNumbers
    from kafkascope.tui.screens import SCREENS

    async def use() -> None:
        feed = Feed([name])
        app = ScopeApp(
            feed, "capture", counted=lambda text: ProcessNumbers([name], filter_text=text)
        )
        async with app.run_test(size=SIZE) as pilot:
            while not feed.store.progress.done:
                await pilot.pause(STEP_S)
            for keys in (("enter",), ("j", "j"), ("G",), ("n",), ("tab", "G"), ("tab", "G")):
                await pilot.press(*keys)
                await idle(app, pilot)
            await pilot.press("escape")
            for number in SCREENS:
                await pilot.press(str(number))
                await known(app, pilot)
                for keys in (("enter",), ("escape",), ("G",), ("enter",), ("escape",)):
                    await pilot.press(*keys)
                    await idle(app, pilot)
                await pilot.press("1")
            await pilot.press("slash", *"latency > 1ms", "enter")
            await idle(app, pilot)
            await pilot.press("ctrl+q")
        feed.close()

    asyncio.run(use())


async def idle(app: ScopeApp, pilot: Any) -> None:
    """Until what was asked for is decoded and drawn."""
    await pilot.pause(STEP_S)
    while app.inspector.decoding or app.workspace.activity or app.workspace.view.behind:
        await pilot.pause(STEP_S)


async def known(app: ScopeApp, pilot: Any) -> None:
    """Until a screen has its numbers."""
    await pilot.pause(STEP_S)
    while app.host.counting():
        app.host.tick()
        await pilot.pause(STEP_S)
    app.host.tick()
    await pilot.pause()


def tools(name: str) -> None:
    """Ask all that an assistant may ask of a capture."""
    from kafkascope.bridges.mcp.toolbox import Toolbox
    from kafkascope.library.capture import open as open_capture
    from kafkascope.library.tables import TABLES

    with open_capture([name]) as capture:
        box = Toolbox(capture)
        box.overview()
        box.findings("chat")
        box.findings("chat", page=1000)
        box.exchanges()
        box.exchanges("failed", page=100)
        box.records()
        box.records(page=1000)
        for table in TABLES:
            box.table(table)
        for number in (1, 2, 100):
            try:
                box.exchange(number)
            except Error:
                continue


def replayed(name: str) -> None:
    """Serve a capture, and send its requests there."""
    kafkascope = (sys.executable, "-m", "kafkascope.tui.cli")
    serve = subprocess.Popen(
        (*kafkascope, "serve", name, "--control", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert serve.stdin is not None
    assert serve.stdout is not None
    assert serve.stderr is not None
    mark = "bootstrap.servers="
    for line in serve.stderr:
        if mark in line:
            to = line.partition(mark)[2].strip()
            pipes = ((serve.stderr, sys.stderr), (serve.stdout, sys.stdout))
            forward = [Thread(target=shutil.copyfileobj, args=each) for each in pipes]
            for each in forward:
                each.start()
            all_ = (
                *("--speed", "max", "--timeout", "1"),
                *("--allow-writes", "--same-groups", "--create-topics"),
            )
            subprocess.run(
                (*kafkascope, "replay", name, "--to", to, *all_),
                stdout=subprocess.DEVNULL,
                check=False,
            )
            serve.stdin.close()
            for each in forward:
                each.join()
            break
        sys.stderr.write(line)
    serve.wait()


def proxied(name: str) -> None:
    """Send what a capture has through a proxy, from its clients to a broker that answers so."""
    from tests.explosion.live import through_a_proxy

    with TemporaryDirectory() as folder:
        asyncio.run(through_a_proxy(name, Path(folder, "again.pcapng")))


USES: Final = {"screens": screens, "tools": tools, "replayed": replayed, "proxied": proxied}

if __name__ == "__main__":
    from kafkascope.tui.cli import _collect_rarely

    _collect_rarely()  # as the program does, before any command
    USES[sys.argv[1]](sys.argv[2])
