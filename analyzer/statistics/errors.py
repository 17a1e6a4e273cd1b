"""Which errors, how many, for whom, about what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.mergeable import (
    OTHERS,
    Keyed,
    Measures,
    least,
    measured,
    most,
    table,
    total,
)
from kafkascope.analyzer.statistics.model import Column, Exchange, Line, Row, TopicNames, topic_key
from kafkascope.analyzer.statistics.simple import ByKey
from kafkascope.dissectors.reference.codes import ERRORS, error_name


@measured
class Count(Measures):
    """Of one error."""

    count: int = total()
    """Error codes; an answer may hold many."""
    first_ns: int | None = least()
    last_ns: int | None = most()
    first_exchange: tuple[int, int] | None = least()
    """(time, number)"""


BY: Final = {
    "code": Column("code", "Code", "count"),
    "api": Column("api", "API"),
    "client": Column("client", "Client"),
    "broker": Column("broker", "Broker"),
    "topic": Column("topic", "Topic"),
    "group": Column("group", "Group"),
}


class Errors(ByKey[Count]):
    """Error codes by API, client, broker, topic and group."""

    NAME = "errors"
    KEY = ("code", "api", "client_id", "host", "broker", "topic", "group")
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("count", "n", "count"),
        Column("retriable", "retriable", "flag"),
        Column("first", "first", "time"),
        Column("last", "last", "time"),
        Column("number", "first No", "count"),
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
            here = Count(1, row.time_ns, row.time_ns, (row.time_ns, row.number))
            self.values[key].merge(here)

    def rows(
        self,
        names: TopicNames | None = None,
        by: Sequence[str] = ("code", "api", "client", "topic"),
    ) -> list[Line]:
        """Return one line for each value of `by`, the most frequent first."""
        found = self.grouped(by, names)
        found.sort(key=lambda item: -item[1].count)
        return [{**_named(key), **_line(key.get("code"), count)} for key, count in found]


def _named(key: Line) -> Line:
    """Return a key with the name of the error before its code."""
    code = key.get("code")
    if code is None:
        return key
    return {"error": OTHERS if code == OTHERS else error_name(code), **key}


def _line(code: int | str | None, count: Count) -> Line:
    retriable = ERRORS[code].retriable if isinstance(code, int) and code in ERRORS else None
    return {
        "count": count.count,
        "retriable": retriable,
        "first": count.first_ns,
        "last": count.last_ns,
        "number": None if count.first_exchange is None else count.first_exchange[1],
    }
