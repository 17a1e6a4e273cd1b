"""The kernel reads a connection as the general conversation does: the same exchanges come of it
when every connection is forced to the general way."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.conversation.ordinary import Ordinary
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import StreamEvent
from tests.kernel.frames import MANY, connection, frames, joined, mutated
from tests.kit.samples import ALL_CAPTURES, ROOT
from tests.kit.wire import Wire, beat, framed, heartbeat, shape, told
from tests.matrix import mostly_slow

FAST = {"libraries", "healthy-java", "transactions", "framing-lost", "odd-requests", "tls13"}


class Read:
    """What is read of some input in one of the two ways."""

    def __init__(self, kernel: bool) -> None:
        self.kernel = kernel
        self.taken = 0
        """Exchanges that the kernel read."""
        self.rows: list[bytes] = []

    def __enter__(self) -> Read:
        self._patch = pytest.MonkeyPatch()
        if not self.kernel:
            self._patch.setattr(Conversation, "_is_ordinary", lambda conversation: False)
        exchange = Ordinary.exchange

        def counted(ordinary: Ordinary, pair: object) -> Exchange:
            self.taken += 1
            return exchange(ordinary, pair)  # type: ignore[arg-type]

        self._patch.setattr(Ordinary, "exchange", counted)
        return self

    def __exit__(self, *about: object) -> None:
        self._patch.undo()

    def capture(self, path: Path) -> Read:
        logs = [each for end in (".keys", ".keylog") if (each := stem(path, end)).exists()]
        with self, open_capture([path], keylog=logs) as capture:
            names = capture.context.names
            self.rows = [json_of_row(row_of(each, names)) for each in capture.exchanges()]
        return self

    def events(self, events: Iterable[StreamEvent]) -> Read:
        context = Context()
        with self:
            self.rows = [json_of_row(row_of(each, context.names)) for each in told(events, context)]
        return self


def stem(path: Path, suffix: str) -> Path:
    return path.with_name(path.name.partition(".pcap")[0] + suffix)


@pytest.mark.parametrize(
    "path",
    mostly_slow(ALL_CAPTURES, lambda path: path.name.partition(".")[0] in FAST),
    ids=lambda path: path.name,
)
def test_captures_are_read_alike(path: Path) -> None:
    general, kernel = Read(False).capture(path), Read(True).capture(path)
    assert kernel.rows == general.rows
    assert not general.taken


def test_the_kernel_reads_nearly_all_of_what_is_in_order() -> None:
    read = Read(True).capture(ROOT / "tests/analyzer/captures/causes/healthy-java.pcap.gz")
    assert read.taken / len(read.rows) > 0.9


@given(seed=st.integers(0, 1 << 32), gaps=st.booleans(), mid=st.booleans(), noise=st.booleans())
def test_connections_are_read_alike(seed: int, gaps: bool, mid: bool, noise: bool) -> None:
    events = connection(seed, gaps, mid, noise)
    for each in (events, joined(events)):
        assert Read(True).events(each).rows == Read(False).events(each).rows


@pytest.mark.parametrize("count", MANY)
def test_messages_of_all_versions_are_read_alike(count: int) -> None:
    """Whole, cut or changed, in any blocks, between ordinary ones."""
    taken = 0

    @settings(max_examples=count)
    @given(st.lists(frames(), min_size=2, max_size=5), st.integers(0, 1 << 32))
    def law(pairs: list[tuple[bytes, bytes]], seed: int) -> None:
        nonlocal taken
        events = between_heartbeats(pairs, Random(seed))
        kernel, general = Read(True).events(events), Read(False).events(events)
        assert kernel.rows == general.rows
        taken += kernel.taken

    law()
    assert taken > count


def between_heartbeats(pairs: list[tuple[bytes, bytes]], rng: Random) -> list[StreamEvent]:
    wire = Wire()
    wire.client(heartbeat(99)).broker(beat(99))
    for number, pair in enumerate(pairs):
        for side, payload in zip((wire.client, wire.broker), pair, strict=True):
            data = framed(payload)
            if rng.random() < 0.2:
                data = mutated(data, rng)
            data = (beat if side == wire.broker else heartbeat)(100 + number) + data
            while data:
                size = rng.choice([1, 4, 7, 30, 1 << 16])
                side(data[:size])
                data = data[size:]
    return wire.close("broker").close().events


# --- packets that come one by one and together ----------------------------------------------------


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
