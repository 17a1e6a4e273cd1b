"""The quick path does what the long path does, with rules that do not care and with recordings."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.transform.secrets import masked_response
from kafkascope.proxy.engine.stream import LEAST_BYTES, READ_BYTES, Arena
from kafkascope.proxy.recording.direct import Lease
from kafkascope.proxy.rules.faults import parse_fault
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT
from tests.analyzer.metadata_logs import SECRETS, answer, log, snapshot
from tests.kit.proxy import FETCH, Bench, Tape, beat, fetched, produce, pulse, request, response
from tests.kit.wire import framed

SECRET = b"hunter2-hunter2"
FETCH_SNAPSHOT = 59


def logging_in(number: int) -> bytes:
    return request(36, 2, {"auth_bytes": b"\0a\0" + SECRET}, correlation_id=number)


def fetch(version: int, number: int) -> bytes:
    return request(FETCH, version, correlation_id=number)


KINDS = (
    lambda n: (beat(n), pulse(n)),
    lambda n: (produce(correlation_id=n, size=3000), response(0, 9, correlation_id=n)),
    lambda n: (produce(correlation_id=n, acks=0), b""),
    lambda n: (fetch(12, n), fetched(12, [], 500, correlation_id=n)),
    lambda n: (fetch(16, n), fetched(16, [], 500, correlation_id=n)),
    lambda n: (logging_in(n), response(36, 2, correlation_id=n)),
    lambda n: (beat(n, "other"), pulse(n)),
    lambda n: (fetch(12, n), answer(12, log(0), correlation_id=n)),
    lambda n: (fetch(17, n), answer(17, log(1), correlation_id=n)),
    lambda n: (request(FETCH_SNAPSHOT, 1, correlation_id=n), snapshot(log(4), correlation_id=n)),
)
HIDDEN = {7: (1, 12), 8: (1, 17), 9: (59, 1)}
"""Kinds whose answers hold a secret: API key and version."""
RULES = (
    "api == Metadata and topic == nothing -> drop",
    "client == nobody -> drop",
    "api == Metadata -> stamp UNKNOWN_SERVER_ERROR",
)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=30),
    st.lists(st.integers(0, 1 << 16), max_size=12),
    st.lists(st.integers(0, 1 << 16), max_size=12),
    st.booleans(),
    st.lists(st.sampled_from(RULES), max_size=2),
)
def test_all_bytes_pass_and_are_recorded_whatever_the_way(
    kinds: list[int], ins: list[int], outs: list[int], recorded: bool, rules: list[str]
) -> None:
    bench = Bench(*rules)
    tape = Tape(bench) if recorded else None
    pairs = [KINDS[kind](number + 1) for number, kind in enumerate(kinds)]
    asked, answered = (b"".join(pair[side] for pair in pairs) for side in (0, 1))
    for piece in chunks(asked, ins):
        bench.feed(CLIENT, piece)
    assert len(bench.relay.pairing) == sum(bool(answer) for _, answer in pairs)
    for piece in chunks(answered, outs):
        bench.feed(BROKER, piece)
    assert bench.sent(BROKER) == asked
    assert bench.sent(CLIENT) == answered
    assert len(bench.relay.pairing) == 0
    if tape is not None:
        assert SECRET not in tape.of(0, CLIENT)
        assert tape.of(0, CLIENT) == asked.replace(SECRET, b"*" * len(SECRET)).replace(
            b"\0a\0" + b"*" * len(SECRET), b"*" * (len(SECRET) + 3)
        )
        told = tape.of(0, BROKER)
        assert not [secret for secret in SECRETS if secret in told]
        assert told == b"".join(
            masked_response(each, *HIDDEN[kind]) if kind in HIDDEN else each
            for kind, (_, each) in zip(kinds, pairs, strict=True)
        )


def test_a_rule_that_comes_later_is_asked_about_the_next_frame() -> None:
    bench = Bench("client == nobody -> drop")
    for number in range(3):
        bench.feed(CLIENT, beat(number))
    assert bench.relay.requests.quiet.heads
    bench.chain.add(parse_fault("api == Heartbeat -> drop on request"))
    before = bench.sent(BROKER)
    bench.feed(CLIENT, beat(9))
    assert bench.sent(BROKER) == before


def test_a_rule_about_another_client_of_the_same_connection_fires() -> None:
    bench = Bench("client == other -> drop on request")
    bench.feed(CLIENT, beat())
    bench.feed(CLIENT, beat() + beat(client_id="other"))
    assert bench.sent(BROKER) == beat() * 2


def test_memory_that_somebody_keeps_is_not_read_into() -> None:
    arena = Arena()
    kept: list[tuple[memoryview, bytes, Lease[bytearray]]] = []
    for number in range(200):
        size = (number * 7919) % READ_BYTES + 1
        fill = bytes([number])
        assert len(arena.view) >= LEAST_BYTES
        size = min(size, len(arena.view))
        arena.view[:size] = fill * size
        data = arena.view[:size]
        lease = arena.keep(data) if number % 3 else None
        if lease is not None:
            kept.append((data, fill, lease))
        if arena.held:
            arena.advance(size)
        if len(kept) > 20:
            del kept[:10]
        for view, byte, _ in kept:
            assert view[0] == view[-1] == byte[0]


def test_other_memory_is_not_leased() -> None:
    assert Arena().keep(memoryview(framed(b"bytes"))) is None
