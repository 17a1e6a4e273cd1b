"""Broker addresses: the table against all declarations, and rewriting in every version."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafkascope.dissectors.layout import ArrayWire, StructWire, Wire
from kafkascope.dissectors.registry import APIS, decode_response, layout_of, message
from kafkascope.proxy.relay.endpoints import ENDPOINTS, LEFT_ALONE
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT
from tests.kit import proxy as kit

ADDRESS_NAMES = ("host", "port", "endpoint", "listener", "address", "url", "uri")
NOT_ADDRESSES = frozenset(
    {"endpoint_type", "endpoint_information_epoch", "support", "supported", "report"}
)


def looks_like_an_address(name: str) -> bool:
    words = name.split("_")
    return any(word.rstrip("s") in ADDRESS_NAMES for word in words) and name not in NOT_ADDRESSES


def paths(name: str) -> Iterator[tuple[str, bool]]:
    """Every field of a message over all versions: its path, and whether it is marked."""
    seen: dict[str, bool] = {}
    told = message(name)
    for version in range(told.versions.low, told.versions.high + 1):
        _walk(layout_of(name, version).body, "", seen)
    yield from seen.items()


def _walk(wire: Wire, path: str, seen: dict[str, bool]) -> None:
    if isinstance(wire, ArrayWire):
        _walk(wire.element, path, seen)
    elif isinstance(wire, StructWire):
        for slot in (*wire.slots, *wire.tags):
            here = f"{path}.{slot.name}".lstrip(".")
            seen[here] = seen.get(here, False) or slot.field.endpoint
            _walk(slot.wire, here, seen)


RESPONSES = [(key, f"{api.name}Response") for key, api in APIS.items()]


@pytest.mark.parametrize(("key", "name"), RESPONSES)
def test_every_address_in_a_response_is_in_one_of_the_tables(key: int, name: str) -> None:
    rewritten = {f"{path}.".lstrip(".") for path in ENDPOINTS.get(key, ())}
    for path, marked in paths(name):
        parent, _, leaf = path.rpartition(".")
        in_table = leaf in ("host", "port") and f"{parent}.".lstrip(".") in rewritten
        assert marked == in_table, f"{name}.{path}: its mark and the table do not agree"
        if looks_like_an_address(leaf) and not in_table and f"{path}." not in rewritten:
            full = f"{name}.{path}"
            known = any(full == each or full.startswith(f"{each}.") for each in LEFT_ALONE)
            assert known, f"{full} looks like an address: put it into ENDPOINTS or LEFT_ALONE"


def test_the_tables_name_nothing_that_is_not_there() -> None:
    for each in LEFT_ALONE:
        name, _, path = each.partition(".")
        assert path in dict(paths(name)), each
    for key, structs in ENDPOINTS.items():
        known = dict(paths(f"{APIS[key].name}Response"))
        assert all(f"{struct}.host".lstrip(".") in known for struct in structs)


def rewritten(bench: kit.Bench, key: int, version: int, frame: bytes) -> bytes:
    bench.exchange(kit.request(key, version, {"acks": 1} if key == kit.PRODUCE else None), frame)
    return bench.sent(CLIENT)


def with_address(key: int, version: int) -> dict[str, Any]:
    broker = {"host": "10.9.8.7", "port": 9092, "rack": None}
    match key:
        case 3:
            return {"brokers": [{"node_id": 2, **broker}, {"node_id": 7, **broker}]}
        case 10 if version < 4:
            return {"node_id": 2, "host": "10.9.8.7", "port": 9092}
        case 10:
            named = {"key": "g", "error_code": 0, "error_message": None}
            return {"coordinators": [{"node_id": 2, "host": "10.9.8.7", "port": 9092, **named}]}
        case 60:
            fenced = {"is_fenced": False} if version >= 2 else {}
            kind = {"endpoint_type": 1} if version >= 1 else {}
            return {"brokers": [{"broker_id": 2, **broker, **fenced}], **kind}
        case _:
            return {"node_endpoints": [kit.endpoint(2)]}


def has_addresses(key: int, version: int) -> bool:
    layout = layout_of(f"{APIS[key].name}Response", version)
    seen: dict[str, bool] = {}
    _walk(layout.body, "", seen)
    return any(seen.values())


CASES = [
    (key, version)
    for key in ENDPOINTS
    for version in range(APIS[key].versions.low, APIS[key].versions.high + 1)
]


@pytest.mark.parametrize(("key", "version"), CASES)
def test_addresses_become_ours_in_every_version(key: int, version: int) -> None:
    bench = kit.Bench()
    if not has_addresses(key, version):
        plain = kit.response(key, version)
        assert rewritten(bench, key, version, plain) == plain
        return
    body = with_address(key, version)
    if version < 1 and key == kit.METADATA:
        for broker in body["brokers"]:
            del broker["rack"]
    sent = rewritten(bench, key, version, kit.response(key, version, body))
    assert b"10.9.8.7" not in sent
    told = decode_response(sent[4:], key, version).body
    for name in ENDPOINTS[key]:
        if name and name not in told:
            continue
        for struct in told[name] if name else [told]:
            if "host" not in struct:
                continue
            node_id = struct.get("broker_id", struct.get("node_id"))
            assert struct["host"] == "127.0.0.1"
            assert struct["port"] == bench.nodes.listeners[node_id].address.port
            assert bench.nodes.known[node_id] == ("10.9.8.7", 9092)


def test_a_listener_accepts_before_the_response_is_sent() -> None:
    bench = kit.Bench()
    bench.feed(CLIENT, kit.request(kit.METADATA, 12))
    actions = bench.feed(BROKER, kit.response(kit.METADATA, 12, {"brokers": [kit.endpoint(2)]}))
    assert actions
    port = bench.nodes.listeners[2].address.port
    socket.create_connection(("127.0.0.1", port)).close()


def test_no_broker_and_controllers_are_left_alone() -> None:
    bench = kit.Bench()
    none = kit.response(10, 3, {"error_code": 15, "node_id": -1, "host": "", "port": -1})
    assert rewritten(bench, 10, 3, none) == none
    bench = kit.Bench()
    broker = {"broker_id": 3000, "host": "10.1.1.1", "port": 9093, "rack": None}
    controllers = kit.response(60, 1, {"endpoint_type": 2, "brokers": [broker]})
    assert rewritten(bench, 60, 1, controllers) == controllers
    assert not bench.nodes.listeners


@pytest.mark.parametrize("version", range(16, APIS[kit.FETCH].versions.high + 1))
@pytest.mark.parametrize("host", ["10.9.8.7", "192.168.100.200", "broker-2.example.com", "b", "bb"])
def test_a_huge_fetch_is_changed_at_its_end_without_its_length(version: int, host: str) -> None:
    bench = kit.Bench()
    bench.feed(CLIENT, kit.request(kit.FETCH, version))
    original = kit.fetched(version, [kit.endpoint(2, host), kit.endpoint(3, host)], records=200_000)
    for at in range(0, len(original), 40_000):
        bench.feed(BROKER, original[at : at + 40_000])
        assert len(bench.relay.directions[BROKER].body) < 1000, "it must not be kept"
    sent = bench.sent(CLIENT)
    assert len(sent) == len(original)
    before = decode_response(original[4:], kit.FETCH, version)
    after = decode_response(sent[4:], kit.FETCH, version)
    assert after.end == len(sent) - 4
    told = after.body.pop("node_endpoints")
    before.body.pop("node_endpoints")
    after.body.pop("_tagged_fields", None)
    assert after.body == before.body
    if len(host) > 8:
        assert [e["host"] for e in told] == ["127.0.0.1"] * 2
    for each in told:
        assert each["port"] == bench.nodes.listeners[each["node_id"]].address.port
    assert f"{host}".encode() not in sent[-300:] or len(host) < 3


@pytest.mark.parametrize("spare", range(140))
def test_any_spare_length_is_filled(spare: int) -> None:
    bench = kit.Bench()
    bench.feed(CLIENT, kit.request(kit.FETCH, 18))
    host = "127.0.0.1" + "x" * spare
    original = kit.fetched(18, [kit.endpoint(2, host)], records=70_000)
    bench.feed(BROKER, original[:50_000])
    bench.feed(BROKER, original[50_000:])
    sent = bench.sent(CLIENT)
    told = decode_response(sent[4:], kit.FETCH, 18)
    assert len(sent) == len(original)
    assert told.end == len(sent) - 4
    assert [e["host"] for e in told.body["node_endpoints"]] == ["127.0.0.1"]


def test_a_fetch_without_addresses_passes_as_it_comes() -> None:
    bench = kit.Bench()
    bench.feed(CLIENT, kit.request(kit.FETCH, 18))
    original = kit.fetched(18, [], records=100_000)
    for at in range(0, len(original), 30_000):
        piece = original[at : at + 30_000]
        sent = b"".join(bytes(a.data) for a in bench.feed(BROKER, piece))
        assert len(sent) >= len(piece) - 2
    assert bench.sent(CLIENT) == original


def test_versions_are_capped_only_where_addresses_are(caplog: pytest.LogCaptureFixture) -> None:
    offered = [
        {"api_key": kit.PRODUCE, "min_version": 3, "max_version": 99},
        {"api_key": kit.METADATA, "min_version": 90, "max_version": 99},
        {"api_key": 12, "min_version": 0, "max_version": 99},
        {"api_key": 777, "min_version": 0, "max_version": 5},
    ]
    frame = kit.response(kit.API_VERSIONS, 3, {"api_keys": offered})
    for _ in range(2):
        bench = kit.Bench()
        told = decode_response(
            rewritten(bench, kit.API_VERSIONS, 3, frame)[4:], kit.API_VERSIONS, 3
        )
        highest = {each["api_key"]: each["max_version"] for each in told.body["api_keys"]}
        assert highest == {kit.PRODUCE: APIS[kit.PRODUCE].versions.high, 12: 99, 777: 5}
    assert "--no-clamp" in caplog.text
    bench = kit.Bench()
    bench.hub.versions = None
    assert rewritten(bench, kit.API_VERSIONS, 3, frame) == frame


def test_a_repeated_answer_is_changed_from_memory_and_has_its_own_id() -> None:
    bench = kit.Bench()
    body = {"brokers": [kit.endpoint(1), kit.endpoint(2)]}
    for number in (5, 6, 7):
        bench.actions.clear()
        bench.exchange(
            kit.request(kit.METADATA, 12, correlation_id=number),
            kit.response(kit.METADATA, 12, body, correlation_id=number),
        )
        told = decode_response(bench.sent(CLIENT)[4:], kit.METADATA, 12)
        assert told.header["correlation_id"] == number
        assert [b["host"] for b in told.body["brokers"]] == ["127.0.0.1"] * 2
    assert bench.hub.metrics.get("rewrites_total", "Metadata") == 3


def test_a_broker_that_moves_keeps_its_listener() -> None:
    bench = kit.Bench()
    for port in (9092, 9999):
        bench.exchange(
            kit.request(kit.METADATA, 12),
            kit.response(kit.METADATA, 12, {"brokers": [kit.endpoint(2, port=port)]}),
        )
    assert len(bench.listening.opened) == 1
    assert bench.nodes.candidates(2) == [("10.9.8.7", 9999)]


def test_a_port_that_is_taken_ends_the_connection_instead_of_leaking(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bench = kit.Bench()
        bench.nodes.port_base = taken.getsockname()[1] - 2
        bench.exchange(
            kit.request(kit.METADATA, 12),
            kit.response(kit.METADATA, 12, {"brokers": [kit.endpoint(2)]}),
        )
    assert bench.sent(CLIENT) == b""
    assert bench.context.over
    assert "cannot listen" in caplog.text
