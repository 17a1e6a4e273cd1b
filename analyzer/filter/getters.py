"""Getters of the fields of the filter language: their values in a row. `fields` assigns them to
fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.filter import paths as filter_paths
from kafkascope.analyzer.filter.message import anywhere
from kafkascope.analyzer.identity import host_of

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.column import Named
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange

Values: TypeAlias = tuple[Any, ...]
Getter: TypeAlias = Callable[["Row"], Values]

NANOSECONDS_PER_MS: Final = 1_000_000


@cache
def removals(key: int | None, version: int | None) -> tuple[str, ...]:
    """Return the Kafka releases that no longer have a version of an API that older ones had."""
    from kafkascope.dissectors.reference import releases
    from kafkascope.dissectors.registry import APIS

    if key not in APIS or version is None:
        return ()
    span = releases.spans(APIS[key].name).get(version)
    if span is None:
        return ()
    dropped = (*(gone for gone, _ in span.gaps), span.removed)
    return tuple(release for release in dropped if release)


def _if_any(value: Any) -> Values:
    return () if value is None or value == "" else (value,)


def _port(address: str) -> Values:
    port = address.rpartition(":")[2]
    return (int(port),) if port.isdecimal() else ()


def column(named: Named) -> Getter:
    """Return the getter of a column that is used as it is."""
    name, declared = named
    if declared.kind.many:
        return attrgetter(name)
    return lambda row: _if_any(getattr(row, name))


def client_ip(row: Row) -> Values:
    """Return the client's address."""
    return _if_any(host_of(row.client_address))


def client_port(row: Row) -> Values:
    """Return the client's port."""
    return _port(row.client_address)


def via(row: Row) -> Values:
    """Return the load balancer as address:port, and its address alone."""
    return (row.via, host_of(row.via)) if row.via else ()


def broker(row: Row) -> Values:
    """Return the broker as address:port, and its address alone."""
    return (row.broker_address, host_of(row.broker_address)) if row.broker_address else ()


def broker_ip(row: Row) -> Values:
    """Return the broker's address."""
    return _if_any(host_of(row.broker_address))


def broker_port(row: Row) -> Values:
    """Return the broker's port."""
    return _port(row.broker_address)


def ips(row: Row) -> Values:
    """Return the addresses of client and broker."""
    return (host_of(row.client_address), host_of(row.broker_address))


def ports(row: Row) -> Values:
    """Return the ports of client and broker."""
    return _port(row.client_address) + _port(row.broker_address)


def removed_in(row: Row) -> Values:
    """Return the releases that no longer have the version."""
    return removals(row.api_key, row.api_version)


def deprecated(row: Row) -> Values:
    """Return whether some release no longer has the version."""
    return (bool(removals(row.api_key, row.api_version)),)


def of_tls(name: str) -> Getter:
    """Return the getter of an attribute of the TLS around the exchange."""
    value = attrgetter(name)
    return lambda row: () if row.tls is None else _if_any(value(row.tls))


def protocol(row: Row) -> Values:
    """Return the protocol of the exchange."""
    return ("kafka" if row.zookeeper is None else "zookeeper",)


def of_zookeeper(name: str) -> Getter:
    """Return the getter of what a message of ZooKeeper is about."""
    value = attrgetter(name)
    return lambda row: () if row.zookeeper is None else _if_any(value(row.zookeeper))


def tls_version(row: Row) -> Values:
    """Return the version of TLS as `TLS 1.3`, and as 1.3."""
    version = "" if row.tls is None else row.tls.version
    return (version, version.rpartition(" ")[2]) if version else ()


def software_version(row: Row) -> Values:
    """Return the version in the name of the client library."""
    return tuple(word for word in row.software.split()[1:] if word[:1].isdecimal())[-1:]


def total_bytes(row: Row) -> Values:
    """Return the sum of both sizes."""
    return ((row.request_bytes or 0) + (row.response_bytes or 0),)


def wait(row: Row) -> Values:
    """Return the wait of an exchange that has a latency."""
    return () if row.latency_ns is None else (row.wait_ns,)


def excess(row: Row) -> Values:
    """Return the latency without the wait."""
    return _if_any(row.latency_beyond_wait_ns)


def throttle(row: Row) -> Values:
    """Return the throttle time of an answered exchange, in nanoseconds."""
    return (row.throttle_ms * NANOSECONDS_PER_MS,) if row.state == "answered" else ()


def ended(word: str) -> Getter:
    """Return the getter for whether the exchange ended in a state."""
    return lambda row: (row.state == word,)


def undecoded(row: Row) -> Values:
    """Return why bytes could not be decoded, each reason once."""
    return tuple(dict.fromkeys(each.reason for each in row.undecoded))


def errors(row: Row) -> Values:
    """Return the error codes at any depth; no error is the value NONE, so that `error != 0` works
    as expected."""
    codes = tuple(dict.fromkeys(error.code for error in row.errors))
    return codes or ((0,) if row.state == "answered" else ())


def top_errors(row: Row) -> Values:
    """Return the error codes of the response itself."""
    codes = tuple(error.code for error in row.errors if error.top)
    return codes or ((0,) if row.state == "answered" else ())


def failed(row: Row) -> Values:
    """Return whether there is an error."""
    return (bool(row.errors),)


def retriable(row: Row) -> Values:
    """Return whether one of the errors is retriable."""
    from kafkascope.dissectors.reference.codes import ERRORS

    return (any(e.code in ERRORS and ERRORS[e.code].retriable for e in row.errors),)


def topics(row: Row) -> Values:
    """Return the topics that the exchange lists or implies."""
    return (*row.topics, *row.implied_topics)


def topic_ids(row: Row) -> Values:
    """Return the topic ids as Kafka prints them."""
    return tuple(str(topic_id) for topic_id in row.topic_ids)


def body_values(exchange: Exchange | None, path: filter_paths.Path) -> Values:
    """Return the values of a generic field in an exchange, without secrets."""
    if exchange is None:
        return ()
    if path[0] == "body":
        return anywhere(exchange, str(path[1]))
    side = exchange.request if path[0] == "request" else exchange.response
    if side is None or side.decoded is None:
        return ()
    from kafkascope.dissectors.embedded.masking import masked

    body = masked(side.decoded.layout, side.decoded.body)
    return tuple(filter_paths.values(body, path[1:]))
