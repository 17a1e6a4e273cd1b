"""Capture files to exchanges."""

import gzip
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import fingerprint_of, open_capture
from kafkascope.analyzer.exchanges.pairs import is_named
from kafkascope.analyzer.exchanges.records import fields_of
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.exchanges.seen_schemas import UsedSchemas
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.message import of_records
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.errors import NotACapture
from kafkascope.captures.model import BEHIND_ALL
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.kernel.numbering import MOST_HELD, Hold
from kafkascope.schemas.model import SchemaKey
from tests.analyzer.filter.decoded.orders import VALUE, avro, payloads
from tests.kit import wire
from tests.kit.batches import batch
from tests.kit.captures import late_names
from tests.kit.forwarded import FRONT, forwarded
from tests.kit.run import objects, run
from tests.kit.samples import CAPTURES, SAMPLES
from tests.kit.traffic import files
from tests.kit.wire import Wire, produce, told

ALL = sorted(SAMPLES.glob("*.pcap*"))
SAMPLE = min(ALL, key=lambda path: path.stat().st_size)


def ids(path: Path) -> list[tuple[int, str, str]]:
    with open_capture([path]) as capture:
        return [(e.number, e.id, e.state) for e in capture.exchanges()]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_numbers_are_dense_and_ids_unique(path: Path) -> None:
    found = ids(path)
    assert sorted(number for number, _, _ in found) == list(range(1, len(found) + 1))
    assert len({each for _, each, _ in found}) == len(found)


def test_ids_do_not_depend_on_where_the_file_lies(tmp_path: Path) -> None:
    copy = tmp_path / "other.cap"
    copy.write_bytes(SAMPLE.read_bytes())
    assert ids(copy) == ids(SAMPLE)


def test_a_cut_file_gives_what_is_whole_and_says_so(tmp_path: Path) -> None:
    whole = SAMPLE.read_bytes()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole[: len(whole) * 2 // 3 + 1])
    with open_capture([cut]) as capture:
        found = list(capture.exchanges())
        assert capture.damage is not None
    assert 0 < len(found) <= len(ids(SAMPLE))


def test_compressed_input_has_the_same_exchanges(tmp_path: Path) -> None:
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(SAMPLE.read_bytes()))
    assert [e[::2] for e in ids(packed)] == [e[::2] for e in ids(SAMPLE)]


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "x.txt"
    text.write_text("hello, this is no capture")
    with pytest.raises(NotACapture):
        open_capture([text])


def test_a_pipe_has_no_fingerprint_of_its_own() -> None:
    assert fingerprint_of("-") == fingerprint_of("/nowhere/at/all")


# --- whoever reads the records of a field reads the same ones, behind damage as well --------------


def one_record(number: int, codec: int = 0) -> bytes:
    value = avro(VALUE | {"count": number})
    return encode_batch([Record(0, 1, b"%d" % number, value, ())], codec=codec)


def damaged() -> Exchange:
    """A batch, one whose compressed part is broken, another batch, and what is none."""
    broken = one_record(2, codec=1)
    broken = broken[:61] + b"\xff" * (len(broken) - 61)
    asked = produce(1, records=one_record(1) + broken + one_record(3) + b"\xff" * 80)
    (found,) = told(Wire().client(asked).events)
    return found


def test_all_read_the_records_before_and_behind_a_damaged_batch() -> None:
    exchange, names = damaged(), TopicNames()
    damage: list[DissectError] = []
    (field,) = fields_of(exchange, names)
    opened = [(len(each.records), each.error is None) for _, each in field.opened(damage=damage)]
    assert opened == [(1, True), (0, False), (1, True)]
    assert len(damage) == 1
    assert tuple(of_records("record.key")(exchange)) == (b"1", b"3")
    decoding = Decoding(payloads, lambda: names)
    assert decoding.values(exchange, "", ("record.value", "count")) == (1, 3)
    used = UsedSchemas(names, payloads())
    used.add(exchange)
    assert used.uses[SchemaKey("id", 7)].counts == {"key": 0, "value": 2}


# --- numbers are ranks by origin ------------------------------------------------------------------


FILES = [*sorted(SAMPLES.glob("*.pcap*")), *sorted(CAPTURES.glob("*.pcap*"))[::3]]


def hold(most_held: int = MOST_HELD, most_bytes: int = 1 << 20) -> Hold[str]:
    return Hold(len, None, most_held, most_bytes)


@given(st.integers(0, 1 << 32), st.integers(1, 60))
def test_numbers_are_ranks_whatever_is_complete_first(seed: int, count: int) -> None:
    """Each begins at one moment, is complete at a later one, and may be found late to begin."""
    random = Random(seed)
    begins = sorted(random.sample(range(1, 10 * count), count))
    known = [begin + random.choice([0, 0, 0, 5, 40]) for begin in begins]
    lasts = [begin + random.choice([0, 1, 30, 200]) for begin in begins]
    ends = list(map(max, known, lasts))
    all_ = list(zip(begins, known, ends, strict=True))
    held, out = hold(), []
    for now in range(max(ends) + 1):
        told = [(begin, 0, str(begin)) for begin, _, end in all_ if end == now]
        out += held.add(told)
        if random.random() < 0.5:
            continue
        unknown = [begin for begin, at, _ in all_ if at > now]
        begun = [(begin, 0) for begin, at, end in all_ if at <= now < end]
        out += held.settle(min([*unknown, now + 1]), begun)
    out += held.finish()
    assert out == [(number, str(begin)) for number, begin in enumerate(begins, 1)]
    assert len(held) == 0


def test_what_is_not_complete_is_left_behind_at_the_bound() -> None:
    held = hold(most_held=4)
    held.add([(packet, 0, "x") for packet in (2, 3, 4, 6)])
    assert held.settle(7, [(1, 0), (5, 0)]) == []
    assert held.add([(7, 0, "x")]) == []
    assert [number for number, _ in held.settle(8, [(1, 0), (5, 0)])] == [2, 3, 4]
    assert held.left_behind() == {1}
    assert held.add([(1, 0, "late")]) == [(1, "late")]
    assert held.add([(5, 0, "x")]) == []
    assert [number for number, _ in held.finish()] == [5, 6, 7]


def test_large_exchanges_are_held_for_less_long() -> None:
    held = hold(most_bytes=10)
    held.add([(2, 0, "x" * 6)])
    assert held.settle(3, [(1, 0)]) == []
    held.add([(3, 0, "x" * 6)])
    assert [number for number, _ in held.settle(4, [(1, 0)])] == [2, 3]


def test_what_may_begin_before_does_not_hold_for_ever() -> None:
    """It gets a later number then."""
    held = hold(most_held=16)
    held.add([(packet, 0, "x") for packet in range(10, 30)])
    assert [number for number, _ in held.settle(5, [])] == [*range(1, 7)]
    held.add([(5, 0, "late")])
    assert dict(held.settle(BEHIND_ALL, []))[7] == "late"


def test_live_exchanges_get_the_next_number() -> None:
    held = hold()
    held.add([(5, 0, "a")])
    assert list(held.at_once([(9, 0, "b"), (7, 0, "c")])) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_captures_are_read_in_the_order_of_numbers(path: Path) -> None:
    check([str(path)])


@given(st.integers(0, 1 << 32))
@settings(max_examples=settings().max_examples // 2)
def test_whatever_happens_on_the_network(seed: int) -> None:
    with TemporaryDirectory() as folder:
        check(files(seed, Path(folder)))


def check(names: list[str]) -> None:
    with open_capture(names) as capture:
        found = list(capture.exchanges())
        assert capture.context.exchanges == len(found)
    origins = [each.origin for each in found]
    assert [each.number for each in found] == list(range(1, len(found) + 1))
    assert origins == sorted(set(origins))
    with open_capture(names) as capture:
        capture.live = True
        live = list(capture.exchanges())
    assert [each.number for each in live] == list(range(1, len(found) + 1))
    assert sorted(each.origin for each in live) == origins


def test_exchanges_wait_for_the_names_of_their_topics(tmp_path: Path) -> None:
    with open_capture([late_names(tmp_path / "late.pcapng")]) as capture:
        names = capture.context.names
        found = list(capture.exchanges())
        assert all(is_named(each, names) for each in found)
        assert [row_of(each, names).topics for each in found] == [("orders",), ("orders",), ()]


def test_beyond_the_bound_they_go_without() -> None:
    held: Hold[str] = Hold(len, lambda item: item != "nameless", 3)
    held.add([(1, 0, "nameless"), (2, 0, "x"), (3, 0, "x")])
    assert held.settle(4, []) == []
    held.add([(4, 0, "x")])
    assert [item for _, item in held.settle(5, [])] == ["nameless", "x", "x", "x"]


# --- both sides of a TCP proxy in one capture -----------------------------------------------------


ROUNDS = 6


@pytest.fixture(name="capture")
def _capture(tmp_path: Path) -> str:
    """A producer behind a proxy."""

    def message(number: int, direction: int, _: bytes) -> bytes:
        rows = [{"index": 0, "records": batch([(None, b"%d" % number)])}]
        if not direction:
            topics = [{"name": "orders", "partition_data": rows}]
            return wire.request("Produce", 3, number, acks=-1, topic_data=topics)
        part = {"index": 0, "base_offset": number}
        topics = [{"name": "orders", "partition_responses": [part]}]
        return wire.response("Produce", 3, number, responses=topics)

    path = tmp_path / "both.pcap"
    path.write_bytes(forwarded(rounds=ROUNDS, both=message).pcap())
    return str(path)


def test_both_sides_have_rows(capture: str) -> None:
    rows = objects("ls", "--json", capture)
    assert [row["number"] for row in rows] == list(range(1, 2 * ROUNDS + 1))
    sides = {row["broker_address"]: row["forwarded"] for row in rows}
    assert sides == {str(FRONT): False, "10.3.0.9:19092": True}
    text = run("ls", capture).stdout
    assert text.count("(forwarded)") == ROUNDS
    assert len(objects("ls", "--json", "-Y", "forwarded", capture)) == ROUNDS


def test_every_request_counts_once(capture: str) -> None:
    (topic,) = objects("stats", "topics", "--json", capture)
    assert topic["produced_records"] == ROUNDS
    (latency,) = objects("stats", "latency", "--json", capture)
    assert latency["requests"] == ROUNDS
    assert len(objects("stats", "connections", "--json", capture)) == 1
    assert len(objects("records", "--json", capture)) == ROUNDS
    assert not objects("diff", "--json", capture, capture)
