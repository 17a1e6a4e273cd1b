"""Compiles the filter of a reading, and finds out what its fields need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from kafkascope.analyzer.filter.known import Known

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.backends.records import RecordFilter
    from kafkascope.analyzer.filter.language import Filter
    from kafkascope.analyzer.topics import TopicNames


class FilterFields(NamedTuple):
    """The fields that a filter uses."""

    fields: frozenset[str] = frozenset()
    notes: frozenset[str] = frozenset()
    """Fields of `fields` for marks and comments of the user."""
    findings: frozenset[str] = frozenset()
    """Fields of `fields` that depend on findings."""
    decoded: bool = False
    """Whether `fields` has keys and values that schemas decode."""


def filter_of(
    text: str, known: Known, records: Callable[[], TopicNames] | None = None
) -> tuple[Filter | RecordFilter | None, FilterFields]:
    """Return the compiled filter and the fields that it uses; `FilterError` if it is invalid. An
    empty text does not import the language, which saves 5 % of a short run. `records`: returns the
    names of topics, for a filter that selects records."""
    if not text.strip():
        return None, FilterFields()
    from kafkascope.analyzer.filter.bind import fields_of
    from kafkascope.analyzer.filter.fields import DECODED, FOUND, MARKS
    from kafkascope.analyzer.filter.language import compile_filter

    compiled: Filter | RecordFilter
    if records is None:
        compiled = compile_filter(text, known)
    else:
        from kafkascope.analyzer.filter.backends.records import compile_records

        compiled = compile_records(text, records, known)
    fields = frozenset(fields_of(compiled.bound))
    decoded = bool(fields & DECODED)
    return compiled, FilterFields(fields, fields & MARKS, fields & FOUND, decoded)


def in_tasks(uses: FilterFields) -> bool:
    """Return whether a worker process, which has some of the connections, can evaluate a filter."""
    if not uses.fields:
        return True
    from kafkascope.analyzer.filter.bind import IN_TASKS

    return uses.fields <= IN_TASKS


def in_parts(names: Iterable[str]) -> bool:
    """Return whether a worker process, which has some of the connections, can print fields."""
    if not names:
        return True
    from kafkascope.analyzer.filter.bind import IN_TASKS, NUMBERS, resolve

    fields = [field for name in names if (field := resolve(name)) is not None]
    return all(path or field.name in IN_TASKS | NUMBERS for field, path in fields)
