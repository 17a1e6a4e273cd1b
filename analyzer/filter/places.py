"""The fields that each input supports; filters with other fields are refused when compiled."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kafkascope.analyzer.filter.bind import Bound, fields_of
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.fields import DECODED, FIELDS, NOTED, told_by
from kafkascope.analyzer.filter.known import Known

LATE: Final = frozenset({"topic", "summary"}) | DECODED
"""Fields that use topic names, which may come after the exchange."""

_BODIES: Final = frozenset({"request.", "response.", "body."})
"""What `fields_of` returns for any field of a body."""
NUMBERS: Final = frozenset({"number", "conn"})
_OF_ALL: Final = NUMBERS | told_by("order")
"""Ranks, and fields that need the exchange before: known when all of a capture has been read."""

IN_TASKS: Final = (
    ({field.name for field in FIELDS} | _BODIES | {"summary"}) - _OF_ALL - NOTED - DECODED
)
"""Fields that a task of the pipeline supports, which has only some of the connections."""
IN_TABLES: Final = {field.name for field in FIELDS if field.get is not None} - NOTED | {"summary"}
"""Fields that the table of exchanges supports: its columns, not the messages."""


def demand(bound: Bound | None, text: str, known: Collection[str], why: str, hint: str) -> None:
    """Raise `FilterError` at the first field of a filter that is not in `known`. `why` is the
    sentence, with `{}` for the field; `hint` says what to do instead."""
    for name in sorted(fields_of(bound) - set(known)):
        alone = name == "summary"
        word = name.rstrip(".")
        at = 0 if alone else max(text.lower().find(word), 0)
        path = name in DECODED and word != name
        shown = "a text on its own" if alone else f"{word}.<path>" if path else word
        raise FilterError(why.format(shown), text, at, 1 if alone else len(word), hint)


def decodes(bound: Bound | None, text: str, known: Known) -> None:
    """Raise `FilterError` for a filter about decoded values where nothing decodes them."""
    if known.decoding is None:
        named = fields_of(bound)
        why = "{} needs keys and values decoded with a schema"
        demand(bound, text, named - DECODED, why, "record.key and record.value are the bytes")
