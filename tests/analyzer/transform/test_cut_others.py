"""What a cut keeps of connections without an answered exchange, so that it tells the same trouble
as the capture."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.topics import TopicNames
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.limits import LIMITS
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.inputs.spool import Spool
from kafkascope.captures.model import Connection, Endpoint, Opened, Resolved
from tests.kit import run as kit
from tests.kit.captures import capture_file
from tests.kit.samples import ROOT, rows_of
from tests.kit.wire import BROKER, beat, heartbeat, metadata, request, response
from tests.matrix import each_nth

TROUBLES = ROOT / "tests" / "analyzer" / "captures"
SHOP = TROUBLES / "shop.pcap.zst"
CAPTURES = ROOT / "tests" / "captures"
SMALL = 20_000
UNREADABLE = ("apiversions3-answered-as-0", "framing-lost", "header-without-client-id")
"""Messages that cannot be decoded are left out, or masked with --anonymize: what is in them is
unknown, and may be a secret."""
ALL = [SHOP]
ALL += [path for path in sorted(TROUBLES.rglob("*.pcap*")) if path.stat().st_size < SMALL]
ALL = [path for path in ALL if not path.name.startswith(UNREADABLE)]
TLS = "10.0.2.24"
HTTP = "10.0.2.25"
UNREACHED = "reports-ui"
"""The client that the shop's wrong address was told, on 10.0.2.27."""


def run(*words: str | Path) -> str:
    return kit.run("cut", *words, codes=(0, 4)).output


def counted(path: Path, statistic: Any) -> tuple[Any, TopicNames]:
    with open_capture([path]) as capture:
        capture.watch, names = statistic.saw, capture.context.names
        for exchange in capture.exchanges():
            statistic.add(ExchangeBatch.of(row_of(exchange, names), exchange))
    return statistic, names


def told(path: Path) -> list[Finding]:
    findings, names = counted(path, Findings())
    return findings.reported(names)


def names(found: list[Finding], *severities: str) -> Counter[str]:
    return Counter(each.name for each in found if not severities or each.severity in severities)


def connections(path: Path) -> list[dict[str, Any]]:
    return counted(path, Connections())[0].rows()


@pytest.mark.parametrize("path", each_nth(ALL, 12), ids=lambda path: path.name)
def test_a_cut_of_everything_tells_the_same_findings(path, tmp_path):
    target = tmp_path / "cut.pcapng"
    whole = told(path)
    run(path, "-o", target)
    # Of most TLS a cut has first bytes alone, which no key log could open.
    kept, expected = names(told(target)), names(whole)
    del kept["tls-opaque"], expected["tls-opaque"]
    assert kept == expected
    run(path, "--anonymize", "-o", target)
    assert names(told(target), "error") == names(whole, "error")


def test_both_connections_of_a_proxied_client_are_kept(tmp_path):
    """The handshake of each is its own: together they would end behind the first request."""
    target = tmp_path / "cut.pcapng"
    proxied = CAPTURES / "streams" / "proxied.pcap.gz"
    run(proxied, "-o", target)
    kept, whole = (
        [
            (row.client_address, row.broker_address, row.api, row.latency_ns, row.forwarded)
            for row in rows_of(path)
        ]
        for path in (target, proxied)
    )
    assert len(kept) == 36
    assert kept == whole
    assert [each.text for each in told(target)] == [each.text for each in told(proxied)]


def test_failed_connects_keep_their_ports_times_and_ends(tmp_path):
    target = tmp_path / "cut.pcapng"
    run(SHOP, "-o", target)
    kept, whole = (
        {
            (line["client_address"], line["broker_address"], line["opened"], line["life"]): (
                line["phase"],
                line["end"],
            )
            for line in connections(path)
            if line["phase"] in ("refused", "no answer")
        }
        for path in (target, SHOP)
    )
    assert kept == whole
    assert Counter(phase for phase, _ in kept.values()) == {"refused": 9, "no answer": 4}


def test_a_filter_keeps_what_failed_for_its_clients(tmp_path):
    target = tmp_path / "cut.pcapng"
    run(SHOP, "-Y", f"client == {UNREACHED}", "-o", target)
    assert names(told(target), "error") == {"address-unanswered": 1}
    run(SHOP, "-Y", "client == orders-svc", "-o", target)
    assert names(told(target), "error") == {}
    assert {line["phase"] for line in connections(target)} <= {"work", "versions"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (f"client.ip == {TLS}", {"tls-to-plain": 1}),
        (f"client.ip == {HTTP} or client.ip == {TLS}", {"tls-to-plain": 1, "http-to-kafka": 1}),
        ("finding == http-to-kafka", {"http-to-kafka": 1}),
        (f"opaque and not client.ip == {TLS}", {"http-to-kafka": 1}),
    ],
)
def test_a_filter_of_addresses_decides_alone(wanted, found, tmp_path):
    target = tmp_path / "cut.pcapng"
    run(SHOP, "-Y", wanted, "-o", target)
    assert names(told(target)) == found


def test_one_connection_is_one_connection(tmp_path):
    target = tmp_path / "cut.pcapng"
    run(SHOP, "-Y", "conn == 139", "-o", target)
    (line,) = connections(target)
    assert (line["broker_address"], line["phase"]) == ("172.17.0.4:29092", "no answer")


def test_a_time_range_keeps_what_happened_in_it(tmp_path):
    target = tmp_path / "cut.pcapng"
    for begin, end, found in (
        ("24.5s", "26s", {"tls-to-plain"}),
        ("26.5s", "28s", {"tls-to-plain", "http-to-kafka"}),
        ("28.3s", "29.2s", {"http-to-kafka"}),
        ("35s", "50s", set()),
    ):
        run(SHOP, "--from", begin, "--to", end, "-o", target)
        assert names(told(target), "error").keys() & {"tls-to-plain", "http-to-kafka"} == found
    for begin, end, failed in (("29.2s", "36s", 3), ("30s", "34s", 2), ("58s", "65s", 0)):
        run(SHOP, "--from", begin, "--to", end, "-o", target)
        phases = Counter(line["phase"] for line in connections(target))
        assert phases["no answer"] == failed


def test_nothing_of_other_protocols_is_written(tmp_path):
    """Neither what HTTP carries, nor names and certificates of an anonymous TLS handshake."""
    path = tmp_path / "http.pcapng"
    secret = b"c2VjcmV0"
    asked = b"GET /?token=" + secret + b" HTTP/1.1\r\nAuthorization: Basic " + secret + b"\r\n\r\n"
    capture_file(path, [("client", asked), ("broker", b"HTTP/1.1 400 Bad\r\n\r\n" + secret)])
    target = tmp_path / "cut.pcapng"
    for options in ([], ["--anonymize"]):
        run(path, *options, "-o", target)
        assert names(told(target)) == {"not-kafka": 1}, "its server speaks HTTP"
        assert secret not in target.read_bytes()
    tls = TROUBLES / "causes" / "tls-expired-java.pcap.gz"
    run(tls, "-o", target)
    assert b"Example CA" in target.read_bytes(), "certificates are shown to everybody"
    run(tls, "--anonymize", "-o", target)
    assert b"Example CA" not in target.read_bytes()
    assert b"\x15\x03\x03\x00\x02\x02\x2d" in target.read_bytes(), "certificate expired"


def test_addresses_of_failed_connects_are_those_of_the_metadata(tmp_path):
    target = tmp_path / "cut.pcapng"
    run(SHOP, "--anonymize", "-o", target)
    assert b"172.17.0.4" not in target.read_bytes()
    (found,) = (each for each in told(target) if each.name == "address-unanswered")
    (address,) = (value for kind, value in found.entities if kind == "broker")
    assert address in {line["broker_address"] for line in connections(target)}


def test_it_says_what_it_wrote_and_what_not(tmp_path):
    target = tmp_path / "cut.pcapng"
    assert "1,764 exchanges and 27 connections without any" in run(SHOP, "-o", target)
    # Of a port that nobody said is Kafka's.
    path = capture_file(tmp_path / "ssh.pcapng", [("client", b"SSH-2.0-x\r\n")], port=22)
    said = run(path, "-o", target)
    assert "1 connection left out: without Kafka, and not to its ports" in said
    assert connections(target) == []


def test_a_fin_that_came_with_the_last_bytes_stays_behind_them(tmp_path):
    cutting = Cutting()
    path = capture_file(
        tmp_path / "a.pcapng", [("client", heartbeat(1)), ("broker", beat(1))], snaplen=None
    )
    with open_capture([path], spool=Spool()) as capture:
        capture.listener = cutting
        for exchange in capture.exchanges():
            cutting.add(exchange)
            last = exchange.response.frame.last_ns
            # Captured before a retransmission of what it ends.
            cutting.ended(exchange.connection.number, 1, "fin", last - 1)
        target = tmp_path / "cut.pcapng"
        with target.open("wb") as file:
            cutting.write(file, capture.source.read)
    assert [row.state for row in rows_of(target)] == ["answered"]


def test_there_are_limits():
    cutting = Cutting(limits=LIMITS._replace(other_connections=3))
    for number in range(5):
        ends = (Endpoint("10.0.0.1", 4000 + number), Endpoint("10.0.0.2", 9092))
        cutting.event(Opened(Connection(number, *ends, first_ns=number, handshake=True)))
    assert cutting.others.beyond == 2
    assert cutting.add_others(lambda _: True, lambda *_: True) == 3


def test_rows_of_other_protocols_can_be_exported_without_events(tmp_path):
    """As the terminal UI does, which has rows alone."""
    cutting = Cutting()
    with open_capture([SHOP], spool=Spool()) as capture:
        for exchange in capture.exchanges():
            if exchange.state == "opaque":
                cutting.add(exchange)
        assert cutting.add_others() == 14
        target = tmp_path / "cut.pcapng"
        with target.open("wb") as file:
            cutting.write(file, capture.source.read)
    assert Counter(row.reason.partition(":")[0] for row in rows_of(target)) == {
        "TLS": 12,
        "HTTP, not Kafka": 2,
    }


@pytest.mark.parametrize("anonymous", [False, True], ids=["as it is", "anonymized"])
def test_what_host_names_stand_for_is_kept(tmp_path, anonymous):
    """A client that reached a broker was told of as one that never connected there."""
    asked = [{"topic_id": bytes(16), "name": "orders"}]
    answer = metadata((1, "Kafka-1.Prod.", BROKER.port), (2, "kafka-2.prod", BROKER.port))
    frames = [
        frame
        for number in range(4)
        for frame in (
            ("client", request("Metadata", 12, number, topics=asked)),
            ("broker", response("Metadata", 12, number, **answer)),
        )
    ]
    path = capture_file(tmp_path / "a.pcapng", frames)
    names = [
        Resolved("kafka-1.prod", (BROKER.host, "10.9.9.9"), "dns"),
        Resolved("kafka-2.prod", ("2001:db8::2",), "dns"),
        Resolved("bank.example", ("10.9.9.8",), "dns"),
        Resolved("not-told.example", (BROKER.host,), "dns"),
    ]
    with path.open("ab") as file:
        PcapngWriter(file).names(names)
    target = tmp_path / "cut.pcapng"
    run(path, "-o", target, *["--anonymize"] * anonymous)

    def reached(path: Path) -> list[tuple[object, object]]:
        lines = kit.objects("cluster", path, "--only", "nodes", "--json")
        return [(line["node"], line["contacted"]) for line in lines]

    assert reached(target) == reached(path) == [(1, "yes"), (2, "no")]
    written = target.read_bytes()
    assert not any(each in written for each in (b"bank", bytes((10, 9, 9)), b"\x20\x01\x0d\xb8"))
    assert (b"kafka-1" in written.lower()) == (b"not-told" in written) == (not anonymous)
