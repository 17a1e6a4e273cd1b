"""Link, IP and TCP headers: our reading against scapy's, which builds the packets."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.model import Packet
from kafkascope.captures.packets.link import LINK_TYPES
from kafkascope.captures.packets.tcp import MASK, Segment, distance, endpoints, reverse, segment_of
from tests.kit.captures import FLOW, packet

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
inet = pytest.importorskip("scapy.layers.inet")
inet6 = pytest.importorskip("scapy.layers.inet6")
l2 = pytest.importorskip("scapy.layers.l2")
packets = pytest.importorskip("scapy.packet")

DATA = b"payload"


def tcp(data: bytes = DATA, **fields: Any) -> Any:
    options = [("MSS", 1460), ("NOP", None), ("Timestamp", (1, 2))]
    fields = {"sport": 40000, "dport": 9092, "seq": 7, "ack": 9, "flags": "PA"} | fields
    return inet.TCP(options=options, **fields) / data


def four(**fields: Any) -> Any:
    return inet.IP(src="10.0.0.1", dst="10.0.0.2", id=77, **fields)


def six(**fields: Any) -> Any:
    return inet6.IPv6(src="fd00::1", dst="fd00::2", **fields)


ETHER = l2.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")

WHOLE: dict[str, tuple[int, Any]] = {
    "ethernet": (1, ETHER / four() / tcp()),
    "vlan": (1, ETHER / l2.Dot1Q(vlan=5) / four() / tcp()),
    "qinq": (1, ETHER / l2.Dot1AD(vlan=5) / l2.Dot1Q(vlan=6) / four() / tcp()),
    "ip options": (1, ETHER / four(options=[inet.IPOption(b"\x94\4\0\0")]) / tcp()),
    "ipv6": (1, ETHER / six() / tcp()),
    "hop-by-hop": (1, ETHER / six() / inet6.IPv6ExtHdrHopByHop() / tcp()),
    "options and routing": (
        1,
        ETHER / six() / inet6.IPv6ExtHdrDestOpt() / inet6.IPv6ExtHdrRouting() / tcp(),
    ),
    "atomic fragment": (1, ETHER / six() / inet6.IPv6ExtHdrFragment(offset=0, m=0) / tcp()),
    "sll": (113, l2.CookedLinux(proto=0x800) / four() / tcp()),
    "sll2": (276, l2.CookedLinuxV2(proto=0x86DD, ifindex=3) / six() / tcp()),
    "loopback": (0, l2.Loopback(type=2) / four() / tcp()),
    "raw": (101, four() / tcp()),
    "raw ipv6": (229, six() / tcp()),
    "padding": (
        1,
        ETHER / four() / inet.TCP(sport=1, dport=2, flags="A") / packets.Padding(b"\0" * 6),
    ),
    "no payload": (1, ETHER / four() / tcp(b"")),
}


@pytest.mark.parametrize("name", WHOLE)
def test_reads_what_scapy_built(name: str) -> None:
    link_type, built = WHOLE[name]
    data = bytes(built)
    found = segment_of(packet(data, link_type=link_type))
    again = built.__class__(data)[inet.TCP]
    payload = bytes(again.payload) if not again.haslayer(packets.Padding) else b""
    assert (found.seq, found.ack, found.flags) == (again.seq, again.ack, int(again.flags))
    assert bytes(found.payload) == payload
    assert found.length == len(payload)
    assert data[found.at : found.at + len(payload)] == payload
    source, destination = endpoints(found.flow)
    layer = built.__class__(data).getlayer(inet.IP) or built.__class__(data)[inet6.IPv6]
    assert (source.host, source.port) == (layer.src, again.sport)
    assert (destination.host, destination.port) == (layer.dst, again.dport)


REFUSED: dict[str, tuple[int, bytes, str]] = {
    "arp": (1, bytes(ETHER / l2.ARP()), "not ip"),
    "udp": (1, bytes(ETHER / four() / inet.UDP() / b"x"), "not tcp"),
    "first fragment": (1, bytes(ETHER / four(flags="MF") / tcp()), "fragment"),
    "later fragment": (1, bytes(ETHER / four(frag=5, proto=6) / (b"x" * 30)), "fragment"),
    "ipv6 fragment": (1, bytes(ETHER / six() / inet6.IPv6ExtHdrFragment(m=1) / tcp()), "fragment"),
    "unknown link": (147, b"x" * 60, "unknown link type"),
    "cut in ethernet": (1, bytes(ETHER / four() / tcp())[:13], "cut"),
    "cut in ip": (1, bytes(ETHER / four() / tcp())[:30], "cut"),
    "cut in tcp": (1, bytes(ETHER / four() / tcp())[:45], "cut"),
    "short ip header": (101, b"\x41" + bytes(four() / tcp())[1:], "malformed"),
    "short tcp header": (101, bytes(four() / tcp(dataofs=4)), "malformed"),
    "version 5": (1, bytes(ETHER / four(version=5) / tcp()), "malformed"),
    "endless extension headers": (229, bytes(six(nh=0)) + bytes(8) * 100, "malformed"),
    "no next header": (229, bytes(six(nh=59)), "not tcp"),
    "empty": (1, b"", "cut"),
    "macos tap, of another kind": (258, b"\x6c\0\0\0\2" + bytes(120), "not ip"),
    "ppi around something else": (192, b"\0\0\x08\0\x93" + bytes(80), "not ip"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_says_why_there_is_no_segment(name: str) -> None:
    link_type, data, reason = REFUSED[name]
    length = max(len(data), 100)
    assert segment_of(packet(data, link_type=link_type, length=length)) == reason


def test_a_total_length_of_zero_means_the_rest_of_the_frame() -> None:
    data = bytearray(bytes(ETHER / four() / tcp()))
    data[16:18] = b"\0\0"
    found = segment_of(packet(bytes(data)))
    assert bytes(found.payload) == DATA


def test_authentication_is_no_end() -> None:
    data = bytes(ETHER / four(proto=51) / (b"\x06\x04" + bytes(22)) / tcp())
    found = segment_of(packet(data))
    assert bytes(found.payload) == DATA
    assert segment_of(packet(data[:35], length=len(data))) == "cut"


def test_the_snaplen_leaves_the_length_on_the_wire() -> None:
    data = bytes(ETHER / four() / tcp(b"x" * 100))
    found = segment_of(packet(data[:-60], length=len(data)))
    assert (len(found.payload), found.length) == (40, 100)


def test_tcp_needs_its_first_14_bytes_only() -> None:
    data = bytes(ETHER / four() / tcp(b"x" * 100))
    found = segment_of(packet(data[:48], length=len(data)))
    assert (bytes(found.payload), found.length, found.seq) == (b"", 100, 7)


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("family", [2, 10, 23, 24, 28, 30])
def test_loopback_in_the_byte_order_of_its_machine(order: Any, family: int) -> None:
    layer = four() if family == 2 else six()
    data = family.to_bytes(4, order) + bytes(layer / tcp())
    for link_type in (0, 108):
        assert isinstance(segment_of(packet(data, link_type=link_type)), Segment)


SNAP = b"\xaa\xaa\x03\x00\x00\x00\x08\x00"
LINKS: dict[str, tuple[int, bytes]] = {
    "ppp": (9, b"\xff\x03\x00\x21"),
    "ppp, compressed": (9, b"\x21"),
    "ppp in hdlc": (50, b"\xff\x03\x00\x21"),
    "cisco hdlc": (104, b"\x0f\x00\x08\x00"),
    "pflog": (117, b"\x3d" + bytes(63)),
    "nflog": (239, bytes(4) + b"\x08\x00\x01\x00" + bytes(4) + b"\x2b\x00\x09\x00"),
    "mpls": (1, bytes(12) + b"\x88\x47\x00\x00\x10\x40\x00\x00\x21\x40"),
    "pppoe": (1, bytes(12) + b"\x88\x64\x11\x00\x00\x01\x00\x40\x00\x21"),
    "snap": (1, bytes(12) + b"\x00\x50\xaa\xaa\x03\x00\x00\x00\x08\x00"),
    "pppoe alone": (51, b"\x11\x00\x00\x01\x00\x40\x00\x21"),
    "ppp with direction": (204, b"\x01\xff\x03\x00\x21"),
    "ppp of pppd": (166, b"\x00\x03\x00\x21"),
    "vn-tag": (1, bytes(12) + b"\x89\x26\x00\x01\x00\x02\x08\x00"),
    "802.1br": (1, bytes(12) + b"\x89\x3f\x00\x01\x00\x02\x00\x00\x08\x00"),
    "802.1ah": (1, bytes(12) + b"\x88\xe7\x00\x00\x00\x01" + bytes(12) + b"\x08\x00"),
    "group tag": (1, bytes(12) + b"\x89\x09\x01\x01\x00\x01\x00\x07\x08\x00"),
    "mpls with ethernet": (1, bytes(12) + b"\x88\x47\x00\x02\x11\x40" + bytes(12) + b"\x08\x00"),
    "mpls with a control word": (
        1,
        bytes(12) + b"\x88\x47\x00\x02\x11\x40" + bytes(4) + b"\x02" + bytes(11) + b"\x08\x00",
    ),
    "sll2 with mpls": (276, b"\x88\x47" + bytes(18) + b"\x00\x02\x11\x40"),
    "802.11": (105, b"\x08\x01" + bytes(22) + SNAP),
    "802.11 with quality": (105, b"\x88\x02" + bytes(24) + SNAP),
    "802.11 with high throughput": (105, b"\x88\x82" + bytes(28) + SNAP),
    "802.11 between access points": (105, b"\x88\x03" + bytes(30) + SNAP),
    "802.11 aggregated": (105, b"\x88\x02" + bytes(22) + b"\x80\x00" + bytes(14) + SNAP),
    "radiotap": (127, b"\x00\x00\x08\x00" + bytes(4) + b"\x08\x01" + bytes(22) + SNAP),
    "radiotap, padded": (
        127,
        b"\0\0\x19\0\3\0\0\0" + bytes(8) + b"\x20" + bytes(8) + b"\x88\1" + bytes(26) + SNAP,
    ),
    "ppi": (192, b"\x00\x00\x0c\x00\x69\x00\x00\x00" + bytes(4) + b"\x08\x01" + bytes(22) + SNAP),
    "macos tap, ethernet": (258, b"\x6c\0\0\0\1\0\0\0\1\0\0\0" + bytes(108) + b"\x08\0"),
    "macos tap, loopback": (149, b"\x6c\0\0\0\1" + bytes(103) + b"\2\0\0\0"),
    "solaris": (226, bytes(24)),
    "bsd ipsec": (109, bytes(12)),
    "sll2 with a tag": (276, b"\x81\x00" + bytes(18) + b"\x00\x05\x08\x00"),
}


@pytest.mark.parametrize("name", LINKS)
def test_link_headers(name: str) -> None:
    link_type, head = LINKS[name]
    body = bytes(four() / tcp())
    found = segment_of(packet(head + body, link_type=link_type))
    assert bytes(found.payload) == DATA
    for size in range(len(head)):
        short = segment_of(packet(head[:size], link_type=link_type, length=200))
        assert isinstance(short, str)


@pytest.mark.parametrize(
    "head",
    [
        b"\x80\x00" + bytes(22),  # a beacon
        b"\x48\x01" + bytes(22),  # data without bytes
        b"\x08\x41" + bytes(22) + SNAP,  # encrypted
        b"\x08\x01" + bytes(22) + b"\x42\x42\x03" + bytes(5),  # spanning tree
    ],
)
def test_other_frames_of_radio_are_not_ip(head: bytes) -> None:
    assert segment_of(packet(head + bytes(80), link_type=105)) == "not ip"


def test_the_interface_of_linux_cooked_v2_tells_copies_apart() -> None:
    one, two = (
        segment_of(
            packet(bytes(l2.CookedLinuxV2(proto=0x800, ifindex=n) / four() / tcp()), link_type=276)
        )
        for n in (1, 2)
    )
    assert one.copy == two.copy
    assert one.interface != two.interface


@given(st.integers(0, MASK), st.integers(-(1 << 30), (3 << 30) - 1))
def test_distance_is_exact_over_the_wrap_around(start: int, ahead: int) -> None:
    assert distance(start, start + ahead & MASK) == ahead


def test_reverse_is_the_other_direction() -> None:
    assert endpoints(reverse(FLOW)) == endpoints(FLOW)[::-1]
    assert reverse(reverse(FLOW)) == FLOW


@given(st.sampled_from([*LINK_TYPES, 999]), st.binary(max_size=120), st.integers(0, 200))
def test_any_bytes_give_a_segment_or_a_reason(link_type: int, data: bytes, more: int) -> None:
    found = segment_of(Packet(1, 0, link_type, data, len(data) + more, 0, 0, 0))
    assert isinstance(found, Segment | str)
    if isinstance(found, Segment):
        assert found.length >= len(found.payload) >= 0


@given(st.binary(max_size=60), st.sampled_from([4, 6]), st.integers(0, 200))
def test_any_ip_bytes_give_a_segment_or_a_reason(rest: bytes, version: int, more: int) -> None:
    head = bytes([version << 4 | 5]) + rest[:8] + b"\x06" + rest[8:]
    found = segment_of(Packet(1, 0, 101, head, len(head) + more, 0, 0, 0))
    assert isinstance(found, Segment | str)
