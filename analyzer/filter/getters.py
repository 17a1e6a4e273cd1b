"""Getters of the fields of the filter language: their values in a row. `fields` assigns them to
fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkascope.analyzer.filter import paths as filter_paths
from kafkascope.analyzer.filter.message import anywhere
from kafkascope.analyzer.identity import host_of

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.column import Named
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange

Values: TypeAlias = tuple[Any, ...]
Getter: TypeAlias = Callable[["Row"], Values]


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


def attribute(name: str) -> Getter:
    """Return the getter of an attribute that may be empty."""
    value = attrgetter(name)
    return lambda row: _if_any(value(row))


def column(named: Named) -> Getter:
    """Return the getter of a column that is used as it is."""
    return attrgetter(named.name) if named.column.kind.many else attribute(named.name)


def inside(part: str, name: str) -> Getter:
    """Return the getter of an attribute of a part of the row that may be missing, such as `tls`."""
    whole, value = attrgetter(part), attrgetter(name)
    return lambda row: () if (found := whole(row)) is None else _if_any(value(found))


def hosts(*names: str) -> Getter:
    """Return the getter of the hosts of some addresses."""
    addresses = [attrgetter(name) for name in names]
    return lambda row: tuple(host for get in addresses if (host := host_of(get(row))))


def ports(*names: str) -> Getter:
    """Return the getter of the ports of some addresses."""
    addresses = [attrgetter(name) for name in names]

    def found(row: Row) -> Values:
        texts = (get(row).rpartition(":")[2] for get in addresses)
        return tuple(int(port) for port in texts if port.isdecimal())

    return found


def address(name: str) -> Getter:
    """Return the getter of an address as host:port, and its host alone."""
    value = attrgetter(name)
    return lambda row: (found, host_of(found)) if (found := value(row)) else ()


def tls_version(row: Row) -> Values:
    """Return the version of TLS as `TLS 1.3`, and as 1.3."""
    version = "" if row.tls is None else row.tls.version
    return (version, version.rpartition(" ")[2]) if version else ()


def software_version(row: Row) -> Values:
    """Return the version in the name of the client library."""
    return tuple(word for word in row.software.split()[1:] if word[:1].isdecimal())[-1:]


def ended(word: str) -> Getter:
    """Return the getter for whether the exchange ended in a state."""
    return lambda row: (row.state == word,)


def errors(*, top: bool = False) -> Getter:
    """Return the getter of the error codes at any depth, or of those of the response itself; no
    error is the value NONE, so that `error != 0` works as expected."""

    def found(row: Row) -> Values:
        codes = tuple(dict.fromkeys(error.code for error in row.errors if error.top or not top))
        return codes or ((0,) if row.state == "answered" else ())

    return found


def retriable(row: Row) -> Values:
    """Return whether one of the errors is retriable."""
    from kafkascope.dissectors.reference.codes import ERRORS

    return (any(e.code in ERRORS and ERRORS[e.code].retriable for e in row.errors),)


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
