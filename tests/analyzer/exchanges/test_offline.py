"""Capture files to exchanges."""

import gzip
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import fingerprint, open_capture
from kafkascope.analyzer.exchanges.records import fields_of
from kafkascope.analyzer.exchanges.seen_schemas import UsedSchemas
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.message import of_records
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.errors import NotACapture
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.schemas.model import SchemaKey
from tests.analyzer.filter.decoded.orders import VALUE, avro, payloads
from tests.kit.samples import SAMPLES
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
    assert fingerprint("-") == fingerprint("/nowhere/at/all")


# --- whoever reads the records of a field reads the same ones, behind damage as well --------------


def batch(number: int, codec: int = 0) -> bytes:
    value = avro(VALUE | {"count": number})
    return encode_batch([Record(0, 1, b"%d" % number, value, ())], codec=codec)


def damaged() -> Exchange:
    """A batch, one whose compressed part is broken, another batch, and what is none."""
    broken = batch(2, codec=1)
    broken = broken[:61] + b"\xff" * (len(broken) - 61)
    asked = produce(1, records=batch(1) + broken + batch(3) + b"\xff" * 80)
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
