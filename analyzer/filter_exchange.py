"""The back end "one exchange": a bound filter -> a predicate over a row and its exchange.

Also what a field's values are, which `--columns` prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from analyzer import filter_paths, rows
from analyzer.filter_bind import Bound, Every, Find, Some, Test, Unless, bind
from analyzer.filter_checks import check_of

if TYPE_CHECKING:
    from analyzer.model import Exchange
    from analyzer.rows import Row

Values: TypeAlias = tuple[Any, ...]
Getter: TypeAlias = Callable[["Row"], Values]
Part: TypeAlias = Callable[["Row", "Exchange | None"], bool]

NANOSECONDS_PER_MS: Final = 1_000_000


def _if_any(value: Any) -> Values:
    return () if value is None or value == "" else (value,)


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _port(address: str) -> Values:
    port = address.rpartition(":")[2]
    return (int(port),) if port.isdecimal() else ()


def _endpoint(address: str) -> Values:
    return (address, _host(address)) if address else ()


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
    from dissectors.codes import ERRORS

    return (any(e.code in ERRORS and ERRORS[e.code].retriable for e in row.errors),)


def _state(word: str) -> Getter:
    return lambda row: (row.state == word,)


GETTERS: Final[dict[str, Getter]] = {
    "number": lambda row: (row.number,),
    "frame": lambda row: row.frames,
    "time": lambda row: (row.time_ns,),
    "conn": lambda row: (row.connection,),
    "client.ip": lambda row: _if_any(_host(row.client_address)),
    "client.port": lambda row: _port(row.client_address),
    "broker": lambda row: _endpoint(row.broker_address),
    "broker.ip": lambda row: _if_any(_host(row.broker_address)),
    "broker.port": lambda row: _port(row.broker_address),
    "ip": lambda row: (_host(row.client_address), _host(row.broker_address)),
    "port": lambda row: _port(row.client_address) + _port(row.broker_address),
    "api": lambda row: _if_any(row.api_key),
    "version": lambda row: _if_any(row.api_version),
    "flexible": lambda row: (row.flexible,),
    "correlation_id": lambda row: _if_any(row.correlation_id),
    "client": lambda row: _if_any(row.client_id),
    "software": lambda row: _if_any(row.software),
    "software.version": _release,
    "user": lambda row: _if_any(row.user),
    "request.bytes": lambda row: _if_any(row.request_bytes),
    "response.bytes": lambda row: _if_any(row.response_bytes),
    "bytes": lambda row: ((row.request_bytes or 0) + (row.response_bytes or 0),),
    "latency": lambda row: _if_any(row.latency_ns),
    "wait": lambda row: () if row.latency_ns is None else (row.wait_ns,),
    "excess": lambda row: _if_any(row.excess_ns),
    "state": lambda row: (row.state,),
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
    "topic": lambda row: row.topics,
    "topic.id": lambda row: tuple(str(topic_id) for topic_id in row.topic_ids),
    "partition": lambda row: row.partitions,
    "group": lambda row: row.groups,
    "member": lambda row: row.members,
    "generation": lambda row: row.generations,
    "producer.id": lambda row: row.producer_ids,
    "producer.epoch": lambda row: row.producer_epochs,
    "txn": lambda row: row.transactional_ids,
    "acks": lambda row: _if_any(row.acks),
    "throttle": lambda row: (
        (row.throttle_ms * NANOSECONDS_PER_MS,) if row.state == "answered" else ()
    ),
    "codec": lambda row: row.codecs,
    "records": lambda row: _if_any(row.records),
    "batches": lambda row: _if_any(row.batches),
}
"""Field -> its values in a row: none, one or many. `time.delta` needs the row before: see
`Filter`."""


def body_values(exchange: Exchange | None, path: filter_paths.Path) -> Values:
    """What a generic field has in an exchange, without secrets."""
    if exchange is None:
        return ()
    side = exchange.request if path[0] == "request" else exchange.response
    if side is None or side.decoded is None:
        return ()
    from dissectors.masking import masked

    body = masked(side.decoded.layout, side.decoded.body)
    return tuple(filter_paths.values(body, path[1:]))


def summary(row: Row) -> str:
    """What a string alone searches: the line that `ls` shows, and what it is about."""
    api = f"{row.api} v{row.api_version}"
    named = (*row.topics, *row.groups, *row.transactional_ids)
    start = (row.client_id or "", row.client_address, row.broker_address, row.software, api)
    return " ".join((*start, rows.result(row), row.reason, *named))


class Filter:
    """A filter made for exchanges, told of one after the other."""

    def __init__(self, bound: Bound | None) -> None:
        self._before_ns: int | None = None
        self._part = None if bound is None else self._compile(bound)

    def __call__(self, row: Row, exchange: Exchange | None = None) -> bool:
        """Whether the exchange is wanted. Bodies are looked at only for `request.` and
        `response.`."""
        if self._part is None:
            return True
        wanted = self._part(row, exchange)
        self._before_ns = row.time_ns
        return wanted

    def _compile(self, bound: Bound) -> Part:
        match bound:
            case Every(terms):
                every = [self._compile(term) for term in terms]
                return lambda row, exchange: all(part(row, exchange) for part in every)
            case Some(terms):
                some = [self._compile(term) for term in terms]
                return lambda row, exchange: any(part(row, exchange) for part in some)
            case Unless(term):
                part = self._compile(term)
                return lambda row, exchange: not part(row, exchange)
            case Find(text):
                return lambda row, exchange: text in summary(row).lower()
            case Test():
                return self._test(bound)

    def _delta(self, row: Row) -> Values:
        return () if self._before_ns is None else (row.time_ns - self._before_ns,)

    def _test(self, test: Test) -> Part:
        field, path = test.field, test.path
        holds = _scoped(test)
        if path:
            return lambda row, exchange: holds(body_values(exchange, path))
        get = self._delta if field.name == "time.delta" else GETTERS[field.name]
        return lambda row, exchange: holds(get(row))


def _scoped(test: Test) -> Callable[[Values], bool]:
    """A test over all values of a field."""
    if test.scope == "has":
        if test.field.type == "bool" or test.field.truth:
            return any
        return bool
    check = check_of(test)
    match test.scope:
        case "any":
            return lambda values: any(check(value) for value in values)
        case "all":
            return lambda values: bool(values) and all(check(value) for value in values)
        case "none":
            return lambda values: bool(values) and not any(check(value) for value in values)


def compile_filter(text: str) -> Filter:
    """The filter of a text; `FilterError`."""
    return Filter(bind(text))
