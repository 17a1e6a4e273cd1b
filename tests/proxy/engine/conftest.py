"""The same conversations on two loops: the command takes uvloop where it is installed."""

import asyncio
from collections.abc import Callable

import pytest


@pytest.fixture
def loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes the loop that the test runs on. uvloop reads on when told to pause early,
    keeps views of what it could not send, and its transports are no asyncio ones."""
    if request.param == "asyncio":
        return asyncio.new_event_loop
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed here")
    return uvloop.new_event_loop
