"""Which errors, how many, for whom, about what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import Measures, least, measured, most, total
from kafkascope.analyzer.statistics.merging.tables import OTHERS, Keyed
from kafkascope.analyzer.statistics.model import Column, Exchange, Line, Row, topic_key
from kafkascope.analyzer.statistics.simple import Breakdown
from kafkascope.dissectors.reference.codes import ERRORS, error_name
from kafkascope.dissectors.zookeeper.types import PREFIX
from kafkascope.dissectors.zookeeper.types import error_name as zookeeper_error_name


@measured
class Count(Measures):
    """Of one error."""

    count: int = total()
    """Error codes; an answer may hold many."""
    first_ns: int | None = least()
    last_ns: int | None = most()
    first_exchange: tuple[int, int] | None = least()
    """(time, number)"""


class Errors(Breakdown[Count]):
    """Error codes by API, client, broker, topic and group."""

    NAME = "errors"
    KEYS = frozenset()
    ODD = True
    USUAL = ("code", "api", "client", "topic")
    KEY = ("code", "api", "client_id", "host", "broker", "topic", "group")
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("count", "count"),
        Column("retriable", "flag"),
        Column("first", "time"),
        Column("last", "time"),
        Column("number", "count"),
    )

    values: Keyed[Count] = table(Count)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count the errors of an answer."""
        if not row.errors:
            return
        host = host_of(row.client_address)
        for error in row.errors:
            key = (
                error.code,
                row.api,
                row.client_id,
                host,
                row.broker_address,
                topic_key(error.topic, error.topic_id),
                error.group,
            )
            self.values[key].merge(Count(1, row.time_ns, row.time_ns, (row.time_ns, row.number)))

    @classmethod
    def columns(cls, by: Sequence[str]) -> tuple[Column, ...]:
        """Return the columns, the name of the error before its code."""
        named = (Column("error"),) if "code" in by else ()
        return (*named, *super().columns(by))

    def weight(self, count: Count) -> int:
        """Return how many there were."""
        return count.count

    def line(self, key: Line, count: Count) -> Line:
        """Return the line of a key."""
        code = key.get("code")
        known, named = None, {}
        if code == OTHERS:
            named = {"error": code}
        elif code is not None and _is_zookeeper(code, key.get("api")):
            named = {"error": zookeeper_error_name(code)}
        elif code is not None:
            known, named = ERRORS.get(code), {"error": error_name(code)}
        return {
            **named,
            **key,
            "count": count.count,
            "retriable": None if known is None else known.retriable,
            "first": count.first_ns,
            "last": count.last_ns,
            "number": None if count.first_exchange is None else count.first_exchange[1],
        }


def _is_zookeeper(code: int, api: str | None) -> bool:
    """Return whether an error is one of ZooKeeper, where the API may be left out: but for -1 no
    code is below 0 with Kafka, and above with ZooKeeper."""
    return code < -1 or (api is not None and api.startswith(PREFIX))
