"""Statistics: accumulators of exchanges that merge, and the columns of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeAlias,
)

from kafkascope.analyzer.exchanges.rows import Row as Row
from kafkascope.analyzer.headings import heading
from kafkascope.analyzer.merging.measures import Measures
from kafkascope.analyzer.merging.tables import Keyed
from kafkascope.analyzer.model import Exchange as Exchange
from kafkascope.analyzer.topics import TopicNames as TopicNames
from kafkascope.analyzer.topics import short_id

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch

Kind: TypeAlias = Literal[
    "text", "count", "size", "duration", "time", "share", "rate", "flag", "list"
]
"""Kind of a column: what its values are. Durations and times are integer nanoseconds, sizes bytes,
shares 0 to 1; a list holds texts or numbers. Every value may be None: not known, or nothing."""


class Column(NamedTuple):
    """A column of a table of statistics."""

    name: str
    """Its name in JSON and in the library, where a duration has its unit in JSON."""
    kind: Kind = "text"
    wide: bool = False
    """Left out of tables by default."""
    by: str = ""
    """The value of a line that it is sorted by, where that is not its own."""

    @property
    def title(self) -> str:
        return heading(self.name)


def _kinds(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


KINDS: Final[dict[str, Kind]] = {
    **_kinds(
        "count",
        "aborted active advertised again attached attempts back batches beyond changes children "
        "commits committed committed_offset connection connections controller_epoch count "
        "end_offset events failed fetched_offset fetched_records first_lag first_offset "
        "first_sequence gap generation heartbeats lag largest last_offset last_sequence leader "
        "leader_epoch lost lost_batches max_lag members missing moved needless no_reply node "
        "number open out_of_order packet partition partitions produced_records producer_epoch "
        "producer_id producers reads rebalances records records_max records_p50 refused_records "
        "repeated repeats requests resets retransmissions slowest spread start_offset throttled "
        "tls_suites tls_updates unanswered undecoded unfinished unpaired unused version waited "
        "writes",
    ),
    **_kinds(
        "time",
        "answered changed created deleted deletion_requested ended first gap_first last last_error "
        "opened repeated_first repeated_last time waiting",
    ),
    **_kinds(
        "list",
        "apis assigned because capture_points causes clients codecs entities ephemerals errors "
        "groups in_sync leaders lost_nodes magics offline producer_epochs readers refused remarks "
        "replicas roles same_as schemas servers sources tls_alerts tls_offered twice unassigned "
        "versions who writers",
    ),
    **_kinds("rate", "batch_records per_connection per_minute per_second"),
    **_kinds(
        "size",
        "broker_bytes bytes client_bytes fetched_bytes gap_bytes produced_bytes replicated_bytes "
        "request_bytes response_bytes tls_received tls_sent total",
    ),
    **_kinds("flag", "controller negotiates retriable tls_early"),
    **_kinds(
        "duration",
        "duration excess excess_max excess_p50 excess_p95 excess_p99 handshake handshake_p50 idle "
        "latency life longest max max_latency median p50 p95 p99 requested_timeout session_timeout "
        "throttle width",
    ),
    **_kinds("share", "share throttled_share wait_share"),
}
"""Names of columns by their kind: one name is the same thing in all tables. Others are texts."""


def columns(*names: str | Column, kinds: Mapping[str, Kind] = {}) -> tuple[Column, ...]:
    """Return the columns of a table from their names; those in brackets are left out of tables for
    people. `kinds`: of names that mean something else here."""
    known, found = {**KINDS, **kinds}, list[Column]()
    for each in names:
        if isinstance(each, Column):
            found.append(each)
            continue
        for word in each.split():
            name = word.strip("()")
            found.append(Column(name, known.get(name, "text"), wide=word != name))
    return tuple(found)


def shown(columns: Iterable[Column], name: str) -> tuple[Column, ...]:
    """Return columns with one of them in tables for people, too."""
    return tuple(each._replace(wide=False) if each.name == name else each for each in columns)


Line: TypeAlias = dict[str, Any]
"""One row of a statistic: column name -> value."""
_ATTRIBUTES: Final = {"first": "first_ns", "last": "last_ns"}
"""Attributes of measures, by the names of their columns, where these differ."""


P = ParamSpec("P")


def listed(
    order: Callable[[Line], Any] | None = None,
) -> Callable[[Callable[P, Iterator[Line]]], Callable[P, list[Line]]]:
    """Make a function that yields lines one that returns all, in an order."""

    def decorate(lines: Callable[P, Iterator[Line]]) -> Callable[P, list[Line]]:
        @wraps(lines)
        def made(*args: P.args, **kwargs: P.kwargs) -> list[Line]:
            found = list(lines(*args, **kwargs))
            if order is not None:
                found.sort(key=order)
            return found

        return made

    return decorate


def picked(measures: Any, *attributes: str) -> Line:
    return {name.removesuffix("_ns"): getattr(measures, name) for name in attributes}


def filled(columns: Iterable[Column], measures: Any, /, **line: Any) -> Line:
    """Return a line with all columns: those that it lacks are attributes of measures."""
    for each in columns:
        if each.name not in line:
            value = getattr(measures, _ATTRIBUTES.get(each.name, each.name))
            line[each.name] = list(value) if each.kind == "list" else value
    return line


class WrongState(ValueError):
    """A state that this statistic did not write."""


class Accumulator(Measures):
    """A statistic: what it counts is in declared fields, a table first, so that merging, and the
    state, are the same for all. `merge` commutes."""

    __slots__ = ("__dict__",)
    NAME: ClassVar[str]
    VERSION: ClassVar[int] = 1
    """Version of the state that `dump` gives."""
    COLUMNS: ClassVar[tuple[Column, ...]]
    KEYS: ClassVar[frozenset[int] | None] = None
    """APIs of which it takes exchanges; None for all: see `feed`."""
    SINGLY: ClassVar[frozenset[int]]
    """APIs whose exchanges it takes one by one: see `Feed`."""
    ODD: ClassVar[bool] = False
    """Whether it takes all exchanges that are not as they should be."""

    def add(self, batch: ExchangeBatch) -> None:
        for row, exchange in batch:
            self.add_exchange(row, exchange)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        """Count an exchange, where each is looked at by itself."""

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return the table, the most important first. `names` has the names of topic ids."""
        raise NotImplementedError

    @property
    def subjects(self) -> Keyed[Any]:
        """The table of what it counts one by one."""
        return next(getattr(self, name) for name in self.RULES)

    def dump(self) -> dict[str, Any]:
        return {"statistic": self.NAME, "version": self.VERSION, "state": super().dump()}

    def load(self, state: dict[str, Any]) -> Self:
        """Take over what `dump` gave; `WrongState`."""
        found = state.get("statistic"), state.get("version")
        if found != (self.NAME, self.VERSION):
            raise WrongState(f"a state of {found[0]} {found[1]} is none of {self.NAME}")
        return super().load(state["state"])


# --- subjects -----------------------------------------------------------------------------------

ID_MARK: Final = "\0"
"""Begins a topic id in a key; no topic's name has it, but for invented names."""


def topic_key(topic: str | None, topic_id: bytes | None) -> str | None:
    """Return the key of a topic: its id where there is one, for names may come late."""
    if topic_id is not None and any(topic_id):
        return ID_MARK + topic_id.hex()
    return topic or None


def topic_id_in(key: Any) -> bytes | None:
    """Return the id in a key of `topic_key`; None where a name is the key."""
    if not isinstance(key, str) or not key.startswith(ID_MARK):
        return None
    try:
        topic_id = bytes.fromhex(key[1:])
    except ValueError:
        return None
    return topic_id if len(topic_id) == 16 else None


def topic_label(key: Any, names: TopicNames | None) -> Any:
    """Return the name of a topic, or the first 8 characters of its id and `?`."""
    topic_id = topic_id_in(key)
    if topic_id is None:
        return key
    return (names.get(topic_id) if names is not None else None) or short_id(topic_id)


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def per_second(count: int, first_ns: int | None, last_ns: int | None) -> float | None:
    """Return a rate over the time between the first and the last; None when that is no time."""
    if first_ns is None or last_ns is None or last_ns <= first_ns:
        return None
    return count * 1e9 / (last_ns - first_ns)


def middle(values: Sequence[int]) -> int:
    """Return the median in whole units. The `statistics` of Python brings fractions and random
    numbers with it, which is more than a small capture takes."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) // 2
