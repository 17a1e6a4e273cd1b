"""Each firing of a fault stands in the recording: which request or response, and what was done."""

from __future__ import annotations

import pytest

from kafkascope.proxy.engine.held import HeldFrames
from kafkascope.proxy.rules.faults import FAULTS, parse_fault
from kafkascope.proxy.rules.rules import Chain
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, WakeUp
from tests.kit.proxy import HEARTBEAT, METADATA, Bench, produce, request, response

ARGUMENTS = {
    "delay": "5ms",
    "throttle": "1KB/s",
    "error": "27",
    "stamp": "27",
    "truncate": "6",
    "member": "expire",
    "set on request": "request.group_id = other",
    "set on response": "response.throttle_time_ms = 7",
}
APART = ("corrupt-crc", "stale-metadata", "records", "versions")
"""See `faults`."""
SIDES = ("request", "response")
CASES = [
    (word, SIDES[side])
    for word, action in sorted(FAULTS.items())
    for side in action.sides
    if word not in APART
]


class Notes:
    """A tap that keeps what it is told."""

    def __init__(self) -> None:
        self.legs: list[list[tuple[int, bytes, str]]] = [[], []]

    def client(self, side: int, data: bytes | memoryview, now_ns: int, comment: str = "") -> None:
        self.legs[0].append((side, bytes(data), comment))

    def broker(self, side: int, data: bytes, now_ns: int, comment: str = "") -> None:
        self.legs[1].append((side, data, comment))

    def end(self, side: int | None, how: str, now_ns: int) -> None:
        pass

    def of(self, leg: int, side: int) -> bytes:
        return b"".join(data for from_, data, _ in self.legs[leg] if from_ == side)

    @property
    def comments(self) -> list[str]:
        return [comment for leg in self.legs for _, _, comment in leg if comment]


def tapped(*rules: str) -> tuple[Bench, Notes]:
    bench, notes = Bench(), Notes()
    bench.context.tap = notes
    bench.hub.held = HeldFrames(dict)
    Chain([parse_fault(rule) for rule in rules]).attach(bench.hub)
    return bench, notes


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize(("word", "on"), CASES)
def test_a_firing_is_told_where_it_happened(word: str, on: str, chunk: int) -> None:
    argument = ARGUMENTS.get(word) or ARGUMENTS.get(f"{word} on {on}", "")
    bench, notes = tapped(f"-> {word} {argument} on {on} once")
    asked, answered = request(HEARTBEAT, 4), response(HEARTBEAT, 4)
    for at in range(0, len(asked), chunk):
        bench.feed(CLIENT, asked[at : at + chunk])
    if bench.sent(BROKER) == asked:
        for at in range(0, len(answered), chunk):
            bench.feed(BROKER, answered[at : at + chunk])
    told = [comment for comment in notes.comments if f"fault: {word}" in comment]
    named = [comment for comment in notes.comments if comment.startswith("client test")]
    assert len(named) == 1
    if word in ("delay", "hold") and on == "response":
        assert told == []  # it is recorded when the client gets it
        return
    assert len(told) == 1
    # What the client sent is in the recording, whatever became of it.
    assert notes.of(0, CLIENT) == asked
    if on == "response" and word not in ("throttle", "delay"):
        # What the broker said is there, too, with its request.
        assert notes.of(1, BROKER) == answered
        assert notes.of(1, CLIENT) == asked


def test_a_delayed_response_is_recorded_when_it_goes_on() -> None:
    bench, notes = tapped("-> delay 5ms on response")
    bench.feed(CLIENT, request(HEARTBEAT, 4))
    bench.feed(BROKER, response(HEARTBEAT, 4))
    (wake,) = (action for action in bench.others() if isinstance(action, WakeUp))
    bench.relay.woken(wake.token, bench.now_ns + 10**7)
    assert notes.legs[0][-1] == (BROKER, response(HEARTBEAT, 4), "fault: delay 5ms")


def test_two_rules_are_both_told() -> None:
    bench, notes = tapped("-> throttle 1MB/s on response", "-> stamp 27")
    bench.feed(CLIENT, request(HEARTBEAT, 4))
    bench.feed(BROKER, response(HEARTBEAT, 4))
    assert notes.legs[0][-1][2] == ("fault: throttle 1MB/s; fault: stamp REBALANCE_IN_PROGRESS")


def test_requests_without_an_answer_are_told_of_too() -> None:
    bench, notes = tapped("-> drop on request")
    asked = produce(acks=0)
    bench.feed(CLIENT, asked)
    assert notes.legs[0] == [(CLIENT, asked, "client test; fault: drop")]


def test_what_no_rule_wants_is_recorded_once() -> None:
    bench, notes = tapped("api == Produce -> drop")
    asked, answered = request(METADATA, 12), response(METADATA, 12)
    bench.feed(CLIENT, asked)
    bench.feed(BROKER, answered)
    assert notes.of(0, CLIENT) == asked
    assert notes.of(0, BROKER) == answered
    assert notes.comments == ["client test"]


def test_a_request_with_secrets_that_is_replaced_stays_masked() -> None:
    bench, notes = tapped("-> hold on request")
    bench.feed(CLIENT, request(36, 2, {"auth_bytes": b"\0alice\0alice-secret"}))
    held = bench.hub.held
    assert held is not None
    (told,) = held.list()
    assert told["rule"]
    frame = held.frame(told["number"])
    from kafkascope.proxy.rules.verdicts import Replace

    stop = bench.relay.directions[CLIENT].stop
    assert stop is not None
    assert frame.payload is not None
    bench.relay.release(CLIENT, stop, Replace(frame.payload), bench.now_ns)
    assert b"alice-secret" not in notes.of(0, CLIENT) + notes.of(1, CLIENT)
    assert notes.of(1, CLIENT) != b""
