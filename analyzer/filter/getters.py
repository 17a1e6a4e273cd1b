"""Getters of the fields of the filter language: their values, by those of attributes of a row.
`fields` assigns them to fields; every back end gets the attributes where it has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkascope.analyzer.filter import paths as filter_paths
from kafkascope.analyzer.filter.message import anywhere
from kafkascope.analyzer.identity import host_of
from kafkascope.times import MS

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row, RowError
    from kafkascope.analyzer.model import Exchange, ZooKeeperFacts
    from kafkascope.captures.model import Connection, TlsSummary

Values: TypeAlias = tuple[Any, ...]
Getter: TypeAlias = Callable[..., Values]


def of_row(names: tuple[str, ...], of: Getter) -> Callable[[Row], Values]:
    """Return what gives the values that are made of attributes of a row."""
    values = attrgetter(*names)
    if len(names) == 1:
        return lambda row: of(values(row))
    return lambda row: of(*values(row))


def ends_of(connection: Connection, side: int) -> dict[str, str]:
    """Return the attributes of rows that are a connection's, whose client is at one of its
    sides."""
    client, broker = map(str, connection.ends(side))
    return {"client_address": client, "broker_address": broker, "via": connection.via}


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


def is_deprecated(key: int | None, version: int | None) -> Values:
    """Return whether a Kafka release has removed a version of an API."""
    return (bool(removals(key, version)),)


def plain(value: Any) -> Values:
    """Return a value that may be missing."""
    return () if value is None or value == "" else (value,)


def joined(*lists: Values) -> Values:
    """Return the values of all lists."""
    return lists[0] if len(lists) == 1 else tuple(chain(*lists))


def inside(name: str) -> Getter:
    """Return the getter of an attribute of a part of the row that may be missing, such as `tls`."""
    value = attrgetter(name)
    return lambda whole: () if whole is None else plain(value(whole))


def hosts(*addresses: str) -> Values:
    """Return the hosts of some addresses."""
    return tuple(host for address in addresses if (host := host_of(address)))


def ports(*addresses: str) -> Values:
    """Return the ports of some addresses."""
    found = (address.rpartition(":")[2] for address in addresses)
    return tuple(int(port) for port in found if port.isdecimal())


def address(found: str) -> Values:
    """Return an address as host:port, and its host alone."""
    return (found, host_of(found)) if found else ()


def protocol(zookeeper: ZooKeeperFacts | None) -> Values:
    """Return the name of the protocol."""
    return ("kafka" if zookeeper is None else "zookeeper",)


def tls_version(tls: TlsSummary | None) -> Values:
    """Return the version of TLS as `TLS 1.3`, and as 1.3."""
    version = "" if tls is None else tls.version
    return (version, version.rpartition(" ")[2]) if version else ()


def software_version(software: str) -> Values:
    """Return the version in the name of the client library."""
    return tuple(word for word in software.split()[1:] if word[:1].isdecimal())[-1:]


def total(*sizes: int | None) -> Values:
    """Return the sum of the sizes that are known."""
    return (sum(size or 0 for size in sizes),)


def throttle(throttle_ms: int, state: str) -> Values:
    """Return the throttle time of a response in nanoseconds."""
    return (throttle_ms * MS,) if state == "answered" else ()


def ended(word: str) -> Getter:
    """Return the getter for whether the exchange ended in a state."""
    return lambda state: (state == word,)


def errors(found: Iterable[RowError], state: str) -> Values:
    """Return the error codes at any depth; no error is the value NONE, so that `error != 0` works
    as expected."""
    return tuple(dict.fromkeys(each.code for each in found)) or (
        (0,) if state == "answered" else ()
    )


def top_errors(found: Iterable[RowError], state: str) -> Values:
    """Return the error codes of the response itself, as `errors` does."""
    return errors([each for each in found if each.top], state)


def retriable(found: Iterable[RowError]) -> Values:
    """Return whether one of the errors is retriable."""
    from kafkascope.dissectors.reference.codes import ERRORS

    return (any(e.code in ERRORS and ERRORS[e.code].retriable for e in found),)


def body_values(exchange: Exchange | None, path: filter_paths.Path) -> Values:
    """Return the values of a generic field in an exchange, without secrets."""
    if exchange is None:
        return ()
    if path[0] == "body":
        return anywhere(exchange, str(path[1]))
    side = exchange.request if path[0] == "request" else exchange.response
    if side is None or side.decoded is None:
        return ()
    from kafkascope.dissectors.records.redaction import masked_body

    body = masked_body(side.decoded.layout, side.decoded.body)
    return tuple(filter_paths.values(body, path[1:]))
