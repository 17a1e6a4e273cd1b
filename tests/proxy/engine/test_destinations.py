"""Where a hostile broker's responses can make the proxy connect to, and how many listeners open."""

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.dissectors.registry import decode_response
from kafkascope.proxy.cli import proxy as command
from kafkascope.proxy.engine.destinations import Destinations, kind_of, parse_network, reached
from kafkascope.proxy.engine.directory import GONE_NS, Address, reason, unanswered
from kafkascope.proxy.limits import Limits
from tests.kit import proxy as kit
from tests.kit.proxy import METADATA, Bench, beat, endpoint, pulse, request
from tests.kit.wire import SECOND

DESCRIBE_CLUSTER = 60

KINDS = {
    address: kind
    for kind, addresses in {
        "loopback": (
            "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: "
            "::127.0.0.1"
        ),
        "private": (
            "10.0.0.1 172.31.0.1 192.168.1.1 fc00::1 fd12::1 fec0::1 ::ffff:10.0.0.1 "
            "64:ff9b::a00:1 198.18.0.1"
        ),
        "shared": "100.64.0.1 100.127.255.255",
        "link-local": "169.254.1.1 fe80::1 fe80::1%eth0 ::ffff:169.254.1.1",
        "metadata service": (
            "169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 "
            "fd00:ec2::254 100.100.100.200 168.63.129.16 169.254.170.2 fd00:ec2::23 "
            "fe80::a9fe:a9fe"
        ),
        "multicast": "224.0.0.1 239.255.255.250 ff02::1",
        "unspecified": "0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0",
        "reserved": "255.255.255.255 240.0.0.1",
        "public": "8.8.8.8 172.32.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808",
    }.items()
    for address in addresses.split()
}


@pytest.mark.parametrize("address", KINDS)
def test_an_address_is_of_the_kind_of_where_it_leads(address: str) -> None:
    kinds = {kind_of(each) for each in reached(ip_address(address.partition("%")[0]))}
    assert kinds == {KINDS[address]}
    refusal = Destinations().refusal(address)
    assert (refusal is None) == (KINDS[address] == "public")


def test_teredo_is_judged_by_both_of_its_addresses() -> None:
    # Of the server 65.54.227.120 and, inverted, the client 127.0.0.1.
    assert Destinations().refusal("2001:0:4136:e378:8000:63bf:80ff:fffe") is not None


@pytest.mark.parametrize("upstream", ["127.0.0.1", "10.0.0.1", "169.254.1.1", "8.8.8.8", "::1"])
def test_the_kind_of_the_upstream_is_fine_and_no_other(upstream: str) -> None:
    destinations = Destinations()
    destinations.trust(upstream)
    for address, kind in KINDS.items():
        fine = kind in ("public", KINDS[upstream])
        assert (destinations.refusal(address) is None) == fine, address


def test_a_metadata_service_is_never_implied_but_may_be_allowed() -> None:
    destinations = Destinations([parse_network("169.254.0.0/16")])
    destinations.trust("100.100.100.200")
    assert destinations.refusal("100.100.100.200") is not None
    assert destinations.refusal("169.254.169.254") is None
    assert destinations.refusal("::ffff:169.254.169.254") is None
    assert destinations.refusal("10.0.0.1") is not None


def test_networks_of_the_command_line_are_checked() -> None:
    for wrong in ("10.0.0.0/33", "broker", "", "10.0.0.0-10.0.0.9"):
        done = CliRunner().invoke(command, ["--upstream", "b", "--allow-broker", wrong])
        assert done.exit_code == 2
        assert "not a network" in done.output


# --- with sockets -------------------------------------------------------------------------------


async def told_of(proxy: kit.Proxied) -> list[str]:
    """The addresses that a client gets."""
    body = decode_response((await proxy.ask(request(METADATA, 12)))[4:], METADATA, 12).body
    return [f"{each['host']}:{each['port']}" for each in body["brokers"]]


async def reply(address: str) -> bytes:
    """What is answered there."""
    client = await kit.Link.to(address)
    client.send(beat())
    try:
        return await asyncio.wait_for(client.reader.read(1 << 16), kit.PATIENCE_S)
    except ConnectionResetError:
        return b""
    finally:
        client.writer.close()


def visited(host: str, **options: Any) -> tuple[bytes, int, list[str]]:
    """What a client gets from a node that Metadata puts at `host`, how often somebody there was
    visited, and what was said."""
    canary = kit.Noted(kit.echo)

    async def main() -> tuple[bytes, list[str]]:
        async with kit.broker(canary) as there:
            upstream = kit.cluster(endpoint(7, host, there.port))
            async with kit.proxied(upstream, **options) as proxy:
                (node,) = await told_of(proxy)
                assert node.startswith("127.0.0.1:")
                got = await reply(node)
                assert proxy.hub.metrics.get("upstreams_refused_total") == (not got)
                return got, proxy.said()

    got, said = asyncio.run(main())
    return got, len(canary.asked), said


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("0.0.0.0", "unspecified"),
        ("0", "unspecified"),
        ("169.254.169.254", "metadata service"),
        ("169.254.1.1", "link-local"),
        ("10.255.255.1", "private"),
        ("224.0.0.1", "multicast"),
        ("::ffff:10.255.255.1", "private"),
    ],
)
def test_a_broker_is_not_looked_for_where_the_upstream_is_not(host: str, kind: str) -> None:
    got, visits, said = visited(host)
    assert (got, visits) == (b"", 0)
    (sentence,) = said
    assert "node 7 is said to be at" in sentence
    assert kind in sentence
    assert "--allow-broker" in sentence


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("127.0.0.1", {}),
        ("localhost", {}),
        ("::ffff:127.0.0.1", {}),
        ("0.0.0.0", {"allow_brokers": ["10.0.0.0/8", "0.0.0.0"]}),
    ],
)
def test_of_the_upstreams_kind_or_allowed_it_is(host: str, options: dict[str, Any]) -> None:
    got, visits, said = visited(host, **options)
    assert got == pulse()
    assert (visits, said) == (1, [])


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Names whose address is another each time that they are looked up."""
    names: dict[str, list[str]] = {}
    plain = socket.getaddrinfo

    def looked_up(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        if host in names:
            host = names[host].pop(0)
        return plain(host, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    return names


def test_a_name_is_judged_by_where_it_leads(resolver: dict[str, list[str]]) -> None:
    resolver["kafka.evil.example"] = ["0.0.0.0"]
    got, visits, said = visited("kafka.evil.example")
    assert (got, visits) == (b"", 0)
    assert "kafka.evil.example" in said[0]


def test_a_name_is_looked_up_once(resolver: dict[str, list[str]]) -> None:
    resolver["kafka.evil.example"] = ["127.0.0.1", "0.0.0.0"]
    got, visits, _ = visited("kafka.evil.example")
    assert (got, visits) == (pulse(), 1)
    assert resolver["kafka.evil.example"] == ["0.0.0.0"]


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "a\0b", "\x1b[2Jb", " ", "fe80::1%nowhere"])
async def test_a_name_that_cannot_be_costs_a_sentence(host: str) -> None:
    async with kit.proxied(kit.cluster(endpoint(7, host, 70_000))) as proxy:
        (node,) = await told_of(proxy)
        assert await reply(node) == b""
        assert proxy.hub.metrics.get("errors_total") == 0
        (sentence,) = proxy.said()
        assert sentence.isprintable()


# --- listeners ----------------------------------------------------------------------------------


def tell(bench: Bench, ids: list[int], key: int = METADATA) -> list[int]:
    """The ports that a client gets for these brokers."""
    bench.actions.clear()
    version = 12 if key == METADATA else 1
    name = "node_id" if key == METADATA else "broker_id"
    brokers = [{"host": "b", "port": 9092, "rack": None, name: each} for each in ids]
    body: dict[str, Any] = {"brokers": brokers}
    if key == DESCRIBE_CLUSTER:
        body["endpoint_type"] = 1
    sent = bench.exchange(request(key, version), kit.response(key, version, body))
    assert sent, bench.hub.notices
    return [each["port"] for each in bench.answer(key, version)["brokers"]]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(limits=Limits(nodes=20))
    yield made
    made.nodes.close()


@pytest.mark.parametrize("key", [METADATA, DESCRIBE_CLUSTER])
def test_invented_nodes_do_not_use_up_the_table(bench: Bench, key: int) -> None:
    for round_ in range(10):
        ids = list(range(100 * round_, 100 * round_ + 20))
        assert len(set(tell(bench, ids, key))) == 20
        assert set(bench.nodes.listeners) == set(bench.nodes.known) == set(ids)
    closed = [each for each in bench.listening.opened if each.socket.fileno() < 0]
    assert len(closed) == 180


def test_too_many_at_once_are_refused(bench: Bench) -> None:
    with pytest.raises(AssertionError, match="more than 20 brokers"):
        tell(bench, list(range(21)))
    assert bench.context.over
    assert len(bench.nodes.listeners) == len(bench.nodes.known) == 20


def test_a_node_that_is_gone_keeps_its_listener_for_a_while(bench: Bench) -> None:
    tell(bench, [1, 2, 3])
    port = bench.nodes.listeners[3].address.port
    tell(bench, [1, 2])
    bench.now_ns += GONE_NS - SECOND
    tell(bench, [1, 2])  # the same response, from memory
    assert set(bench.nodes.listeners) == {1, 2, 3}
    bench.now_ns += SECOND
    tell(bench, [1, 2])
    assert set(bench.nodes.listeners) == {1, 2}
    assert Address("b", 9092) in bench.nodes.candidates(None)
    assert bench.nodes.candidates(3) == []
    assert tell(bench, [1, 2, 3])[2] == port  # it has returned


def test_a_port_that_is_taken_meanwhile_is_another(bench: Bench) -> None:
    tell(bench, [1, 2])
    port = bench.nodes.listeners[2].address.port
    tell(bench, [1])
    bench.now_ns += GONE_NS
    tell(bench, [1])
    with socket.create_server(("127.0.0.1", port)):
        assert tell(bench, [1, 2])[1] != port


def test_views_that_differ_take_nothing_back(bench: Bench) -> None:
    for _ in range(20):
        tell(bench, [1, 2, 3])
        bench.now_ns += GONE_NS // 2
        tell(bench, [1, 2])
        bench.now_ns += GONE_NS // 2 - SECOND
    assert set(bench.nodes.listeners) == {1, 2, 3}
    assert len(bench.listening.opened) == 3


def test_an_empty_list_and_other_responses_say_nothing_of_the_others(bench: Bench) -> None:
    tell(bench, [1, 2])
    tell(bench, [])
    bench.now_ns += GONE_NS
    tell(bench, [])
    coordinator = {"node_id": 1, "host": "b", "port": 9092, "error_code": 0, "error_message": None}
    for _ in range(2):
        bench.exchange(request(10, 3), kit.response(10, 3, coordinator))
        bench.now_ns += GONE_NS
    assert set(bench.nodes.listeners) == {1, 2}


def test_a_listener_with_connections_stays(bench: Bench) -> None:
    tell(bench, [1, 2])
    bench.nodes.listeners[2].connections = 1
    tell(bench, [1])
    bench.now_ns += GONE_NS
    tell(bench, [1])
    assert set(bench.nodes.listeners) == {1, 2}
    bench.nodes.listeners[2].connections = 0
    tell(bench, [1])
    assert set(bench.nodes.listeners) == {1}


async def test_a_listener_that_was_taken_back_accepts_nobody() -> None:
    brokers = [endpoint(each, "127.0.0.1", 1) for each in (1, 2)]

    async with kit.proxied(lambda *asked: kit.cluster(*brokers)(*asked)) as proxy:
        _, second = await told_of(proxy)
        assert await reply(second) == b""  # it is served: there is no broker behind it
        await asyncio.sleep(0.01)
        gone = brokers.pop()
        await told_of(proxy)
        assert proxy.nodes._take_back(2)
        with pytest.raises(ConnectionRefusedError):
            await kit.Link.to(second)
        brokers.append(gone)
        assert (await told_of(proxy))[1] == second


# --- upstreams


def test_refused_and_unresolved_upstreams_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection

    def connected(address: tuple[str, int], timeout: float) -> socket.socket:
        if address[0] == "nosuch.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return connect(address, timeout)

    monkeypatch.setattr(socket, "create_connection", connected)
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server, kit.nobody() as away:
        there = Address(*server.getsockname())
        unanswered([there, away, Address("nosuch.example", 9092)], said.append)
    assert said == [
        f"no broker answers at {away} (connection refused)",
        "no broker answers at nosuch.example:9092 (name or service not known)",
    ]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "connection refused"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed"), "connection refused"),
        (TimeoutError(), "timed out"),
        (OSError(113, "x"), "no route to host"),
        (OverflowError("port must be 0-65535"), "port must be 0-65535"),
    ],
)
def test_reasons_are_words_of_the_system(error: Exception, words: str) -> None:
    assert reason(error) == words
