"""The codecs: what they wrote reads back, garbage is refused, and a bomb stays small."""

import subprocess
import sys
import zlib
from pathlib import Path

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge
from kafkascope.dissectors.records.compression import _XERIAL, NAMES, compress, decompress, xxh32
from tests.kit.samples import ROOT

real = pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=NAMES.get)


@real
@given(st.binary(max_size=400) | st.binary(min_size=1, max_size=4).map(lambda b: b * 40_000))
def test_what_was_packed_unpacks(codec: int, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@real
@given(st.binary(max_size=200))
def test_garbage_is_refused(codec: int, data: bytes) -> None:
    try:
        decompress(codec, data, limit=1 << 20)
    except DissectError:
        pass


@real
@pytest.mark.parametrize("lost", [1, 4, 9])
def test_data_that_ends_early_is_refused(codec: int, lost: int) -> None:
    packed = compress(codec, b"some text that is long enough to be cut" * 50)
    with pytest.raises(Malformed):
        decompress(codec, packed[:-lost])


@real
def test_the_limit_holds(codec: int) -> None:
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, limit=100_000)) == 100_000
    with pytest.raises(TooLarge):
        decompress(codec, packed, limit=99_999)


def test_a_codec_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Malformed, match="no codec 7"):
        decompress(7, b"x")
    with pytest.raises(Malformed, match="no codec 7"):
        compress(7, b"x")


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (2, compress(2, b"one")[:12]),  # the header is cut
        (2, b"\xff\xff\xff\xff\x07" + b"\0" * 10),  # a block that claims too much
        *((3, data) for data in (b"", b"\x04\x22\x4d", b"\x04\x22\x4d\x18\x68\x40\x01")),
    ],
)
def test_a_header_that_is_cut_or_lies_is_refused(codec: int, data: bytes) -> None:
    with pytest.raises(DissectError):
        decompress(codec, data)


def test_snappy_without_framing_and_with_other_version_words() -> None:
    data = b"hello hello hello" * 10
    raw = bytes(cramjam.snappy.compress_raw(data))
    assert decompress(2, raw) == data
    # Redpanda wrote the version words in little-endian.
    framed = _XERIAL + b"\1\0\0\0\1\0\0\0" + len(raw).to_bytes(4, "big") + raw
    assert decompress(2, framed) == data


def test_an_lz4_block_that_is_damaged_is_refused() -> None:
    packed = bytearray(compress(3, b"hello hello " * 100))
    packed[12] = 0xFF
    with pytest.raises(Malformed, match="no lz4 data"):
        decompress(3, bytes(packed))


def test_lz4_blocks_are_independent() -> None:
    # Java's reader refuses others: "Dependent block stream is unsupported".
    assert compress(3, b"hello" * 100)[4] & 0x20


def test_the_lz4_header_checksum_of_magic_0_is_mended() -> None:
    packed = bytearray(compress(3, b"hello" * 100))
    at = 6 + (8 if packed[4] & 8 else 0)
    assert packed[at] == xxh32(bytes(packed[4:at])) >> 8 & 0xFF
    # KAFKA-3160: the frame's magic number was hashed, too.
    packed[at] = xxh32(bytes(packed[:at])) >> 8 & 0xFF
    with pytest.raises(cramjam.DecompressionError):
        cramjam.lz4.decompress(bytes(packed))
    assert decompress(3, bytes(packed)) == b"hello" * 100


@pytest.mark.parametrize("linked", [True, False])
def test_lz4_frames_of_other_shapes(linked: bool) -> None:
    # No content size, blocks of 64 KB: what Java's KafkaLZ4BlockOutputStream and liblz4 write.
    packer = cramjam.lz4.Compressor(block_linked=linked, content_checksum=linked)
    packer.compress(b"abcdefgh" * 40_000)
    assert decompress(3, bytes(packer.finish())) == b"abcdefgh" * 40_000


def test_several_members_and_frames_are_read_to_the_end() -> None:
    for codec in (1, 2, 4):
        assert decompress(codec, compress(codec, b"one") + compress(codec, b"two")) == b"onetwo"
    sized = zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 1000)
    assert decompress(4, sized) == b"x" * 1000


BOMB = """
import resource, sys, zlib
from kafkascope.dissectors.records.compression import compress, decompress
from kafkascope.dissectors.errors import DissectError
codec, data = int(sys.argv[1]), open(sys.argv[2], "rb").read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, data, limit=16 << 20)
    sys.exit("a bomb went through")
except DissectError as error:
    assert error.word == "too-large", error
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("codec", [1, 3, 4], ids=NAMES.get)
def test_a_bomb_takes_no_more_memory_than_a_few_times_the_limit(codec: int, tmp_path: Path) -> None:
    # 256 MB of zeros; snappy cannot do it in one block of a plausible size.
    file = tmp_path / "bomb"
    if codec == 1:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        parts = [packer.compress(bytes(1 << 20)) for _ in range(256)]
        file.write_bytes(b"".join(parts) + packer.flush())
    else:
        file.write_bytes(compress(codec, bytes(256 << 20)))
    command = [sys.executable, "-c", BOMB, str(codec), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(done.stdout) < 160
