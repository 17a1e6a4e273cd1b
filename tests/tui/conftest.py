"""A store with the demo capture, read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.offline import open_capture
from tui.store import Store

SAMPLES = Path(__file__).parents[2] / "captures" / "samples"


@pytest.fixture(scope="session")
def store() -> Store:
    capture = open_capture([SAMPLES / "demo.pcap"])
    found = Store(capture.source.read, capture.context)
    for exchange in capture.exchanges():
        found.add(exchange)
    return found
