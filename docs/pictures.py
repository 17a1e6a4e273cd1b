"""The README's pictures: the real program on the demo capture. `python docs/pictures.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.numbers import ProcessNumbers
from kafkascope.tui.guide.demo import capture
from tests.tui.pilots import idle

IMAGES = Path(__file__).parent / "images"
SIZE = (132, 36)
PICTURES: dict[str, Sequence[str]] = {
    # Open what followed from the broker that went down.
    "findings": ("7", "g", *["down"] * 5, "space"),
    # The answer with the address that leads nowhere, among its neighbours.
    "exchanges": ("7", "g", "down", "enter", "slash", "escape"),
    "groups": ("5",),
}


async def settled(app: ScopeApp, pilot: Any) -> None:
    """Until the numbers of a screen are there, too."""
    for _ in range(80):
        await idle(app, pilot)
        await asyncio.sleep(0.1)


async def take(name: str, keys: Sequence[str]) -> None:
    """One picture."""
    inputs = [str(capture())]
    feed = Feed(inputs)
    counted = lambda text: ProcessNumbers(inputs, filter_text=text)  # noqa: E731
    try:
        app = ScopeApp(feed, "demo.pcap", counted=counted)
        async with app.run_test(size=SIZE) as pilot:
            await settled(app, pilot)
            for key in keys:
                await pilot.press(key)
                await idle(app, pilot)
            await settled(app, pilot)
            text = app.export_screenshot(title="kafkascope demo")
    finally:
        feed.close()
    (IMAGES / f"{name}.svg").write_text(text)
    print(f"{name}.svg: {len(text)} bytes")


def main() -> None:
    """All of them."""
    IMAGES.mkdir(exist_ok=True)
    for name, keys in PICTURES.items():
        asyncio.run(take(name, keys))


if __name__ == "__main__":
    main()
