"""Host names that captures resolve: DNS messages, blocks of pcapng, TLS hellos, hosts files."""

import ssl
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Resolved
from kafkascope.captures.packets.resolved import in_hosts_file, in_message, in_stream
from kafkascope.captures.streams.streams import streams
from kafkascope.captures.tls.messages import server_name
from tests.kit.captures import block, enhanced, interface, section
from tests.matrix import pairs

NAME = "kafka-1.prod.internal"


def answer(name: str = NAME, *records: DNSRR, rcode: int = 0) -> bytes:
    found = records or (DNSRR(rrname=name, type="A", rdata="10.0.0.7"),)
    return bytes(DNS(qr=1, rcode=rcode, qd=[DNSQR(qname=name)], an=list(found)))


def named(path: Path, *, bulk: bool | None = None) -> set[Resolved]:
    found: set[Resolved] = set()
    with open_inputs([path]) as source:
        list(streams(source, bulk=bulk, named=found.add))
    return found


def test_an_answer_with_an_alias() -> None:
    message = answer(
        NAME,
        DNSRR(rrname=NAME, type="CNAME", rdata="b1.example"),
        DNSRR(rrname="b1.example", type="A", rdata="10.0.0.7"),
        DNSRR(rrname="b1.example", type="A", rdata="10.0.0.8"),
    )
    hosts = ("10.0.0.7", "10.0.0.8")
    assert set(in_message(message)) == {
        Resolved(NAME, hosts, "dns"),
        Resolved("b1.example", hosts, "dns"),
    }
    assert set(in_stream(struct.pack(">H", len(message)) + message)) == set(in_message(message))


def test_questions_and_failures_tell_nothing() -> None:
    assert not list(in_message(bytes(DNS(qd=[DNSQR(qname=NAME)]))))
    assert not list(in_message(answer(rcode=3)))


def test_aliases_in_a_circle_end() -> None:
    message = answer(
        "a.example",
        DNSRR(rrname="a.example", type="CNAME", rdata="b.example"),
        DNSRR(rrname="b.example", type="CNAME", rdata="a.example"),
    )
    assert not list(in_message(message))


def test_pointers_that_lead_nowhere() -> None:
    header = struct.pack(">HHHHHH", 1, 0x8180, 1, 1, 0, 0)
    assert not list(in_message(header + b"\xc0\x0c" + bytes(4)))
    assert not list(in_message(header + b"\xc0\xff" + bytes(4)))


@given(st.binary(max_size=300))
def test_garbage_is_no_answer_and_no_error(data: bytes) -> None:
    list(in_message(b"\x00\x01\x81\x80" + data))
    list(in_stream(data))
    server_name(b"\x16\x03\x01" + data)


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_answer_is_no_error(at: int, value: int) -> None:
    data = bytearray(answer())
    data[at % len(data)] = value
    list(in_message(bytes(data)))


@pytest.mark.parametrize(("bulk", "port"), pairs([False, True], [53, 5353]))
@pytest.mark.parametrize("ip", [IP(dst="10.0.0.4"), IPv6(dst="fd00::4")])
def test_answers_in_packets(tmp_path: Path, ip: IP | IPv6, port: int, bulk: bool) -> None:
    """Between TCP packets, so that whole blocks are read at once."""
    packets = [Ether() / IP() / TCP(seq=number, flags="A") / b"x" for number in range(50)]
    packets.insert(7, Ether() / ip / UDP(sport=port, dport=4000) / answer())
    packets.insert(9, Ether() / ip / UDP(sport=4000, dport=4001) / answer())
    wrpcap(str(tmp_path / "dns.pcap"), packets)
    assert named(tmp_path / "dns.pcap", bulk=bulk) == {Resolved(NAME, ("10.0.0.7",), "dns")}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("behind", [False, True])
def test_name_resolution_blocks(tmp_path: Path, order: str, behind: bool) -> None:
    """In front of the packets, and behind them, where Wireshark adds them."""
    packet = enhanced(order, 0)
    four = bytes((10, 0, 0, 7)) + b"Kafka-1\0kafka-1.prod\0"
    six = bytes(15) + b"\1" + b"six\0"
    records = b""
    for kind, value in ((1, four), (2, six)):
        records += struct.pack(order + "HH", kind, len(value)) + value + bytes(-len(value) % 4)
    names = block(order, 4, records + bytes(4))
    parts = [packet, names] if behind else [names, packet]
    path = tmp_path / "names.pcapng"
    path.write_bytes(section(order) + interface(order) + b"".join(parts))
    assert named(path) == {
        Resolved("kafka-1", ("10.0.0.7",), "block"),
        Resolved("kafka-1.prod", ("10.0.0.7",), "block"),
        Resolved("six", ("::1",), "block"),
    }


def test_a_hosts_file() -> None:
    text = "# brokers\n10.0.0.7  kafka-1 Kafka-1.prod. # one\n\n::1 six\n"
    assert list(in_hosts_file(text)) == [
        Resolved("kafka-1", ("10.0.0.7",), "hosts"),
        Resolved("kafka-1.prod", ("10.0.0.7",), "hosts"),
        Resolved("six", ("::1",), "hosts"),
    ]
    for wrong in ("kafka-1 10.0.0.7", "10.0.0.7"):
        with pytest.raises(ValueError, match="line 1"):
            list(in_hosts_file(wrong))


def test_the_name_in_a_tls_hello() -> None:
    """As OpenSSL writes it."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=NAME).do_handshake()
    hello = out.read()
    assert server_name(hello) == NAME
    found = {server_name(hello[:size]) for size in range(len(hello))}
    assert found == {"", NAME}
