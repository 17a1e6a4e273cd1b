"""Packets in packets: what scapy wraps, we unwrap."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.packets.ip import NOT_TCP
from kafkascope.captures.packets.link import CUT_SHORT, NOT_IP
from kafkascope.captures.packets.tcp import Segment, endpoints, segment_of
from kafkascope.captures.packets.tunnels import CARRIERS, inner_ip
from tests.kit.captures import packet

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
inet = pytest.importorskip("scapy.layers.inet")
inet6 = pytest.importorskip("scapy.layers.inet6")
l2 = pytest.importorskip("scapy.layers.l2")
vxlan = pytest.importorskip("scapy.layers.vxlan")

DATA = b"payload"
ETHER = l2.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
OUTER = ETHER / inet.IP(src="192.168.0.1", dst="192.168.0.2")
OUTER_6 = ETHER / inet6.IPv6(src="fd00::1", dst="fd00::2")


def tcp() -> Any:
    return inet.TCP(sport=40000, dport=9092, seq=7, ack=9, flags="PA") / DATA


INNER = inet.IP(src="10.0.0.1", dst="10.0.0.2") / tcp()
IP = inet.IP(src="10.9.0.1", dst="10.9.0.2")
INNER_6 = inet6.IPv6(src="fd01::1", dst="fd01::2") / tcp()
FRAME = ETHER / INNER


def udp(port: int) -> Any:
    return inet.UDP(sport=5555, dport=port, chksum=0)


GENEVE = bytes.fromhex("01006558 00000a00 00000000")  # one word of options

WRAPPED: dict[str, Any] = {
    "ip in ip": OUTER / INNER,
    "6in4": OUTER / INNER_6,
    "4in6": OUTER_6 / INNER,
    "gre": OUTER / l2.GRE() / INNER,
    "gre over ipv6": OUTER_6 / l2.GRE() / INNER,
    "gre with ipv6": OUTER / l2.GRE(proto=0x86DD) / INNER_6,
    "gre with key and number": (OUTER / l2.GRE(key_present=1, key=5, seqnum_present=1) / INNER),
    "gre with checksum": OUTER / l2.GRE(chksum_present=1) / INNER,
    "nvgre": OUTER / l2.GRE(proto=0x6558, key_present=1, key=5) / FRAME,
    "vlan in nvgre": OUTER / l2.GRE(proto=0x6558) / ETHER / l2.Dot1Q(vlan=5) / INNER,
    "erspan 1": OUTER / l2.GRE(proto=0x88BE) / bytes(FRAME),
    "erspan 2": (
        OUTER / l2.GRE(proto=0x88BE, seqnum_present=1) / (b"\x10\0\0\0\0\0\0\0" + bytes(FRAME))
    ),
    "erspan 3": OUTER / l2.GRE(proto=0x22EB, seqnum_present=1) / (bytes(12) + bytes(FRAME)),
    "erspan 3 with a subheader": (
        OUTER
        / l2.GRE(proto=0x22EB, seqnum_present=1)
        / (bytes(11) + b"\1" + bytes(8) + bytes(FRAME))
    ),
    "vxlan": OUTER / udp(4789) / vxlan.VXLAN(vni=7) / FRAME,
    "old vxlan": OUTER / udp(8472) / vxlan.VXLAN(vni=7) / FRAME,
    "vxlan in vxlan": OUTER / udp(4789) / vxlan.VXLAN() / OUTER / udp(8472) / vxlan.VXLAN() / FRAME,
    "ip in ip in vxlan": OUTER / udp(4789) / vxlan.VXLAN() / OUTER / INNER,
    "four tunnels": OUTER / IP / IP / IP / INNER,
    "vxlan with a protocol": OUTER / udp(4790) / (b"\x0c\0\0\1\0\0\7\0" + bytes(INNER)),
    "vxlan without one": OUTER / udp(4790) / (b"\x08\0\0\0\0\0\7\0" + bytes(FRAME)),
    "gtp": OUTER / udp(2152) / (b"\x30\xff\0\x40\0\0\0\1" + bytes(INNER)),
    "gtp with a number": OUTER / udp(2152) / (b"\x32\xff\0\x40\0\0\0\1\0\1\0\0" + bytes(INNER)),
    "gtp with headers": (
        OUTER / udp(2152) / (b"\x34\xff\0\x40\0\0\0\1\0\0\0\x85\1\0\0\x85\1\0\0\0" + bytes(INNER))
    ),
    "mpls in udp": OUTER / udp(6635) / (b"\0\2\x11\x40" + bytes(INNER)),
    "mpls in gre": OUTER / l2.GRE(proto=0x8847) / (b"\0\2\x11\x40" + bytes(INNER)),
    "mpls in ip": ETHER / inet.IP(proto=137) / (b"\0\2\x11\x40" + bytes(INNER)),
    "ethernet in ip": ETHER / inet.IP(proto=97) / (b"\x30\0" + bytes(FRAME)),
    "tzsp": OUTER / udp(37008) / (b"\1\0\0\1\0\x0a\1\xff\1" + bytes(FRAME)),
    "geneve": OUTER / udp(6081) / (GENEVE + bytes(FRAME)),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_inner_connection_is_seen(name: str) -> None:
    found = segment_of(packet(bytes(WRAPPED[name])))
    client, broker = endpoints(found.flow)
    assert client.host in ("10.0.0.1", "fd01::1")
    assert (client.port, broker.port) == (40000, 9092)
    assert bytes(found.payload) == DATA
    assert (found.seq, found.ack, found.length) == (7, 9, len(DATA))


@pytest.mark.parametrize("name", WRAPPED)
def test_a_cut_packet_never_has_more_than_it_holds(name: str) -> None:
    whole = bytes(WRAPPED[name])
    for size in range(len(whole)):
        found = segment_of(packet(whole[:size], length=len(whole)))
        if isinstance(found, Segment):
            assert len(found.payload) < found.length == len(DATA)


@pytest.mark.parametrize(
    "data",
    [
        OUTER / IP / IP / IP / IP / INNER,  # five tunnels
        OUTER / udp(2152) / (b"\x30\1\0\4" + bytes(12)),  # an echo of GTP
        OUTER / udp(2152) / (b"\x34\xff\0\x40\0\0\0\1\0\0\0\x85" + bytes(80)),  # of no size
        OUTER / udp(37008) / (b"\1\0\0\2\1" + bytes(80)),  # another protocol of TZSP
        OUTER / udp(37008) / (b"\1\0\0\1" + bytes(80)),  # without a last tag
        OUTER / udp(53) / b"question",
        OUTER / udp(53) / b"q",
        OUTER / udp(4789) / (bytes(8) + bytes(FRAME)),  # no network id
        OUTER / l2.GRE(proto=0x1234) / b"whatever it is",
        OUTER / l2.GRE(version=1, proto=0x880B) / b"PPTP has another header",
        OUTER / inet.ICMP(),
    ],
)
def test_other_packets_are_not_tcp(data: Any) -> None:
    assert segment_of(packet(bytes(data))) == NOT_TCP


@given(st.binary(max_size=80), st.integers(0, 90), st.sampled_from(sorted(CARRIERS)))
def test_any_bytes_are_taken(data: bytes, at: int, protocol: int) -> None:
    try:
        found = inner_ip(data, at, protocol)
    except CUT_SHORT:
        return  # `segment_of` says so: see test_headers
    assert NOT_IP <= found < max(len(data), 1) + 20_000
