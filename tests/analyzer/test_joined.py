"""Packets that come one by one and packets that come together tell the same of a connection.

The bulk path hands over as one chunk what follows each other in a direction; small captures go
packet by packet. Which way a capture takes must not show.
"""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.model import Exchange
from tests.kernel.frames import connection, joined
from tests.kit.wire import Wire, beat, heartbeat, shape, told


def places(exchanges: list[Exchange]) -> list[Any]:
    """Where the bytes of all frames stand in the input."""
    sides = (side for each in exchanges for side in (each.request, each.response))
    return [side.frame.parts for side in sides if side is not None]


@given(seed=st.integers(0, 1 << 32), gaps=st.booleans(), mid=st.booleans(), noise=st.booleans())
@example(seed=4787747432, gaps=True, mid=False, noise=True)  # no size, in three packets
def test_how_many_packets_come_at_once_does_not_show(
    seed: int, gaps: bool, mid: bool, noise: bool
) -> None:
    one_by_one = told(connection(seed, gaps, mid, noise))
    together = told(joined(connection(seed, gaps, mid, noise)))
    assert shape(together) == shape(one_by_one)
    assert places(together) == places(one_by_one)


@pytest.mark.parametrize("count", [LIMITS.undecided_events - 20, LIMITS.undecided_events + 20])
def test_it_does_not_tell_what_a_connection_speaks(count: int) -> None:
    wire = Wire(handshake=False, port=31337)
    for _ in range(count):
        wire.client(b"\xff")
    for number in range(3):
        wire.client(heartbeat(number))
    wire.broker(beat(0), beat(1), beat(2))
    found = [len(told(each)) for each in (wire.events, joined(wire.events))]
    assert found == ([3, 3] if count < LIMITS.undecided_events else [0, 0])
