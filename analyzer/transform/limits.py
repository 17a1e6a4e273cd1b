"""Limits of the state of cuts and redactions."""

from __future__ import annotations

from typing import Final, NamedTuple


class TransformLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- cuts

    # Connections that are written, about 2 KB each. Exchanges on others are left out.
    connections: int = 150_000
    # Connections of other protocols at once, about 1 KB each without their bytes.
    other_connections: int = 50_000
    # Handshakes with ZooKeeper, in case an exchange after them is chosen.
    handshakes: int = 10_000
    # Addresses of one host name.
    host_addresses: int = 64
    # Segments that are written again, as they were retransmitted; others are written once.
    retransmitted_segments: int = 100_000
    # Sequence numbers that readers still believe when bytes are missing.
    missing_bytes: int = 32 << 20
    # Packets that are held for the key log; more are written before their time.
    held_bytes: int = 64 << 20

    # --- other names

    # Names, ids and hosts, each: 300 bytes for one. Later names become asterisks, later ids one id;
    # for a later address a hash chooses another one, which is always the same and which few others
    # share. Characters of the names, and of the hosts; beyond these as beyond the number.
    names: int = 200_000
    name_chars: int = 32 << 20


LIMITS: Final = TransformLimits()
