"""Which fields each source can answer, and the refusal of the others when a filter is compiled."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kafkascope.analyzer.filter.bind import Bound, fields_of
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.fields import FIELDS, NOTED, told_by

LATE: Final = frozenset({"topic", "summary"})
"""Fields that see names of topics, which may come after the exchange."""

_BODIES: Final = frozenset({"request.", "response.", "body."})
"""What `fields_of` says for any field of a body."""
_OF_ALL: Final = frozenset({"number", "conn"}) | told_by("order")
"""Ranks, and what needs the exchange before: known when all of a capture has been read."""

IN_TASKS: Final = ({field.name for field in FIELDS} | _BODIES | {"summary"}) - _OF_ALL - NOTED
"""What a task of the pipeline knows, which has some of the connections."""
IN_TABLES: Final = {field.name for field in FIELDS if field.get is not None} - NOTED | {"summary"}
"""What the table of exchanges tells: its columns, not the messages."""


def demand(bound: Bound | None, text: str, known: Collection[str], why: str, hint: str) -> None:
    """Raise `FilterError` at the first field of a filter that is not `known`. `why` is the
    sentence, with `{}` for the field; `hint` says what to do instead."""
    for name in sorted(fields_of(bound) - set(known)):
        alone = name == "summary"
        word = name.rstrip(".")
        at = 0 if alone else max(text.lower().find(word), 0)
        shown = "a text alone" if alone else word
        raise FilterError(why.format(shown), text, at, 1 if alone else len(word), hint)
