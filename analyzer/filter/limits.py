"""Limits of the cost of filters."""

from __future__ import annotations

from typing import Final, NamedTuple


class FilterLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # A filter is typed by a person, or generated from a list of names.
    filter_chars: int = 20_000
    # Nested parentheses and negations, so that a filter cannot exhaust the stack.
    nesting: int = 100
    pattern_chars: int = 1_000
    # Completions of a word.
    completions: int = 200
    # A text that may be a time, in a filter and in a payload.
    time_chars: int = 64
    payload_time_chars: int = 100
    # Schemas that were not known when a filter needed them.
    unknown_schemas: int = 100
    # Paths of fields that are remembered; a schema beyond which its fields are learned from values
    # alone.
    paths: int = 5_000
    schema_chars: int = 1 << 20


LIMITS: Final = FilterLimits()
