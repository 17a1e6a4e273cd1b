"""Captures joined with cat: the headers between their records are no records."""

import gzip
from pathlib import Path

import pytest

from kafkascope.captures.errors import CutShort
from kafkascope.captures.merge.inputs import open_inputs
from tests.kit.captures import Tape
from tests.kit.samples import SAMPLES

ONE = (SAMPLES / "kafka-python.pcap").read_bytes()
OTHER = (SAMPLES / "aiokafka.pcap").read_bytes()


def packets(path: Path, block_bytes: int | None = None) -> list[bytes]:
    with open_inputs([path]) as source:
        if block_bytes is not None:
            source.block_bytes = block_bytes
        return [bytes(packet.data) for packet in source.packets()]


def wanted(tmp_path: Path) -> list[bytes]:
    found = []
    for name, data in (("one", ONE), ("other", OTHER)):
        path = tmp_path / f"{name}.pcap"
        path.write_bytes(data)
        found += packets(path)
    return found


@pytest.mark.parametrize("block_bytes", [None, 64, 100, 1000])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_two_files_in_one_have_the_packets_of_both(
    tmp_path: Path, block_bytes: int | None, suffix: str
) -> None:
    """The header may lie across blocks; members of gz may be joined, too."""
    path = tmp_path / f"joined.pcap{suffix}"
    path.write_bytes(b"".join(gzip.compress(each) if suffix else each for each in (ONE, OTHER)))
    assert packets(path, block_bytes) == wanted(tmp_path)


def test_a_header_alone_at_the_end_is_no_packet(tmp_path: Path) -> None:
    path = tmp_path / "joined.pcap"
    path.write_bytes(ONE + OTHER[:24])
    (tmp_path / "one.pcap").write_bytes(ONE)
    assert packets(path) == packets(tmp_path / "one.pcap")


def test_a_header_that_is_cut_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "joined.pcap"
    path.write_bytes(ONE + OTHER[:20])
    with pytest.raises(CutShort):
        packets(path)


RAW = OTHER[:20] + b"\x65\0\0\0" + OTHER[24:]
NEXT_GENERATION = Tape().pcapng()


@pytest.mark.parametrize(
    ("one", "other"), [(ONE, RAW), (ONE, NEXT_GENERATION), (NEXT_GENERATION, ONE)]
)
def test_another_kind_behind_it_is_damage(tmp_path: Path, one: bytes, other: bytes) -> None:
    path = tmp_path / "joined.pcap"
    path.write_bytes(one + other)
    with pytest.raises(CutShort, match="another format starts here; join captures with mergecap"):
        packets(path)
