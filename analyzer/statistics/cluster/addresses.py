"""Addresses of nodes as responses advertise them, and what an address shows by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.zookeeper.operations import operations_of
from kafkascope.dissectors.zookeeper.nodes import json_of
from kafkascope.dissectors.zookeeper.paths import place_of

METADATA: Final = 3
FIND_COORDINATOR: Final = 10
DESCRIBE_CLUSTER: Final = 60
LEADING: Final = frozenset({0, 1, 78, 79})
"""APIs whose answers may name other leaders, with their addresses."""


class Given(NamedTuple):
    """An address as an answer gives it."""

    node: int
    host: str
    port: int
    rack: str | None
    role: str


def given(key: int | None, response: dict[str, Any]) -> Iterator[Given]:
    """Yield all addresses that a response hands out."""
    role, found = "broker", response.get("node_endpoints") if key in LEADING else ()
    if key in (METADATA, DESCRIBE_CLUSTER):
        role = "controller" if response.get("endpoint_type", 1) == 2 else "broker"
        found = response["brokers"]
    elif key == FIND_COORDINATOR:
        several = response.get("coordinators")
        found = (response,) if several is None else several
    for each in found or ():
        node = each["broker_id"] if key == DESCRIBE_CLUSTER else each["node_id"]
        if node >= 0 and not (key == FIND_COORDINATOR and each["error_code"]):
            yield Given(node, each["host"], each["port"], each.get("rack"), role)


def needed(key: int | None, response: dict[str, Any]) -> set[int]:
    """Return the nodes that the client needs: leaders of the topics in an answer, and
    coordinators."""
    if key == METADATA:
        parts = (each for topic in response["topics"] for each in topic["partitions"])
        return {each["leader_id"] for each in parts}
    return {each.node for each in given(key, response)} if key == FIND_COORDINATOR else set()


def is_address(host: Any) -> bool:
    try:
        ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether it is `localhost`, or an address that never leaves the machine."""
    return host == "localhost" or (
        is_address(host) and ip_address(host.partition("%")[0]).is_loopback
    )


def is_private(host: str) -> bool:
    """Return whether it is an address of a private network, as of RFC 1918."""
    return is_address(host) and ip_address(host.partition("%")[0]).is_private


def is_public(host: str) -> bool:
    """Return whether it is an address that is the same everywhere."""
    return is_address(host) and ip_address(host.partition("%")[0]).is_global


def plain(host: str) -> str:
    """Return an address in the form in which it is compared: without a zone, in its usual spelling,
    IPv4 out of IPv6."""
    return _plain(host) if len(host) <= LIMITS.address_chars else host


@lru_cache(maxsize=4096)
def _plain(host: str) -> str:
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(found, "ipv4_mapped", None) or found)


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# --- what brokers registered of themselves in ZooKeeper: the addresses of their listeners


class RegisteredListener(NamedTuple):
    """An address that a broker registered."""

    chroot: str
    node: int
    name: str
    """Name of the listener; empty as brokers before 0.9 have none."""
    host: str
    port: int


def registered(exchange: Exchange) -> Iterator[RegisteredListener]:
    """Yield what is written to, or read from, nodes of brokers."""
    for done in operations_of(exchange):
        if done.error or not done.data:
            continue
        place = place_of(done.path)
        number = place.first("brokerId") or ""
        if place.what == "broker" and _is_number(number):
            data = json_of(done.data)
            if isinstance(data, dict):
                yield from _listeners(place.chroot, int(number), data)


def _is_number(text: str) -> bool:
    return len(text) <= LIMITS.broker_digits and text.isascii() and text.isdecimal()


def cluster_ids(exchange: Exchange) -> Iterator[str]:
    for done in operations_of(exchange):
        if not done.error and done.data and place_of(done.path).what == "cluster id":
            data = json_of(done.data)
            if isinstance(data, dict) and isinstance(data.get("id"), str):
                yield data["id"]


def _listeners(chroot: str, node: int, data: dict[str, Any]) -> Iterator[RegisteredListener]:
    """Yield the listeners of a broker: a list of texts since 0.9, one host and port before."""
    endpoints = data.get("endpoints")
    if isinstance(endpoints, list):
        for each in endpoints[: LIMITS.broker_listeners]:
            name, found, rest = str(each).partition("://")
            host, _, port = rest.rpartition(":")
            if found and _is_number(port):
                yield RegisteredListener(chroot, node, name, host.strip("[]"), int(port))
    elif isinstance(data.get("host"), str) and isinstance(data.get("port"), int):
        yield RegisteredListener(chroot, node, "", data["host"], data["port"])


def same(host: str, port: int, others: set[tuple[str, int]]) -> bool:
    return (plain(host), port) in {(plain(name), number) for name, number in others}
