"""Limits of rows, records and request logs in memory and output."""

from __future__ import annotations

from typing import Final, NamedTuple


class ExchangeLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- rows

    # Sets of values in common, and texts of columns, that are kept for the next row: far more than
    # there are clients, or topics that a client requests in turn. Larger ones, as those of a
    # thousand partitions, are written anew: each row has others.
    cached_rows: int = 1_024
    cached_row_values: int = 256
    # JSON of one: 256 topics with usual names. A client id alone may have 32 KB.
    cached_row_bytes: int = 16 << 10
    cached_texts: int = 1_024
    cached_text_chars: int = 2_048
    # Topics, groups or partitions that `result` names before it only counts the others.
    named_values: int = 3

    # --- records

    # A record's key, value and headers together: eight times what brokers accept by default
    # (message.max.bytes). As JSON they may take six times as much. Of a longer record the parts up
    # to the second size are still written out.
    record_bytes: int = 8 << 20
    long_record_part_bytes: int = 1 << 20
    # A topic's name, as Kafka allows. What is kept by topic is not kept of others.
    topic_chars: int = 249

    # --- schemas seen in the traffic

    # Topics of which it is remembered what their keys are, and as many that hold schemas.
    schema_topics: int = 100_000
    # Schema ids that are told apart, for bytes that only look like ids may name many; topics that
    # are remembered of one, and of all together.
    schema_ids: int = 100_000
    topics_of_schema_id: int = 100
    topics_of_schema_ids: int = 500_000

    # --- request logs

    # Lines that wait for their exchange; those after them are read after the capture.
    waiting_lines: int = 200_000
    # Lines that are remembered, to find those that several inputs hold: a log beside what a
    # container runtime kept of it.
    remembered_lines: int = 200_000
    # Lines that could not be read and are named.
    named_lines: int = 3


LIMITS: Final = ExchangeLimits()
