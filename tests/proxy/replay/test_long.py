"""A replay of days: what it learns and compares has bounds, and says what it left out."""

from types import SimpleNamespace
from typing import Any

from kafkascope.analyzer.transform.diff import Difference
from kafkascope.dissectors.registry import layout_of
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.replay import compare, streams
from kafkascope.proxy.replay.compare import Comparison
from kafkascope.proxy.replay.outcome import Latencies
from kafkascope.proxy.replay.plan import Permit, Plan
from kafkascope.proxy.replay.remap import IdMap
from kafkascope.proxy.replay.run import Replay
from tests.kit.served import batch


def test_differences_beyond_a_limit_are_counted() -> None:
    comparison = Comparison(limits=Limits(differences=3))
    assert not comparison.remarks
    for number in range(10):
        comparison.note("ListOffsets", 7, number + 1, "offset", number, number + 1)
    comparison.note("ListOffsets", 7, 11, "offset", 0, 1)
    comparison.note("Fetch", 12, 12, "error_code", 0, 1)
    found = {(each.api, each.path): (each.times, each.exchange) for each in comparison.all()}
    assert found["ListOffsets", compare.MORE] == (7, 4)
    assert found["Fetch", compare.MORE] == (1, 12)
    assert len(comparison.findings) == 5
    assert comparison.remarks == ["differences beyond 3 are only counted"]
    # Whoever waits for a difference to go away would wait for each of them.
    assert not comparison.is_new("ListOffsets", 7, [Difference("x", "changed", 1, 2)])


def test_latencies_of_many_exchanges_are_a_sample() -> None:
    latencies = Latencies(100)
    for number in range(10_000):
        latencies.add(number, number)
    assert latencies.count == 10_000
    assert len(latencies.kept) == 100
    assert 2_000 < sorted(latencies.kept)[50][0] < 8_000


def test_requests_beyond_a_limit_are_not_sent_and_not_kept() -> None:
    made = Plan(Permit(), limits=Limits(steps=2))
    kept: list[int] = []

    def keep() -> int:
        kept.append(len(kept))
        return kept[-1]

    body: dict[str, Any] = {"replica_id": -1, "topics": []}
    for key, api in ((2, "ListOffsets"), (0, "Produce"), (2, "ListOffsets"), (2, "ListOffsets")):
        request = SimpleNamespace(body=body, frame=SimpleNamespace(cut=False))
        made.add(
            SimpleNamespace(api=api, api_key=key, request=request, response=None, time_ns=1), keep
        )
    assert kept == [0, 1]
    assert [step.index for step in made.steps()] == [0, 1]
    assert made.skipped["ListOffsets", made.too_many] == 1


def test_ids_are_known_up_to_a_limit() -> None:
    ids = IdMap(3)
    for number in range(10):
        ids.learn(f"then {number}", f"now {number}")
    assert ids.live("then 9") == "now 9"
    assert ids.captured("now 7") == "then 7"
    assert ids.live("then 6") == "then 6"  # as if nobody had told
    assert len(ids._live) == len(ids._captured) == 3


LAYOUT = layout_of("FetchResponse", 4)


def fetched(topic: str, data: bytes) -> dict[str, Any]:
    part = {"partition_index": 0, "records": data, "error_code": 0}
    return {"responses": [{"topic": topic, "partitions": [part]}]}


def test_streams_keep_what_fits_and_tell_the_rest() -> None:
    limits = Limits(compared_partitions=2, equal_batches=5, waiting_batch_bytes=3_000)
    comparison = Comparison(limits=limits)
    seen = comparison.streams
    for number in range(20):
        data = batch(b"same", base=number)
        seen.add(LAYOUT, fetched("a", data), fetched("a", data))
    assert len(seen._places["a", 0].agreed) == 5
    for number in range(20):
        seen.add(LAYOUT, fetched("b", batch(b"then", base=number)), fetched("b", b""))
        # With what a small batch takes beside its bytes.
        assert len(seen._waiting) * streams.ENTRY_BYTES <= 3_000
    assert not comparison.remarks
    seen.add(LAYOUT, fetched("c", batch(b"x")), fetched("c", batch(b"y")))
    assert seen.left_out == 2
    assert comparison.remarks[0].startswith("2 fetched records or batches were not compared")
    (found,) = seen.differences()
    assert found[0] == "records of b-0"
    assert found[2] == "0 of them fetched"
    assert seen._bytes == 0


def test_what_is_on_its_way_has_a_limit_in_bytes() -> None:
    replay = object.__new__(Replay)
    replay.limits = Limits()
    replay._in_flight, replay._bytes = 1, 0
    assert not replay._full
    replay._bytes = 64 << 20
    assert replay._full
