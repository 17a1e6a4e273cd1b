"""Connections to ZooKeeper whose bytes are damaged, or of which the capture lacks some."""

import random
import struct
from pathlib import Path

import pytest

from kafkascope.analyzer.conversation.zookeeper import ZooKeeperSession
from kafkascope.analyzer.exchanges.rows import Row, to_json
from kafkascope.dissectors.zookeeper.frames import CONNECT_HEADER
from tests.kit.captures import records_of
from tests.kit.samples import SAMPLES, pairs_of

SAMPLE = SAMPLES / "zookeeper.pcap"
DATA = SAMPLE.read_bytes()
HEAD = 24
TCP_PAYLOAD = 16 + 14 + 20 + 32
"""Bytes of a record before what a segment holds: pcap, Ethernet, IP, TCP with timestamps."""


PACKETS = records_of(DATA)


def rows(home: Path, records: list[bytes]) -> list[tuple[Row, tuple[int, ...]]]:
    """Rows of a capture, each with the times of its packets."""
    path = home / "some.pcap"
    path.write_bytes(DATA[:HEAD] + b"".join(records))
    found = []
    for row, exchange in pairs_of(path):
        sides = (exchange.request, exchange.response)
        at = [part.packet for side in sides if side is not None for part in side.frame.parts]
        found.append((row, tuple(at)))
    return found


def by_key(found: list[tuple[Row, tuple[int, ...]]]) -> dict[object, list[object]]:
    """What rows say, by who and when; events of one packet have one time."""
    keyed: dict[object, list[object]] = {}
    for row, _ in found:
        keyed.setdefault(key(row), []).append(told(row))
    return keyed


def key(row: Row) -> tuple[str, int, str]:
    return row.client_address, row.time_ns, row.api


def told(row: Row) -> object:
    """What a row says that holes elsewhere must not change."""
    zookeeper = row.zookeeper and (row.zookeeper.path, row.zookeeper.event, row.zookeeper.zxid)
    sizes = row.latency_ns, row.request_bytes, row.response_bytes
    return row.state, row.correlation_id, *sizes, zookeeper, row.errors


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Row, tuple[int, ...]]]:
    return rows(tmp_path_factory.mktemp("whole"), PACKETS)


@pytest.mark.parametrize("seed", range(25))
def test_rows_beside_holes_are_right_and_no_pair_is_wrong(
    whole: list[tuple[Row, tuple[int, ...]]], seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    rate = chance.choice([0.01, 0.03, 0.1, 0.3])
    lost = {number for number in range(1, len(PACKETS) + 1) if chance.random() < rate}
    kept = [record for number, record in enumerate(PACKETS, 1) if number not in lost]
    after = rows(tmp_path, kept)
    found, before = by_key(after), by_key(whole)
    for row, at in whole:
        if lost.isdisjoint(at):
            assert told(row) in found.get(key(row), []), row
    for row, _ in after:
        if row.state in ("answered", "event"):
            assert told(row) in before[key(row)]


@pytest.mark.parametrize("first", [5, 30, 98, 177, 197, 201, 250])
def test_a_capture_that_begins_in_the_middle_is_picked_up_at_once(
    whole: list[tuple[Row, tuple[int, ...]]], first: int, tmp_path: Path
) -> None:
    found = by_key(rows(tmp_path, PACKETS[first - 1 :]))
    expected = [row for row, at in whole if min(at) >= first]
    assert expected
    for row in expected:
        assert told(row) in found[key(row)]


@pytest.mark.parametrize("seed", range(60))
def test_damaged_frames_are_rows_and_never_a_foreign_error(seed: int, tmp_path: Path) -> None:
    chance = random.Random(1000 + seed)
    damaged = []
    for record in PACKETS:
        changed = bytearray(record)
        if len(changed) > TCP_PAYLOAD and chance.random() < 0.3:
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(TCP_PAYLOAD, len(changed))
                changed[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        damaged.append(bytes(changed))
    for row, _ in rows(tmp_path, damaged):
        to_json(row)


def test_a_delete_of_any_version_is_no_handshake() -> None:
    payload = bytes.fromhex("00000053000000020000000c2f746f75722f70722f782f79ffffffff")
    header = ZooKeeperSession().header_of(payload)
    assert (header.correlation_id, header.api_key) != (0, CONNECT_HEADER.api_key)
    assert header.correlation_id == 0x53


def test_a_handshake_of_a_later_protocol_version_is_one() -> None:
    payload = struct.pack(">iqiqi", 7, 5, 6000, 0, 16) + bytes(17)
    assert ZooKeeperSession().header_of(payload) is CONNECT_HEADER
