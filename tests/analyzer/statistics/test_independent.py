"""Tables of statistics against counts that share no code with them.

Requests, bytes, latencies and connections: a naive reader of pcap files (loopback captures, whole
packets) that knows four bytes of length and the header of a request. Producers, groups and brokers:
loops over decoded bodies. Bytes of connections: tshark.
"""

import gzip
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

from kafkascope.analyzer.statistics.accumulators import STATISTICS
from kafkascope.dissectors.registry import APIS
from tests.kit.counting import counted as statistic
from tests.kit.counting import traffic
from tests.kit.samples import SAMPLES

NAMES = ("cluster.pcap.gz", "kafka-python.pcap", "librdkafka.pcap", "transactions.pcap")


class Asked(NamedTuple):
    """A request as its header tells."""

    connection: int
    key: int
    version: int
    client: str
    size: int
    begin_ns: int
    end_ns: int | None
    answer: int


# --- the naive reader ---------------------------------------------------------------------------


def packets(data: bytes) -> Iterator[tuple[int, tuple[bytes, int], tuple[bytes, int], int, bytes]]:
    """(time, source, destination, sequence number, payload) of IPv4 in Ethernet."""
    magic = struct.unpack_from("<I", data)[0]
    unit = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}[magic]
    at = 24
    while at < len(data):
        seconds, part, size, length = struct.unpack_from("<4I", data, at)
        assert size == length
        frame = data[at + 16 : at + 16 + size]
        at += 16 + size
        ip = 14
        head = (frame[ip] & 15) * 4
        total = struct.unpack_from(">H", frame, ip + 2)[0]
        tcp = ip + head
        source, target, sequence = struct.unpack_from(">HHI", frame, tcp)
        if frame[tcp + 13] & 2:  # SYN
            sequence += 1
        payload = frame[tcp + (frame[tcp + 12] >> 4) * 4 : ip + total]
        ends = (frame[ip + 12 : ip + 16], source), (frame[ip + 16 : ip + 20], target)
        yield seconds * 1_000_000_000 + part * unit, *ends, sequence, payload


def streams(data: bytes) -> list[list[dict[int, tuple[bytes, int]]]]:
    """Connection -> direction -> sequence number -> (payload, time)."""
    found: dict[Any, int] = {}
    out: list[list[dict[int, tuple[bytes, int]]]] = []
    for time_ns, source, target, sequence, payload in packets(data):
        pair = tuple(sorted((source, target)))
        if pair not in found:
            found[pair] = len(out)
            out.append([{}, {}])
        direction = int(source[1] in BROKER_PORTS)
        if payload:
            out[found[pair]][direction].setdefault(sequence, (payload, time_ns))
    return out


BROKER_PORTS = {port + 100 * node for port in range(9092, 9096) for node in range(3)}


def frames(pieces: dict[int, tuple[bytes, int]]) -> Iterator[tuple[bytes, int, int]]:
    """(bytes, time of the first byte, time of the last one)"""
    stream, times = bytearray(), []
    for sequence in sorted(pieces):
        payload, time_ns = pieces[sequence]
        times.append((len(stream), time_ns))
        stream += payload
    at = 0

    def time_of(place: int) -> int:
        return max(time_ns for begin, time_ns in times if begin <= place)

    while at + 4 <= len(stream):
        size = struct.unpack_from(">i", stream, at)[0]
        whole = bytes(stream[at : at + 4 + size])
        if len(whole) < 4 + size:
            return
        yield whole, time_of(at), time_of(at + 3 + size)
        at += 4 + size


@cache
def asked(name: str) -> list[Asked]:
    data = (SAMPLES / name).read_bytes()
    out = []
    data = gzip.decompress(data) if name[-2:] == "gz" else data
    for number, (client, broker) in enumerate(streams(data)):
        answers = {frame[4:8]: (len(frame), end) for frame, _, end in frames(broker)}
        for frame, begin, _ in frames(client):
            key, version, length = struct.unpack_from(">hh4xh", frame, 4)
            client_id = frame[14 : 14 + max(0, length)].decode()
            if (key, version) == (7, 0):
                client_id = ""
            size, end = answers.get(frame[8:12], (0, None))
            out.append(Asked(number, key, version, client_id, len(frame), begin, end, size))
    return out


# --- what is to be checked ----------------------------------------------------------------------


@cache
def counted(name: str) -> dict[str, Any]:
    pairs, _ = traffic(name)
    return {key: statistic(kind(), pairs) for key, kind in STATISTICS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_requests_and_bytes_by_api_and_version(name: str) -> None:
    expected: dict[tuple[str, int], list[int]] = {}
    for each in asked(name):
        sums = expected.setdefault((APIS[each.key].name, each.version), [0, 0, 0])
        sums[0] += 1
        sums[1] += each.size
        sums[2] += each.answer
    apis = counted(name)["apis"]
    names = ("requests", "request_bytes", "response_bytes")
    assert {
        (line["api"], line["api_version"]): [line[each] for each in names]
        for line in apis.rows(by=("api", "version"))
    } == expected


@pytest.mark.parametrize("name", NAMES)
def test_latencies(name: str) -> None:
    longest: dict[str, int] = {}
    answered: Counter[str] = Counter()
    for each in asked(name):
        if each.end_ns is not None:
            api = APIS[each.key].name
            answered[api] += 1
            longest[api] = max(longest.get(api, 0), each.end_ns - each.begin_ns)
    lines = {line["api"]: line for line in counted(name)["latency"].rows(by=("api",))}
    assert {api: line["requests"] for api, line in lines.items()} == dict(answered)
    assert {api: line["max"] for api, line in lines.items()} == longest


@pytest.mark.parametrize("name", NAMES)
def test_clients(name: str) -> None:
    by_client: Counter[str] = Counter()
    connections: dict[str, set[int]] = {}
    for each in asked(name):
        by_client[each.client] += 1
        connections.setdefault(each.client, set()).add(each.connection)
    lines = counted(name)["clients"].rows()
    found: Counter[str] = Counter()
    for line in lines:
        found[line["client_id"]] += line["requests"]
    assert found == by_client
    assert {line["client_id"]: line["connections"] for line in lines} == {
        client: len(numbers) for client, numbers in connections.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_producers(name: str) -> None:
    statistics = counted(name)
    batches: Counter[int] = Counter()
    records: Counter[int] = Counter()
    for _, exchange in traffic(name)[0]:
        if exchange.api_key != 0 or exchange.request is None or exchange.request.body is None:
            continue
        for topic in exchange.request.body["topic_data"]:
            for part in topic["partition_data"]:
                data = part["records"] or b""
                while data and data[16] == 2:
                    size, producer = struct.unpack_from(">8xi31xq", data)
                    if producer >= 0:
                        batches[producer] += 1
                        records[producer] += struct.unpack_from(">i", data, 57)[0]
                    data = data[12 + size :]
    lines = [line for line in statistics["producers"].rows() if line["batches"]]
    assert {line["producer_id"]: line["batches"] for line in lines} == dict(batches)
    assert {line["producer_id"]: line["records"] for line in lines} == dict(records)


@pytest.mark.parametrize("name", NAMES)
def test_groups_and_brokers(name: str) -> None:
    statistics = counted(name)
    commits: Counter[str] = Counter()
    generations: dict[str, set[int]] = {}
    nodes: set[tuple[int, str]] = set()
    for _, exchange in traffic(name)[0]:
        request = exchange.request.body if exchange.request is not None else None
        answer = exchange.response.body if exchange.response is not None else None
        if request is None or answer is None:
            continue
        if exchange.api in ("OffsetCommit", "TxnOffsetCommit"):
            commits[request["group_id"]] += 1
        if exchange.api == "JoinGroup" and answer["error_code"] == 0:
            generations.setdefault(request["group_id"], set()).add(answer["generation_id"])
        if exchange.api == "Metadata":
            for each in answer["brokers"]:
                nodes.add((each["node_id"], f"{each['host']}:{each['port']}"))
    groups = statistics["groups"]
    assert {line["group"]: line["commits"] for line in groups.rows() if line["commits"]} == commits
    assert {
        group: {each["generation"] for each in groups.rebalances(group)} for group in generations
    } == generations
    told = {(line["node"], line["address"]) for line in statistics["cluster"].rows()}
    assert nodes <= told


@pytest.mark.tshark
@pytest.mark.parametrize("name", NAMES)
def test_bytes_of_connections_are_those_of_tshark(name: str) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark")
    command = ["tshark", "-r", str(SAMPLES / name), "-Y", "tcp.len>0", "-Tfields"]
    for field in ("tcp.stream", "tcp.srcport", "tcp.len"):
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    expected: dict[int, list[int]] = {}
    for line in done.stdout.splitlines():
        stream, port, size = map(int, line.split("\t"))
        sums = expected.setdefault(stream, [0, 0])
        sums[port in BROKER_PORTS] += size
    lines = counted(name)["connections"].rows()
    assert {
        line["connection"]: [line["client_bytes"], line["broker_bytes"]]
        for line in lines
        if line["requests"]
    } == expected
