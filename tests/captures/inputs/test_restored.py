"""Captures that were written through a terminal: what it changed, and what programs said there."""

import gzip
from pathlib import Path

import pytest

from kafkascope.captures.errors import CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.restored import Restored
from kafkascope.captures.merge.inputs import open_inputs
from tests.kit.captures import START_NS, Tape, Trickle, conversation
from tests.kit.samples import SAMPLES

BEFORE = b"tcpdump: data link type LINUX_SLL2\ntcpdump: listening on any, snapshot length 262144\n"
BEHIND = b"^C909 packets captured\n1820 packets received by filter\n0 packets dropped by kernel\n"
INSIDE = b"tcpdump: pcap_loop: The interface disappeared\n"
PCAP = (SAMPLES / "librdkafka.pcap").read_bytes()


def through_terminal(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def text() -> Tape:
    """Requests of another protocol, whose lines end with CR LF."""
    made = conversation(0)
    made.frames += [
        (START_NS + number, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") for number in range(40)
    ]
    return made


def pcapng() -> bytes:
    made = Tape()
    with Source([str(SAMPLES / "librdkafka.pcap")]) as source:
        made.frames = [(each.time_ns, each.data) for each in source.packets()]
    return made.pcapng()


def read(source: Source) -> tuple[list[bytes], list[str], str]:
    found: list[bytes] = []
    damage = ""
    try:
        found.extend(each.data for each in source.packets())
    except CutShort as error:
        damage = str(error)
    return found, source.restored, damage


EXPECTED = read(Source(["a"], None, {0: Trickle(PCAP)}))[0]


@pytest.mark.parametrize("data", [PCAP, pcapng(), gzip.compress(PCAP)], ids=["pcap", "ng", "gz"])
@pytest.mark.parametrize("before", [b"", BEFORE], ids=["", "text"])
@pytest.mark.parametrize("behind", [b"", BEHIND], ids=["", "epilogue"])
@pytest.mark.parametrize("terminal", [False, True], ids=["", "crlf"])
def test_what_a_terminal_did_is_undone(
    data: bytes, before: bytes, behind: bytes, terminal: bool, tmp_path: Path
) -> None:
    if data[:2] == b"\x1f\x8b" and (before or behind):
        return  # nobody compresses in a terminal that shows messages
    written = before + data + behind
    path = tmp_path / "a"
    path.write_bytes(through_terminal(written) if terminal else written)
    with open_inputs([str(path)]) as source:
        found, remarks, damage = read(source)
    assert (found, damage) == (EXPECTED, "")
    if data[:2] != b"\x1f\x8b":
        assert any("CR LF" in each for each in remarks) == terminal
        assert any("text before" in each for each in remarks) == bool(before)


@pytest.mark.parametrize("portions", [[], [1] * 50_000, [7, 5000, 1, 3, 100, 28, 1]])
def test_however_the_bytes_come(portions: list[int]) -> None:
    data = through_terminal(BEFORE + PCAP + BEHIND)
    found, remarks, damage = read(Source(["a"], None, {0: Trickle(data, portions)}))
    assert (found, len(remarks), damage) == (EXPECTED, 2, "")


def test_a_stream_that_cannot_be_read_twice_is_named() -> None:
    found, _, damage = read(Source(["a"], None, {0: Trickle(through_terminal(PCAP))}))
    assert len(found) < len(EXPECTED)
    assert "CR LF" in damage


def test_lines_of_captured_text_are_left_alone(tmp_path: Path) -> None:
    made = text()
    path = tmp_path / "a.pcap"
    path.write_bytes(made.pcap())
    assert path.read_bytes().count(b"\r\n") >= 100
    with open_inputs([str(path)]) as source:
        found, remarks, damage = read(source)
    assert (found, remarks, damage) == ([frame for _, frame in made.frames], [], "")


@pytest.mark.parametrize("terminal", [False, True])
def test_messages_between_packets_are_named(terminal: bool, tmp_path: Path) -> None:
    with Source([str(SAMPLES / "librdkafka.pcap")]) as source:
        at = [each.at - 16 for each in source.packets()][300]
    data = PCAP[:at] + INSIDE + PCAP[at:]
    path = tmp_path / "a.pcap"
    path.write_bytes(through_terminal(data) if terminal else data)
    with open_inputs([str(path)]) as source:
        found, _, damage = read(source)
    assert found == EXPECTED
    assert f"byte {at}: messages of the capturing program" in damage
    assert f"{len(INSIDE)} bytes were skipped" in damage


class Silent:
    """A stream that is silent between its pieces."""

    def __init__(self, *pieces: bytes | None) -> None:
        self._pieces = list(pieces)

    def readinto(self, buffer: memoryview, /) -> int | None:
        piece = self._pieces.pop(0) if self._pieces else b""
        if piece is not None:
            buffer[: len(piece)] = piece
        return None if piece is None else len(piece)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("line_feeds", [False, True])
def test_a_silence_is_passed_on(line_feeds: bool) -> None:
    stream = Restored(b"head", Silent(None, b"abc"), line_feeds=line_feeds)
    room = memoryview(bytearray(10))
    assert [stream.readinto(room) for _ in range(4)] == [4, None, 3, 0]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_texts_of_powershell_are_utf_8(tmp_path: Path, encoding: str) -> None:
    text = "[2026-11-28 18:18:52,136] DEBUG Completed request:RequestHeader(ü€😀)\n" * 999
    path = tmp_path / "kafka.log"
    path.write_bytes(f"\ufeff{text}".encode(encoding))
    with open_inputs([path]) as source:
        assert b"".join(source.text(0)).decode() == text
