"""Addresses of nodes as answers hand them out, and what can be said of an address by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

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
    if key == METADATA:
        for each in response["brokers"]:
            yield Given(each["node_id"], each["host"], each["port"], each.get("rack"), "broker")
    elif key == DESCRIBE_CLUSTER:
        role = "controller" if response.get("endpoint_type", 1) == 2 else "broker"
        for each in response["brokers"]:
            yield Given(each["broker_id"], each["host"], each["port"], each.get("rack"), role)
    elif key == FIND_COORDINATOR:
        found = response.get("coordinators")
        for each in (response,) if found is None else found:
            if not each["error_code"] and each["node_id"] >= 0:
                yield Given(each["node_id"], each["host"], each["port"], None, "broker")
    elif key in LEADING:
        for each in response.get("node_endpoints") or ():
            yield Given(each["node_id"], each["host"], each["port"], each.get("rack"), "broker")


def needed(key: int | None, response: dict[str, Any]) -> set[int]:
    """Return the nodes that who asked has to go to: leaders of the topics in an answer, and
    coordinators."""
    if key == METADATA:
        parts = (each for topic in response["topics"] for each in topic["partitions"])
        return {each["leader_id"] for each in parts}
    return {each.node for each in given(key, response)} if key == FIND_COORDINATOR else set()


def is_address(host: Any) -> bool:
    """Return whether a host is an address, and no name."""
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


MOST_ADDRESS: Final = 255
"""Characters of what may be an address, with its zone."""


def plain(host: str) -> str:
    """Return an address in the form in which it is compared: without a zone, in its usual spelling,
    IPv4 out of IPv6."""
    return _plain(host) if len(host) <= MOST_ADDRESS else host


@lru_cache(maxsize=4096)
def _plain(host: str) -> str:
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(found, "ipv4_mapped", None) or found)


def address_text(host: str, port: int) -> str:
    """Return an address and port as people write them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
