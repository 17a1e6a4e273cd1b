"""Filters that Spark hands down, judged where files are read. Needs Spark 4.1 or newer, and
`spark.sql.python.filterPushdown.enabled`: Spark refuses a source that takes filters without it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kafkascope.bridges.spark.options import FileReader

COMPARED: Final[dict[type[Filter], Callable[[Any, Any], Any]]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
TEXTS: Final[dict[type[Filter], str]] = {
    StringStartsWith: "starts_with",
    StringEndsWith: "ends_with",
    StringContains: "match_substring",
}
"""Functions of Arrow."""


class PushingReader(FileReader):
    """Reads captures, and leaves out rows that Spark would leave out."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Take the filters that can be judged while files are read; yield the others."""
        names = set(self._options.schema().names)
        for each in filters:
            taken = condition_of(each, names)
            if taken is None:
                yield each
            else:
                self._condition = taken if self._condition is None else self._condition & taken


def condition_of(filter_: Any, names: set[str]) -> Any:
    """Return a filter on one column as an expression of Arrow; None for others."""
    import pyarrow.compute as pc

    if isinstance(filter_, Not):
        child = filter_.child
        inner = condition_of(child, names)
        if inner is None or isinstance(child, EqualNullSafe):
            return None
        # What is not known is no match of the opposite either, but where it is asked for.
        tests_null = isinstance(child, IsNull | IsNotNull)
        return ~inner if tests_null else ~inner & pc.field(child.attribute[0]).is_valid()
    known = isinstance(filter_, (*COMPARED, *TEXTS, In, IsNull, IsNotNull))
    if not known or len(filter_.attribute) != 1 or filter_.attribute[0] not in names:
        return None
    field = pc.field(filter_.attribute[0])
    if isinstance(filter_, IsNull):
        return field.is_null()
    if isinstance(filter_, IsNotNull):
        return field.is_valid()
    value = filter_.value
    if isinstance(filter_, In):
        # Arrow finds null in a list, SQL never does.
        values = [each for each in value if each is not None]
        return None if len(values) < len(value) else field.isin(values) & field.is_valid()
    if not isinstance(value, str | int | float) or (value != value):
        return None
    compare = COMPARED.get(type(filter_)) or getattr(pc, TEXTS[type(filter_)])
    return compare(field, value)
