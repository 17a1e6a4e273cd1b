"""What brokers registered of themselves in ZooKeeper: the addresses of their listeners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.cluster.addresses import plain
from kafkascope.analyzer.statistics.zookeeper.operations import operations_of
from kafkascope.dissectors.zookeeper.nodes import json_of
from kafkascope.dissectors.zookeeper.paths import place_of

MOST_DIGITS: Final = 10
MAX_LISTENERS: Final = 20
"""Of one broker."""


class RegisteredListener(NamedTuple):
    """An address that a broker registered."""

    chroot: str
    node: int
    name: str
    """Of the listener; empty as brokers before 0.9 have none."""
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
            told = json_of(done.data)
            if isinstance(told, dict):
                yield from _listeners(place.chroot, int(number), told)


def _is_number(text: str) -> bool:
    """Return whether a text is a number that a broker or a port may have."""
    return len(text) <= MOST_DIGITS and text.isascii() and text.isdecimal()


def cluster_ids(exchange: Exchange) -> Iterator[str]:
    """Yield the id of the cluster, where it is written or read."""
    for done in operations_of(exchange):
        if not done.error and done.data and place_of(done.path).what == "cluster id":
            told = json_of(done.data)
            if isinstance(told, dict) and isinstance(told.get("id"), str):
                yield told["id"]


def _listeners(chroot: str, node: int, told: dict[str, Any]) -> Iterator[RegisteredListener]:
    """Yield the listeners of a broker: a list of texts since 0.9, one host and port before."""
    endpoints = told.get("endpoints")
    if isinstance(endpoints, list):
        for each in endpoints[:MAX_LISTENERS]:
            name, found, rest = str(each).partition("://")
            host, _, port = rest.rpartition(":")
            if found and _is_number(port):
                yield RegisteredListener(chroot, node, name, host.strip("[]"), int(port))
    elif isinstance(told.get("host"), str) and isinstance(told.get("port"), int):
        yield RegisteredListener(chroot, node, "", told["host"], told["port"])


def same(host: str, port: int, others: set[tuple[str, int]]) -> bool:
    """Return whether an address is among others."""
    return (plain(host), port) in {(plain(name), number) for name, number in others}
