"""Limits of data about inputs besides their exchanges, and of the names in remarks."""

from __future__ import annotations

from typing import Final, NamedTuple


class ReadingLimits(NamedTuple):
    """Names are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # Connection attempts between two exchanges that are listed, about 1 KB each: a port scan may be
    # endless.
    connection_attempts: int = 100_000
    # Folders of partitions beside an input that are searched for schemas.
    partition_folders: int = 20_000
    # Names that are kept, and ranked by similarity, for a filter that matched nothing: a capture of
    # a test may have a topic a second. Those of them that are listed.
    compared_names: int = 5_000
    listed_names: int = 10
    # Protocols in a sentence; sentences about files that hold packets of others.
    named_protocols: int = 10
    overlapping_files: int = 6
    # Connections that are over, of which late packets may still come, while those are counted that
    # a key log opens.
    ended_connections: int = 10_000


LIMITS: Final = ReadingLimits()
