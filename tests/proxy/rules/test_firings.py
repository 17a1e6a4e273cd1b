"""Each firing of a fault stands in the recording: which request or response, and what was done."""

import pytest

from kafkascope.proxy.engine.held import HeldFrames
from kafkascope.proxy.rules.faults import FAULTS
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Replace
from tests.kit.proxy import ARGUMENTS, Bench, Tape, beat, produce, pulse, request

APART = ("corrupt-crc", "stale-metadata", "records", "versions")
"""See `faults`."""
SIDES = ("request", "response")
CASES = [
    (word, SIDES[side])
    for word, action in sorted(FAULTS.items())
    for side in action.sides
    if word not in APART
]


def tapped(*rules: str) -> tuple[Bench, Tape]:
    bench = Bench(*rules)
    bench.hub.held = HeldFrames(dict)
    return bench, Tape(bench)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize(("word", "on"), CASES)
def test_a_firing_is_told_where_it_happened(word: str, on: str, chunk: int) -> None:
    argument = ARGUMENTS.get(word, "")
    if (word, on) == ("set", "request"):
        argument = "request.group_id = other"
    bench, tape = tapped(f"-> {word} {argument} on {on} once")
    asked, answered = beat(), pulse()
    for at in range(0, len(asked), chunk):
        bench.feed(CLIENT, asked[at : at + chunk])
    if bench.sent(BROKER) == asked:
        for at in range(0, len(answered), chunk):
            bench.feed(BROKER, answered[at : at + chunk])
    told = [comment for comment in tape.comments if f"fault: {word}" in comment]
    named = [comment for comment in tape.comments if comment.startswith("client test")]
    assert len(named) == 1
    if word in ("delay", "hold") and on == "response":
        assert told == []  # it is recorded when the client gets it
        return
    assert len(told) == 1
    # What the client sent is in the recording, whatever became of it.
    assert tape.of(0, CLIENT) == asked
    if on == "response" and word not in ("throttle", "delay"):
        # What the broker said is there, too, with its request.
        assert tape.of(1, BROKER) == answered
        assert tape.of(1, CLIENT) == asked


def test_a_delayed_response_is_recorded_when_it_goes_on() -> None:
    bench, tape = tapped("-> delay 5ms on response")
    bench.exchange(beat(), pulse())
    bench.wake(10**7)
    assert tape.notes()[-1] == (BROKER, pulse(), "fault: delay 5ms")


def test_two_rules_are_both_told() -> None:
    bench, tape = tapped("-> throttle 1MB/s on response", "-> stamp 27")
    bench.exchange(beat(), pulse())
    assert tape.notes()[-1][2] == "fault: throttle 1MB/s; fault: stamp REBALANCE_IN_PROGRESS"


def test_requests_without_an_answer_are_told_of_too() -> None:
    bench, tape = tapped("-> drop on request")
    asked = produce(acks=0)
    bench.feed(CLIENT, asked)
    assert tape.notes() == [(CLIENT, asked, "client test; fault: drop")]


def test_a_request_with_secrets_that_is_replaced_stays_masked() -> None:
    bench, tape = tapped("-> hold on request")
    bench.feed(CLIENT, request(36, 2, {"auth_bytes": b"\0alice\0alice-secret"}))
    held = bench.hub.held
    (told,) = held.list()
    assert told["rule"]
    frame = held.frame(told["number"])
    bench.release(CLIENT, Replace(frame.payload))
    assert b"alice-secret" not in tape.of(0, CLIENT) + tape.of(1, CLIENT)
    assert tape.of(1, CLIENT) != b""
