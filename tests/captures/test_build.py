"""Composed conversations are valid to the last checksum and come back as what went in."""

import logging
import shutil
import struct
import subprocess
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.build import BULK, Composer, checksum
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint, Gap
from kafkascope.captures.packets.tcp import ACK
from tests.kit.captures import A, B, Tape, bytes_of, conversation, read

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

A6, B6 = Endpoint("fd00::1", 40001), Endpoint("10.0.0.2", 9092)


def by_words(data: bytes) -> int:
    padded = data + bytes(len(data) & 1)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


@given(st.binary(max_size=64), st.integers(0, 2 * BULK), st.sampled_from([0, 1, 0x7F, 0xFF]))
def test_any_length_and_content_has_the_plain_sum(data: bytes, more: int, fill: int) -> None:
    whole = data + bytes([fill]) * more
    assert checksum(whole) == by_words(whole)


@given(
    st.sampled_from([("10.0.0.1", "10.0.0.2"), ("::1", "fe80::2")]),
    st.integers(0, LIMITS.mss_bytes),
)
def test_without_the_sum_of_a_payload_the_pseudo_header_is_summed(
    hosts: tuple[str, str], size: int
) -> None:
    a, b = (Endpoint(host, 9000 + port) for port, host in enumerate(hosts))
    head = Composer(a, b).head(1, ACK, size, None)
    right = Composer(a, b).head(1, ACK, size, 0)
    assert head[:-4] + head[-2:] == right[:-4] + right[-2:]  # nothing but the checksum of TCP
    pseudo = ip_address(b.host).packed + ip_address(a.host).packed
    pseudo += struct.pack(">II", 6, 20 + size)
    assert int.from_bytes(head[-4:-2], "big") == 0xFFFF - by_words(pseudo)


@pytest.mark.parametrize("ends", [(A, B), (A6, B6)])
def test_scapy_computes_the_same_packets(ends: tuple[Endpoint, Endpoint]) -> None:
    from scapy.layers.inet import IP, TCP
    from scapy.layers.l2 import Ether

    composer = Composer(*ends, isn=(0xFFFF_FFF0, 7), mss=100)
    frames = composer.open() + composer.send(0, b"x" * 333) + composer.close(1) + composer.reset(0)
    for frame in frames:
        again = Ether(frame)
        del again[TCP].chksum
        if IP in again:
            del again[IP].chksum, again[IP].len
        else:
            del again.payload.plen
        assert bytes(again) == frame


@given(
    st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=700)), max_size=12),
    st.integers(1, 300),
    st.sampled_from([(A, B), (A6, B6)]),
    st.sampled_from([1, 101]),
)
def test_what_was_sent_comes_back(
    sent: list[tuple[int, bytes]], mss: int, ends: tuple[Endpoint, Endpoint], link_type: int
) -> None:
    tape = Tape()
    composer = Composer(*ends, mss=mss, link_type=link_type, isn=(0xFFFF_FF00, 1))
    tape.add(composer.open())
    for direction, data in sent:
        tape.add(composer.send(direction, data))
    tape.add([*composer.close(0), *composer.close(1)])
    events, source, error = read(tape.pcap(link_type=link_type))
    assert not error
    expected = [b"".join(data for way, data in sent if way == side) for side in (0, 1)]
    assert sorted(bytes_of(events).values()) == sorted(filter(None, expected))
    assert not [event for event in events if isinstance(event, Gap)]
    assert source.statistics.skipped == {}


def test_a_loss_becomes_a_gap() -> None:
    tape, composer = Tape(), Composer(A, B)
    tape.add(composer.open())
    composer.lose(0, 50)
    tape.add(composer.send(0, b"rest"))
    gaps = [event for event in read(tape.pcap())[0] if isinstance(event, Gap)]
    assert [(gap.size, gap.reason) for gap in gaps] == [(50, "lost")]


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_finds_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    path.write_bytes(conversation(3).pcapng("leg"))
    check = ["--disable-protocol", "kafka"]
    check += ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    wrong = "_ws.expert.severity >= 6291456 or tcp.checksum.status == 0 or tcp.analysis.flags"
    run = subprocess.run(
        ["tshark", "-r", str(path), *check, "-Y", wrong], capture_output=True, text=True, check=True
    )
    assert run.stdout == ""
