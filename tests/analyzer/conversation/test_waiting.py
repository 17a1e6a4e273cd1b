"""Rows of encrypted connections come when their key log has the secrets, whenever that is; what
waits is bounded."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation import waiting
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.conversation.limits import LIMITS as DEFAULTS
from kafkascope.analyzer.conversation.limits import ConversationLimits
from kafkascope.analyzer.conversation.waiting import SEARCH_SECONDS
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import StreamEvent
from kafkascope.captures.streams.streams import streams
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.sources import KeySources
from tests.captures.tls.writer import Talk
from tests.kit.samples import TLS
from tests.kit.wire import Wire, beat, heartbeat, shape

NAMES = sorted(path.name.partition(".")[0] for path in TLS.glob("*.truth.json"))


class Live:
    """Connections that are read while a key log is written."""

    def __init__(
        self, text: str = "", *, growing: bool = True, limits: ConversationLimits = DEFAULTS
    ) -> None:
        self.log = KeyLog()
        self.log.add(text.encode())
        self.context = Context(limits=limits)
        self.context.keys = KeySources(self.log, growing=growing)
        self.conversations = Conversations(self.context)
        self.rows: list[Exchange] = []
        self.seconds = 1000.0
        self.look()

    def feed(self, events: Iterable[StreamEvent]) -> Live:
        for event in events:
            self.rows += map(exchange_of, self.conversations.feed(event))
        return self

    def line(self, text: str) -> Live:
        self.log.add(text.encode())
        return self.look(0.2)

    def look(self, seconds: float = 0.0) -> Live:
        self.seconds += seconds
        self.rows += map(exchange_of, self.conversations.retry_secrets(self.seconds))
        return self

    def finish(self) -> Live:
        self.rows += map(exchange_of, self.conversations.finish())
        return self

    def told(self) -> list[tuple[object, ...]]:
        """All of the rows but their order."""
        return sorted((row[1:] for row in shape(self.rows)), key=str)


@cache
def events_of(name: str) -> list[StreamEvent]:
    (path,) = TLS.glob(f"{name}.pcap*")
    with open_inputs([path]) as source:
        return list(streams(source, bulk=False))


def whole(name: str, text: str) -> list[tuple[object, ...]]:
    return Live(text, growing=False).feed(events_of(name)).finish().told()


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=4)
def test_real_traffic_gives_the_same_rows_whenever_the_lines_come(name: str, seed: int) -> None:
    lines = (TLS / f"{name}.keys").read_text().splitlines(keepends=True)
    events = events_of(name)
    source = random.Random(seed)
    times = sorted(source.randrange(-2, len(events) + 3) for _ in lines)
    live, taken = Live(), 0
    for index, event in enumerate(events):
        while taken < len(times) and times[taken] <= index:
            live.line(lines[taken])
            taken += 1
        live.feed([event])
    for line in lines[taken:]:
        live.line(line)
    live.look(SEARCH_SECONDS)
    told = str(live.finish().told())
    waited = "; it was waited for until the capture ended"
    assert told.replace(waited, "") == str(whole(name, "".join(lines)))


def wire_of(talk: Talk, number: int = 0, port: int = 9093) -> Wire:
    wire = Wire(port=port, number=number)
    for direction, data in talk.pairs():
        (wire.client, wire.broker)[direction](data)
    return wire


def beats(talk: Talk, *ids: int) -> Talk:
    for each in ids:
        talk.client(heartbeat(each)).server(beat(each))
    return talk


def test_rows_come_with_the_line() -> None:
    first, then = (beats(Talk(0x1301, seed=seed), seed) for seed in (1, 2))
    live = Live(then.keylog())
    live.feed(wire_of(first).close().events)
    assert not live.rows
    live.feed(wire_of(then, 1).events)
    assert [row.correlation_id for row in live.rows] == [2]
    live.line(first.keylog())
    assert [row.correlation_id for row in live.rows] == [2, 1]
    first_row, then_row = live.rows[::-1]
    assert first_row.time_ns == then_row.time_ns
    live.finish()
    assert len(live.rows) == 2


def test_a_session_may_be_resumed_while_its_first_connection_waits() -> None:
    first = beats(Talk(0xC02F, ticket=True), 1)
    by_id = beats(Talk(0xC02F, seed=2, resume=first), 2)
    by_ticket = beats(Talk(0xC02F, seed=3, resume=first, resume_by="bare", ticket=True), 3)
    live = Live()
    for number, talk in enumerate((first, by_id, by_ticket)):
        live.feed(wire_of(talk, number).close("client").close("broker").events)
    assert not live.rows
    live.line(first.keylog("session"))
    assert [row.correlation_id for row in live.rows] == [1, 2, 3]


def test_lines_of_java_name_sessions() -> None:
    talk = beats(Talk(0xC02F), 1)
    live = Live().feed(wire_of(talk).events)
    assert [row.correlation_id for row in live.line(talk.keylog("session")).rows] == [1]


def test_after_30_seconds_it_is_told_that_there_is_no_line() -> None:
    talk, other = beats(Talk(0x1301), 1), beats(Talk(0x1301, seed=2), 2)
    live = Live().feed(wire_of(talk).events).look().look(10)
    live.feed(wire_of(other, 1).events).look(DEFAULTS.secret_wait_s - 10.1)
    assert not live.rows
    live.look(0.2)
    (row,) = live.rows
    assert row.state == "opaque"
    assert row.reason == (
        f"TLS: the key log has no line for client random {talk.client_random.hex()}; "
        "it was waited for 30 s"
    )
    assert row.connection.tls.error == "no-secret"
    live.line(talk.keylog())
    assert len(live.rows) == 1
    live.line(other.keylog())
    assert [each.correlation_id for each in live.rows] == [None, 2]


def test_at_the_end_it_is_told_what_still_waits() -> None:
    talk, other = beats(Talk(0x1301), 1), beats(Talk(0xC02F, seed=2), 2)
    live = Live().feed(wire_of(talk).close().events).feed(wire_of(other, 1).events)
    live.log.add(other.keylog().encode())
    live.finish()
    assert [row.state for row in live.rows] == ["opaque", "answered"]
    assert [row.correlation_id for row in live.rows] == [None, 2]
    assert live.rows[0].reason.endswith("it was waited for until the capture ended")


def test_what_waits_is_bounded_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1 << 20
    monkeypatch.setattr(waiting.Waiters.__init__, "__defaults__", (limit,))
    talk = Talk(0x1301)
    hello = len(talk.sent)
    for turn in range(40):
        talk.client(random.Random(turn).randbytes(16_000))
    wires = [wire_of(talk, number) for number in range(4)]
    assert sum(len(data) for _, data in talk.pairs()) > limit // 2
    live = Live()
    given_up = []
    for wire in wires:
        live.feed(wire.events)
        given_up.append(len(live.rows))
    assert given_up == [0, 1, 2, 3]
    assert [row.connection.number for row in live.rows] == [0, 1, 2]
    assert "MB were buffered" in live.rows[0].reason
    live.line(talk.keylog())
    assert wires[3].connection.tls.decrypted == (40 * 16_000, 0)
    assert hello < len(talk.sent)


def test_connections_that_wait_take_as_much_memory_as_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 4 << 20
    monkeypatch.setattr(waiting.Waiters.__init__, "__defaults__", (limit,))
    talk = beats(Talk(0x1301), *range(5))

    def events() -> Iterable[StreamEvent]:
        for number in range(3 * limit // waiting.CONNECTION_BYTES):
            # As reading makes them, all bytes are new.
            yield from wire_of(talk, number, port=12345).events

    live = Live()
    live.feed(events())
    live = Live()
    tracemalloc.start()
    try:
        live.feed(events())
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert limit // 4 < held < limit * 2


def test_a_log_of_other_connections_costs_a_connection_that_waits_nothing() -> None:
    live = Live().feed(wire_of(beats(Talk(0x1301), 1)).events)
    changes = live.log.changes
    for seed in range(2, 30):
        live.line(Talk(0x1301, seed=seed).keylog())
    assert live.log.changes > changes
    assert not live.rows


def test_without_a_handshake_secrets_are_tried_at_most_once_a_second() -> None:
    talk = beats(Talk(0x1301), *range(8))
    wire = Wire(handshake=False, port=9093)
    for direction, data in talk.pairs()[8:]:
        (wire.client, wire.broker)[direction](data)
    live = Live().feed(wire.events)
    live.look(SEARCH_SECONDS).line(Talk(0x1301, seed=2).keylog())
    assert live.context.keys.trials == LIMITS.secret_trials - 2
    live.line(talk.keylog())
    assert live.context.keys.trials == LIMITS.secret_trials - 2
    assert not live.rows
    live.look(SEARCH_SECONDS)
    assert [row.state for row in live.rows if row.correlation_id] == ["answered"] * len(live.rows)
    assert live.rows


def test_memory_for_others_takes_what_waits_too() -> None:
    talk = beats(Talk(0x1301), 1)
    live = Live(limits=ConversationLimits(waiting_bytes=50_000)).feed(wire_of(talk).events)
    live.conversations._recount_at = 0
    half = (100_000).to_bytes(4, "big") + heartbeat(1)[4:] + bytes(90_000)
    wire = Wire(port=9092, number=1, start_ns=wire_of(talk).time_ns).client(half)
    live.feed(wire.events)
    live.line(talk.keylog()).finish()
    row = next(row for row in live.rows if not row.connection.number)
    assert row.reason.endswith(waiting.BEYOND)
