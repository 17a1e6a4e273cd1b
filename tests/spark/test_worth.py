"""From where on Spark is faster, by a sample of the input; without Spark."""

import gzip
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.spark import worth
from kafkascope.analyzer.spark.worth import exchanges_per_megabyte, worth_spark
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "libraries.pcap"
LARGE, SMALL = 30, 1800


def test_small_messages_are_worth_it_on_fewer_cores_and_bytes() -> None:
    assert worth_spark(1, SMALL) is None
    assert worth_spark(2, LARGE) is None
    sizes = [worth_spark(cores, each) for each in (LARGE, SMALL) for cores in (4, 8, 64)]
    known = [size for size in sizes if size is not None]
    assert known == sorted(known, reverse=True)
    assert len(known) == 6
    assert known[0] > 10 * known[3]


def test_a_sample_counts_what_is_there(tmp_path: Path) -> None:
    with open_capture([SAMPLE]) as capture:
        count = sum(1 for _ in capture.exchanges())
    size = SAMPLE.stat().st_size
    assert exchanges_per_megabyte([str(SAMPLE)]) == pytest.approx(count * 1e6 / size)
    packed = tmp_path / "x.pcap.gz"
    packed.write_bytes(gzip.compress(SAMPLE.read_bytes()))
    expected = count * 1e6 / packed.stat().st_size
    assert exchanges_per_megabyte([str(packed)]) == pytest.approx(expected)


def test_of_large_input_some_beginnings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(map(str, SAMPLES.glob("*.pcap")))
    opened: list[str] = []
    known = worth.open_anywhere

    def counted(name: str, start: int) -> object:
        opened.append(name)
        return known(name, start)

    monkeypatch.setattr(worth, "open_anywhere", counted)
    monkeypatch.setattr(worth, "SAMPLED_BYTES", 20_000)
    assert exchanges_per_megabyte(names) > 0
    assert len(opened) == worth.SAMPLED_FILES
    assert {names[0], names[-1]} <= set(opened)


def test_what_is_no_capture_is_for_others_to_say(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no capture at all, only words")
    assert exchanges_per_megabyte([str(path)]) == 0
