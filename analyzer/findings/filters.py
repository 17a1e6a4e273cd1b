"""Filters that select what findings are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from kafkascope.analyzer.conversation.pending import SASL_TOKEN
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.merging.tables import OTHERS
from kafkascope.analyzer.statistics.model import Line
from kafkascope.dissectors.zookeeper.types import UNKNOWN as UNKNOWN_TYPE

__all__ = [
    "ADDRESS_REQUESTS",
    "all_of",
    "among",
    "api_is",
    "connections_in",
    "one_of",
    "quoted",
    "with_requests",
]

ADDRESS_REQUESTS: Final = "api in {Metadata, DescribeCluster, FindCoordinator}"
"""Selects exchanges that carry addresses of brokers."""


def api_is(api: Any) -> str:
    """Return the filter for an API, or for a key without a name; empty for what is neither."""
    word = str(api or "").rpartition(" ")[2]
    return f"api == {word}" if word not in ("", SASL_TOKEN, OTHERS, UNKNOWN_TYPE) else ""


def all_of(*parts: str) -> str:
    """Join filters by `and`; empty ones are left out."""
    return " and ".join(part for part in parts if part)


def one_of(field: str, values: Sequence[Any]) -> str:
    """Return a filter for the values of a field, as they are written in filters; empty for none."""
    if len(values) == 1:
        return f"{field} == {values[0]}"
    return f"{field} in {{{', '.join(map(str, values))}}}" if values else ""


def among(field: str, numbers: Iterable[int]) -> str:
    """Return a filter for numbers of a field; three and more in a row become a range."""
    parts: list[str] = []
    for _, run in groupby(enumerate(sorted(set(numbers))), lambda each: each[1] - each[0]):
        row = [number for _, number in run]
        parts += [f"{row[0]}..{row[-1]}"] if len(row) > 2 else map(str, row)
    return f"{field} in {{{', '.join(parts)}}}" if parts else ""


def connections_in(lines: Iterable[Line], most: int = LIMITS.entities) -> str:
    """Return a filter for the first of some connections."""
    return among("conn", [line["connection"] for line in lines][:most])


def with_requests(lines: Iterable[Line]) -> list[Line]:
    """Return the connections that have exchanges."""
    return [line for line in lines if line["requests"]]
