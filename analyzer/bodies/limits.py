"""Limits of the memory that message bodies take in a connection or a session."""

from __future__ import annotations

from typing import Final, NamedTuple


class BodyLimits(NamedTuple):
    """Names that end in no unit are counts. `ConversationLimits` has them as `bodies`."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # Nodes of a session: far more than any cluster has.
    nodes: int = 100_000
    # A host: what DNS allows (RFC 1035, 2.3.4). Nobody can connect to a longer one, for which there
    # is room on the wire.
    host_chars: int = 255
    # Fetch sessions of a connection: clients use one, replica fetchers one for each of their
    # threads. Partitions of one; a larger session counts as unknown.
    sessions: int = 64
    session_partitions: int = 100_000
    # Partitions of a connection whose log ends are known; beyond it all are forgotten and learned
    # again.
    log_ends: int = 100_000
    # What users write of a message: a dump as it is expanded, for `*` is any number of repeated
    # rows; JSON, and its values, counted by what is before them: one takes up to 300 bytes of
    # memory, its text two.
    dump_bytes: int = 150_000_000
    json_bytes: int = 32_000_000
    json_values: int = 1_000_000


LIMITS: Final = BodyLimits()
