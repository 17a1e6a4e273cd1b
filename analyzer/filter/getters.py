"""What a field of the filter language has in an exchange: from its row, from its whole messages, or
from what the user noted. Also what `--columns` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.filter import paths as filter_paths
from kafkascope.analyzer.filter.fields import COLUMNS
from kafkascope.analyzer.filter.message import READERS, anywhere
from kafkascope.analyzer.identity import host_of

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.column import Column
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.fields import Field
    from kafkascope.analyzer.model import Exchange

Values: TypeAlias = tuple[Any, ...]
Getter: TypeAlias = Callable[["Row"], Values]

NANOSECONDS_PER_MS: Final = 1_000_000
HIDDEN: Final = frozenset({"raw", "wire"})
"""To be searched, not to be printed: they may hold passwords."""


@cache
def removals(key: int | None, version: int | None) -> tuple[str, ...]:
    """The Kafka releases that no longer have a version of an API, though older ones did."""
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


def _endpoint(address: str) -> Values:
    return (address, host_of(address)) if address else ()


def _release(row: Row) -> Values:
    return tuple(word for word in row.software.split()[1:] if word[:1].isdecimal())[-1:]


def _error(row: Row) -> Values:
    # No error is the value NONE, so that `error != 0` means what it seems to.
    codes = tuple(dict.fromkeys(error.code for error in row.errors))
    return codes or ((0,) if row.state == "answered" else ())


def _top(row: Row) -> Values:
    codes = tuple(error.code for error in row.errors if error.top)
    return codes or ((0,) if row.state == "answered" else ())


def _retriable(row: Row) -> Values:
    from kafkascope.dissectors.reference.codes import ERRORS

    return (any(e.code in ERRORS and ERRORS[e.code].retriable for e in row.errors),)


def _state(word: str) -> Getter:
    return lambda row: (row.state == word,)


def _column(name: str, column: Column) -> Getter:
    if column.kind.many:
        return attrgetter(name)
    return lambda row: _if_any(getattr(row, name))


GETTERS: Final[dict[str, Getter]] = {
    **{asked: _column(name, column) for asked, (name, column) in COLUMNS.items()},
    "client.ip": lambda row: _if_any(host_of(row.client_address)),
    "client.port": lambda row: _port(row.client_address),
    "broker": lambda row: _endpoint(row.broker_address),
    "broker.ip": lambda row: _if_any(host_of(row.broker_address)),
    "broker.port": lambda row: _port(row.broker_address),
    "ip": lambda row: (host_of(row.client_address), host_of(row.broker_address)),
    "port": lambda row: _port(row.client_address) + _port(row.broker_address),
    "removed_in": lambda row: removals(row.api_key, row.api_version),
    "deprecated": lambda row: (bool(removals(row.api_key, row.api_version)),),
    "software.version": _release,
    "bytes": lambda row: ((row.request_bytes or 0) + (row.response_bytes or 0),),
    "wait": lambda row: () if row.latency_ns is None else (row.wait_ns,),
    "excess": lambda row: _if_any(row.excess_ns),
    "answered": _state("answered"),
    "open": _state("open"),
    "lost": _state("lost"),
    "no-reply": _state("no-reply"),
    "orphan": _state("orphan"),
    "opaque": _state("opaque"),
    "undecoded": lambda row: tuple(dict.fromkeys(each.reason for each in row.undecoded)),
    "error": _error,
    "error.top": _top,
    "failed": lambda row: (bool(row.errors),),
    "retriable": _retriable,
    "topic.id": lambda row: tuple(str(topic_id) for topic_id in row.topic_ids),
    "throttle": lambda row: (
        (row.throttle_ms * NANOSECONDS_PER_MS,) if row.state == "answered" else ()
    ),
}
"""Field -> its values in a row: none, one or many. `time.delta` needs the row before, marks and
comments need a `Known`: see `Filter`."""

SOUGHT: Final[dict[str, Getter]] = GETTERS | {
    "topic": lambda row: (*row.topics, *row.implied_topics),
}
"""As `GETTERS`, for comparisons: these see more than is printed."""


def body_values(exchange: Exchange | None, path: filter_paths.Path) -> Values:
    """What a generic field has in an exchange, without secrets."""
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


def printed(
    field: Field, path: filter_paths.Path
) -> Callable[[Row, Exchange | None], Values] | None:
    """What columns show of a field; None for those that cannot be shown."""
    if path:
        return lambda _, exchange: body_values(exchange, path)
    if field.name in READERS:
        read = READERS[field.name]
        if field.name in HIDDEN:
            return None
        return lambda _, exchange: () if exchange is None else read(exchange)
    get = GETTERS.get(field.name)
    return None if get is None else lambda row, _: get(row)
