"""A picture of each screen: the real program on the demo capture. `make pictures`.

The demo has fixed times and the pictures wait for all numbers, so that the same code makes the same
files.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.numbers import ProcessNumbers
from kafkascope.tui.guide.demo import capture
from tests.tui.pilots import counted, idle

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
SIZE = (132, 36)
ZOOKEEPER: Final = DOCS.parent / "captures" / "samples" / "zookeeper.pcap"
PICTURES: dict[str, Sequence[str]] = {
    # The response with the address that leads nowhere, among its neighbours.
    "exchanges": ("7", "g", "down", "enter", "slash", "ctrl+u", "enter"),
    "connections": ("2",),
    "clients": ("3",),
    "topics": ("4",),
    "groups": ("5",),
    "latency": ("6",),
    # Open what followed from the broker that went down.
    "findings": ("7", "g", *["down"] * 5, "space"),
    "live": ("8",),
    "zookeeper": ("9",),
    "map": ("0", *["down"] * 7),
    "help": ("question_mark",),
}
"""Name of the file -> keys that lead to the screen."""
UNIQUE: Final = re.compile(r"terminal-\d+")
"""What Rich puts into the names of classes: a hash that differs from run to run."""


async def take(name: str, keys: Sequence[str]) -> None:
    """Write one picture."""
    path = ZOOKEEPER if name == "zookeeper" else capture()
    inputs = [str(path)]
    feed = Feed(inputs)
    numbers = lambda text: ProcessNumbers(inputs, filter_text=text)  # noqa: E731
    try:
        app = ScopeApp(feed, path.name if name == "zookeeper" else "demo.pcap", counted=numbers)
        async with app.run_test(size=SIZE) as pilot:
            await settled(app, pilot)
            for key in keys:
                await pilot.press(key)
                await settled(app, pilot, 5)
            await settled(app, pilot)
            text = app.export_screenshot(title=f"kafkascope {name}")
    finally:
        feed.close()
    (IMAGES / f"{name}.svg").write_text(UNIQUE.sub(f"terminal-{name}", text))
    print(f"{name}.svg: {len(text)} bytes")


async def settled(app: ScopeApp, pilot: Any, rounds: int = 20) -> None:
    """Wait until the input is read and all numbers of the screen are there."""
    while not app.workspace.store.progress.done:
        await idle(app, pilot)
    for _ in range(rounds):
        await counted(app, pilot)
        await idle(app, pilot)
        await asyncio.sleep(0.02)


def main() -> None:
    """Write all pictures, or those that are named."""
    IMAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        asyncio.run(take(name, PICTURES[name]))


if __name__ == "__main__":
    main()
