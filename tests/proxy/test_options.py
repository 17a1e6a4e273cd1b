"""Options of the proxy on real sockets: what clients are told as addresses and versions."""

import socket
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.dissectors.registry import APIS, decode_response
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.hosts import is_wildcard
from kafkascope.proxy.serve.cli import serve
from tests.interop.brokers import free_ports
from tests.kit import proxy as kit
from tests.kit.proxy import METADATA, request
from tests.kit.wire import framed

NEWEST = APIS[METADATA].versions.high


def answer(key: int, version: int, asked: bytes) -> bytes | None:
    if key == kit.API_VERSIONS:
        keys = [{"api_key": METADATA, "min_version": 0, "max_version": NEWEST + 7}]
        return kit.response(key, 3, {"api_keys": keys})
    if version > NEWEST:
        return framed(b"\0\0\0\1\0" + b"nobody knows this 10.9.8.7")
    return kit.cluster(kit.endpoint(3), kit.endpoint(5, "10.9.8.6"))(key, version, asked)


def asked(data: bytes, **options: Any) -> tuple[bytes, KafkaProxy]:
    async def main() -> tuple[bytes, KafkaProxy]:
        async with kit.proxied(answer, **options) as proxy:
            return (await proxy.ask(data))[4:], proxy

    return kit.run(main())


def brokers(told: bytes) -> dict[int, tuple[str, int]]:
    found = decode_response(told, METADATA, 12).body["brokers"]
    return {each["node_id"]: (each["host"], each["port"]) for each in found}


@pytest.mark.parametrize("advertise", ["proxy.example", None])
def test_clients_are_told_the_name_that_was_asked_for_or_where_they_came_to(
    advertise: str | None,
) -> None:
    told, _ = asked(request(METADATA, 12), advertise=advertise)
    assert {host for host, _ in brokers(told).values()} == {advertise or "127.0.0.1"}


def test_ports_are_those_of_the_base_and_the_node() -> None:
    (base,) = free_ports(1)
    told, _ = asked(request(METADATA, 12), port_base=base)
    assert brokers(told) == {3: ("127.0.0.1", base + 3), 5: ("127.0.0.1", base + 5)}


@pytest.mark.parametrize("clamp", [True, False])
def test_versions_that_nobody_knows_are_offered_only_without_the_cap(
    clamp: bool, caplog: pytest.LogCaptureFixture
) -> None:
    told, _ = asked(request(kit.API_VERSIONS, 3), clamp=clamp)
    (api,) = decode_response(told, kit.API_VERSIONS, 3).body["api_keys"]
    assert api["max_version"] == (NEWEST if clamp else NEWEST + 7)
    assert bool(caplog.messages) is clamp


def test_a_version_that_nobody_knows_passes_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = bytearray(request(METADATA, 12))
    data[6:8] = (NEWEST + 1).to_bytes(2, "big")
    told, _ = asked(bytes(data), clamp=False)
    assert told.endswith(b"nobody knows this 10.9.8.7")
    assert "with the addresses of brokers" in " ".join(caplog.messages)


# --- addresses that mean all interfaces, in every spelling ----------------------------------------


WILDCARDS = [
    "0",
    "0x0",
    "0.0",
    "00.0.0.0",
    "0.0.0.0",
    "::",
    "::0",
    "0:0::0",
    "::ffff:0.0.0.0",
    "*",
    "",
]
OTHERS = ["127.0.0.1", "::1", "localhost", "10.0.0.1", "127.1", "a..b"]


@pytest.mark.parametrize("host", [*WILDCARDS, *OTHERS])
def test_every_spelling_of_all_interfaces_is_one(host: str) -> None:
    assert is_wildcard(host) == (host in WILDCARDS)


def test_a_name_is_what_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", ("127.0.0.1" if host == "here" else "0.0.0.0", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert is_wildcard("all.example")
    assert not is_wildcard("here")


@pytest.mark.parametrize("listen", ["0:0", "0.0.0.0:0", "[::]:0", "0x0:0"])
def test_serve_wants_to_be_told(listen: str) -> None:
    done = CliRunner().invoke(serve, ["missing.pcap", "--listen", listen])
    assert done.exit_code == 2
    assert "--expose" in done.output
