"""Kafka in sessions of scapy: the same messages as those of the capture's exchanges."""

from __future__ import annotations

import gzip
import itertools
import os
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from scapy.config import conf
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw
from scapy.sendrecv import AsyncSniffer, sniff
from scapy.sessions import TCPSession
from scapy.utils import rdpcap, wrpcap

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.bridges.scapy import tcp
from kafkascope.scapy import Kafka, KafkaMessage
from tests.kit.samples import ROOT
from tests.kit.wire import beat, heartbeat, produce
from tests.matrix import each_nth

SAMPLES = sorted((ROOT / "captures" / "samples").glob("*.pcap*"))
SAMPLES = [path for path in SAMPLES if path.stem != "zookeeper"]
Found = Counter[tuple[str, int, int, bytes]]


def messages(packets: Sequence[Any]) -> Iterator[Any]:
    """All layers of Kafka, in order."""
    for packet in packets:
        layer = packet.getlayer(Kafka)
        while isinstance(layer, Kafka):
            yield layer
            layer = layer.payload


def found(packets: Sequence[Any]) -> tuple[Found, Counter[str]]:
    """Messages by kind, API, version and bytes; reasons of what is none."""
    whole: Found = Counter()
    reasons: Counter[str] = Counter()
    rebuilt: Counter[tuple[str, int, int]] = Counter()
    for layer in messages(packets):
        if isinstance(layer, KafkaMessage):
            surplus = layer.payload.load if isinstance(layer.payload, Raw) else b""
            which = layer.kind, layer.api, layer.version
            rebuilt[which] += 1
            if rebuilt[which] <= 5:
                layer.clear_cache()  # from the fields, not from the bytes that were read
            whole[layer.kind, layer.api, layer.version, layer.self_build()[4:] + surplus] += 1
        else:
            reasons[layer.reason] += 1
    return whole, reasons


def expected(path: Path) -> tuple[Found, int]:
    """The same of the exchanges, and how many raw tokens of SASL there are."""
    whole: Found = Counter()
    tokens = 0
    with open_capture([path]) as capture:
        for each in capture.exchanges():
            for kind, side in (("request", each.request), ("response", each.response)):
                if side is None:
                    continue
                if side.decoded is None:
                    tokens += each.api == "SaslToken"
                    continue
                version = side.decoded.version
                whole[kind, each.api_key, version, side.frame.payload] += 1
    return whole, tokens


def unpacked(path: Path, folder: Path) -> str:
    if path.suffix == ".pcap":
        return str(path)
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    else:
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    target = folder / "x.pcap"
    target.write_bytes(data)
    return str(target)


@pytest.mark.parametrize("path", each_nth(SAMPLES, 4), ids=lambda path: path.name)
def test_sessions_read_the_messages_of_samples(path: Path, tmp_path: Path) -> None:
    packets = sniff(offline=unpacked(path, tmp_path), session=TCPSession)
    whole, reasons = found(packets)
    wanted, tokens = expected(path)
    assert whole == wanted
    assert sum(wanted.values()) > 40
    assert reasons == ({"a SASL token": tokens} if tokens else {})


class Wire:
    """Packets of one connection, as they are captured."""

    def __init__(self, port: int = 9092, client: int = 50000, six: bool = False) -> None:
        self.ends = ((client, port), (port, client))
        self.next = [1000, 2_000_000_000]
        self.hosts = ("::1", "::2") if six else ("10.0.0.1", "10.0.0.2")
        self.ip = IPv6 if six else IP
        self.packets: list[Any] = []

    def send(self, side: int, data: bytes = b"", flags: str = "PA") -> Any:
        ip = self.ip(src=self.hosts[side], dst=self.hosts[1 - side])
        sport, dport = self.ends[side]
        header = TCP(
            sport=sport, dport=dport, seq=self.next[side], ack=self.next[1 - side], flags=flags
        )
        packet = ip / header / data if data else ip / header
        packet.time = 1_700_000_000 + len(self.packets) / 1000
        self.packets.append(packet)
        self.next[side] = (self.next[side] + len(data) + ("S" in flags or "F" in flags)) % 2**32
        return packet

    def handshake(self) -> Wire:
        self.send(0, flags="S")
        self.send(1, flags="SA")
        self.send(0, flags="A")
        return self


def read(packets: Sequence[Any], tmp_path: Path) -> Any:
    """What a session makes of packets, which go through a file."""
    path = str(tmp_path / "made.pcap")
    wrpcap(path, list(packets))
    return sniff(offline=path, session=TCPSession)


def said(packets: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [
        (layer.kind, layer.correlation_id) if isinstance(layer, KafkaMessage) else (layer.reason,)
        for layer in messages(packets)
    ]


EXCHANGE = [("request", 1), ("response", 1)]


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize("port", [9092, 7777])
def test_requests_and_responses_on_any_port(port: int, six: bool, tmp_path: Path) -> None:
    wire = Wire(port, six=six).handshake()
    wire.send(0, heartbeat(1))
    wire.send(1, flags="A")
    wire.send(1, beat(1, error_code=27))
    packets = read(wire.packets, tmp_path)
    assert said(packets) == EXCHANGE
    assert packets[-1][Kafka].error_code == 27
    assert packets[-1][Kafka].version == 3
    assert len(packets) == len(wire.packets)


def test_messages_in_pieces_and_together(tmp_path: Path) -> None:
    wire = Wire(7778).handshake()
    data = heartbeat(1) + heartbeat(2) + produce(3)
    for at in range(0, len(data), 7):
        wire.send(0, data[at : at + 7])
    wire.send(1, beat(1) + beat(2))
    packets = read(wire.packets, tmp_path)
    assert said(packets) == [
        *[("request", 1), ("request", 2), ("request", 3), ("response", 1), ("response", 2)]
    ]
    whole = b"".join(bytes(each[Raw]) for each in packets if Raw in each and Kafka not in each)
    assert data.startswith(whole[:7])
    last = packets[-1]
    assert last.haslayer(Kafka)
    assert last[Kafka].payload.correlation_id == 2
    assert bytes(last[TCP].payload) == beat(1) + beat(2)


def test_segments_that_come_late_twice_or_never(tmp_path: Path) -> None:
    wire = Wire().handshake()
    first = wire.send(0, heartbeat(1))
    wire.send(1, beat(1))
    parts = [wire.send(0, part) for part in (heartbeat(2)[:20], heartbeat(2)[20:])]
    wire.send(1, beat(2))
    order = wire.packets[:]
    order[-3], order[-2] = order[-2], order[-3]
    order.insert(-1, first)  # sent again
    order.insert(-1, parts[0])
    assert said(read(order, tmp_path)) == [*EXCHANGE, ("request", 2), ("response", 2)]
    for number in range(3, 40):
        # What is lost is given up when it was acknowledged, and packets had time to come late.
        wire.send(0, heartbeat(number))
        wire.send(1, beat(number))
    lost = [each for each in wire.packets if each is not first]
    answers = [each for each in said(read(lost, tmp_path)) if each[0] == "response"]
    assert answers == [("response", number) for number in range(2, 40)]


@pytest.mark.parametrize("start", [60, 131, 200])
def test_a_capture_that_begins_in_the_middle(start: int, tmp_path: Path) -> None:
    sample = next(path for path in SAMPLES if path.name == "rebalance.pcap")
    path = tmp_path / "late.pcap"
    wrpcap(str(path), rdpcap(str(sample))[start:])
    whole, reasons = found(sniff(offline=str(path), session=TCPSession))
    assert whole == expected(path)[0]
    assert set(reasons) <= {"its request was not seen"}


def test_ports_that_are_used_again(tmp_path: Path) -> None:
    first, second = Wire().handshake(), Wire()
    first.send(0, heartbeat(1))
    second.next = [3_000_000_000, 3_500_000_000]
    second.handshake()
    second.send(0, heartbeat(1))
    second.send(1, beat(1))
    packets = first.packets + second.packets
    assert said(read(packets, tmp_path)) == [("request", 1), *EXCHANGE]


def test_connections_with_the_same_key_in_scapy_stay_apart(tmp_path: Path) -> None:
    # 9092 ^ 50000 == 9093 ^ 50001, and all addresses are the same.
    one, other = Wire(9092, 50000), Wire(9093, 50001)
    one.send(0, heartbeat(1))
    other.send(0, produce(1, version=3))
    one.send(1, beat(1))
    order = [one.packets[0], other.packets[0], one.packets[1]]
    packets = read(order, tmp_path)
    assert said(packets) == [("request", 1), ("request", 1), ("response", 1)]
    assert packets[-1][Kafka].api == 12


def test_what_is_not_kafka_is_left_alone(tmp_path: Path) -> None:
    wire = Wire(7779).handshake()
    wire.send(0, b"SSH-2.0-OpenSSH\r\n")
    wire.send(1, b"SSH-2.0-OpenSSH_9\r\n")
    tls = Wire(9092, 50002).handshake()
    tls.send(0, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300))
    packets = read(wire.packets + tls.packets, tmp_path)
    assert said(packets) == []
    assert [bytes(each[TCP].payload) for each in packets if Raw in each] == [
        bytes(each[TCP].payload) for each in wire.packets + tls.packets if Raw in each
    ]


def test_many_messages_in_one_packet(tmp_path: Path) -> None:
    wire = Wire().handshake()
    for number in range(400):
        wire.send(0, heartbeat(number))
    wire.send(1, b"".join(beat(number) for number in range(400)))
    last = read(wire.packets, tmp_path)[-1]
    layers = list(messages([last]))
    assert len(layers) == tcp.MAX_STACKED
    assert layers[-1].reason == "251 more messages"
    assert bytes(last[TCP].payload) == b"".join(beat(number) for number in range(400))
    last.show(dump=True)


def test_packets_without_a_session_are_read_alone() -> None:
    wire = Wire()
    requests = IP(bytes(wire.send(0, heartbeat(1) + heartbeat(2))))
    assert requests[Kafka].correlation_id == 1
    response = IP(bytes(wire.send(1, beat(1))))
    assert "TCPSession" in response[Kafka].reason
    assert bytes(response[Kafka]) == beat(1)
    assert IP(bytes(Wire(7780).send(0, heartbeat(3))))[Kafka].correlation_id == 3
    assert Kafka not in IP(bytes(Wire(7781).send(0, b"hello world, this is no message")))


def test_hostile_segments_never_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "debug_dissector", True)  # or scapy would hide what is raised
    rng = random.Random(7)
    wires = [Wire(port, 40000 + number) for number, port in enumerate((9092, 9092, 7790, 9093))]
    good = [heartbeat(1), beat(1), produce(2), heartbeat(3)[:11], rng.randbytes(40)]
    for _ in range(600):
        wire = rng.choice(wires)
        data = bytearray(b"".join(rng.choices(good, k=rng.randint(1, 3))))
        for _ in range(rng.randint(0, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.1:
            wire.next[0] += rng.choice([-500, 300, 2**31])
            wire.next[0] %= 2**32
        wire.send(rng.randint(0, 1), bytes(data))
    packets = read(list(itertools.chain(*(wire.packets for wire in wires))), tmp_path)
    assert len(packets) == 600
    for packet in packets:
        packet.show(dump=True)
        packet.summary()


def test_connections_that_were_silent_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "MAX_STREAMS", 10)
    session = TCPSession()
    for number in range(40):
        wire = Wire(client=10000 + number)
        wire.send(0, heartbeat(1))
        packet = IP(bytes(wire.packets[0]), stop_dissection_after=TCP)
        assert Kafka in session.process(packet)
    kept = sum(len(each.get(tcp.KEY, ())) for each in session.tcp_sessions.values())
    assert kept == 10


@pytest.mark.skipif(os.geteuid() != 0, reason="sniffing needs the right to open raw sockets")
def test_live_traffic_on_loopback() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            for number in (1, 2):
                connection.recv(1000)
                connection.sendall(beat(number))
            connection.recv(1000)

    thread = threading.Thread(target=serve)
    thread.start()
    ready = threading.Event()
    seen: list[Any] = []
    sniffer = AsyncSniffer(
        iface="lo",
        filter=None,
        session=TCPSession,
        lfilter=lambda packet: TCP in packet and port in (packet.sport, packet.dport),
        prn=seen.append,
        store=False,
        started_callback=ready.set,
    )
    sniffer.start()
    try:
        assert ready.wait(20)
        with socket.create_connection(("127.0.0.1", port)) as client:
            for number in (1, 2):
                client.sendall(heartbeat(number))
                client.recv(1000)
        thread.join(20)
        for _ in range(100):
            # A packet on loopback is seen on its way out and in.
            if {*said(seen)} >= {*EXCHANGE, ("request", 2), ("response", 2)}:
                break
            threading.Event().wait(0.1)
    finally:
        sniffer.stop()
        server.close()
    assert said(seen) == [*EXCHANGE, ("request", 2), ("response", 2)]
