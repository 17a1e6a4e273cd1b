"""Errors by client and subject, counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkascope.analyzer.exchanges.expected import is_expected
from kafkascope.analyzer.exchanges.rows import RowError, blank, codes_of
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.merging.measures import Measures, least, most, total
from kafkascope.analyzer.merging.tables import OTHERS, Keyed, table
from kafkascope.analyzer.statistics.model import (
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
    columns,
    topic_id_in,
    topic_key,
)
from kafkascope.analyzer.statistics.simple import Breakdown
from kafkascope.dissectors.reference.codes import ERRORS, error_name
from kafkascope.dissectors.registry import api_named
from kafkascope.dissectors.zookeeper.types import PREFIX
from kafkascope.dissectors.zookeeper.types import error_name as zookeeper_error_name


class Count(Measures):
    """Count of one error."""

    count: int = total()
    """Error codes; an answer may hold many."""
    first_ns: int | None = least()
    last_ns: int | None = most()
    first_exchange: tuple[int, int] | None = least()
    """(time, number)"""


class Errors(Breakdown[Count]):
    """Error codes by API, client, broker, topic and group. Lines leave out those that are expected
    by the protocol (`exchanges.expected`), unless lines are made by that."""

    NAME = "errors"
    VERSION = 3
    KEYS = frozenset()
    ODD = True
    USUAL = ("code", "api", "client", "topic")
    SORT = "count"
    KEY = ("code", "api", "client_id", "host", "broker", "topic", "group", "expected")
    COLUMNS = columns("count retriable first last number")

    values: Keyed[Count] = table(Count)
    is_about: Callable[[Row], bool] | None = None
    """Returns whether a finding is about the errors of a row, once findings are known. Without it
    the exchange alone decides. No part of the state."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        if not row.errors:
            return
        host = host_of(row.client_address)
        expected = "yes" if row.expected else "no"
        if not row.expected and is_expected(row.api_key, codes_of(row), findings=True):
            expected = "open"
        for error in row.errors:
            key = (
                error.code,
                row.api,
                row.client_id,
                host,
                row.broker_address,
                topic_key(error.topic, error.topic_id),
                error.group,
                expected,
            )
            self.values[key].merge(Count(1, row.time_ns, row.time_ns, (row.time_ns, row.number)))

    def rows(self, names: TopicNames | None = None, by: Sequence[str] = ()) -> list[Line]:
        """Return one line for each value of some parts of the key, without expected errors unless
        `expected` is one of the parts."""
        by = by or self.USUAL
        if "expected" in by:
            return super().rows(names, by)
        lines = super().rows(names, (*by, "expected"))
        return [line for line in lines if line.pop("expected") is not True]

    def totals(self) -> tuple[int, int]:
        """Return how many errors there are, and how many more are expected."""
        counts = {key["expected"]: count.count for key, count in self.grouped(("expected",))}
        expected = counts.pop(True, 0)
        return sum(counts.values()), expected

    def resolve(self, parts: dict[str, Any]) -> None:
        state = parts["expected"]
        if self.is_about is None or state == "no":
            parts["expected"] = state == "yes"
        else:
            parts["expected"] = not self.is_about(_row(parts))

    @classmethod
    def columns(cls, by: Sequence[str]) -> tuple[Column, ...]:
        named = (Column("error"),) if "code" in by else ()
        return (*named, *super().columns(by))

    def line(self, key: Line, count: Count) -> Line:
        code, api = key.get("code"), key.get("api") or ""
        known, named = None, {}
        if code == OTHERS:
            named = {"error": code}
        elif code is not None and (code < -1 or api.startswith(PREFIX)):
            # The API may be left out: but for -1, codes of ZooKeeper alone are below 0.
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


def _row(parts: dict[str, Any]) -> Row:
    """Return a row with the parts of a key: filters about errors need no more of an exchange."""
    topic_id = topic_id_in(parts["topic"])
    topic = parts["topic"] if topic_id is None else None
    return blank(
        number=0,
        api=parts["api"],
        api_key=api_named(parts["api"]).key,
        client_id=parts["client_id"],
        client_address=f"{parts['host']}:0",
        broker_address=parts["broker"],
        topics=(topic,) if topic else (),
        topic_ids=(topic_id,) if topic_id else (),
        groups=(parts["group"],) if parts["group"] else (),
        errors=(RowError(parts["code"], "", False, topic, topic_id, None, parts["group"]),),
        state="answered",
    )
