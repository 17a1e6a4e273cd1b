"""Limits of the memory and time that the bytes of a frame can cost beyond their own size. Sizes in
frames are also checked against the bytes that are left."""

from __future__ import annotations

from typing import Final, NamedTuple


class DissectorLimits(NamedTuple):
    """Names without a unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- messages

    # Memory of one decoded body, beside the content of its texts. An element of two bytes on the
    # wire is a dict of three hundred: a frame of 100 MB could take 15 GB. There is room for a
    # Metadata response with 150,000 partitions. The kernel has the same limit (`kernel.walker`).
    body_bytes: int = 128 << 20
    # Nodes of one message; beyond them elements of arrays and unknown tags share one node. A node
    # takes 300 bytes, and a message of 1 MB may have millions.
    nodes: int = 300_000
    # Values that are read again to find the wrong one: about a second. Hostile bodies have hundreds
    # of times as many.
    explained_values: int = 1 << 17

    # --- record batches

    # Expanded size of one batch. Producers make batches of 16 KB (batch.size) and cap what they
    # compress at 1 MB (max.request.size) by default; 64 times as much is a bomb, not traffic. The
    # batch, one record of it and the JSON of that are in memory together.
    batch_bytes: int = 64 << 20
    # Records of one batch. A batch of 1 MB (message.max.bytes) holds 150,000 of the smallest; 12 KB
    # of zstd can expand to 18 million, which would take gigabytes.
    records: int = 1 << 20
    # Headers of one record. The smallest takes two bytes, and forty times as much when it is read.
    record_headers: int = 1 << 14
    # Memory of opened batches while another one is opened, which may take twice as much, and a
    # record of it as well. A capture of kilobytes may hold thousands of such batches, and a merge
    # of partitions by time has an iterator in each of them.
    opened_bytes: int = 32 << 20
    # Batches, records and headers of a field that get a node each: a node takes as much memory as a
    # hundred bytes of records, and nobody scrolls further.
    record_nodes: int = 20_000
    # Expanded records in a tree: half of what one batch may expand to. These bytes, and copies of
    # the keys and values in them, are in memory as long as the tree is shown.
    tree_bytes: int = 32 << 20
    # Levels of compressed message sets. Brokers refuse a second level; it is read nevertheless, for
    # people who examine such bytes.
    message_set_depth: int = 2

    # --- misfits, embedded formats, ZooKeeper

    # A body that is tried with other versions, each of which reads it again; and one that is tried
    # with headers of other versions, which read it twice.
    retried_bytes: int = 1 << 20
    retried_header_bytes: int = 64 << 10
    # JSON in a key or value, and its nesting; longer or deeper JSON is shown as text.
    json_bytes: int = 1 << 20
    json_nesting: int = 64
    # Schema Registry counts ids from 1; a larger number is something else.
    schema_id: int = 1 << 24
    # Expanded client metrics: brokers take 1 MB of them compressed (telemetry.max.bytes).
    metrics_bytes: int = 16 << 20
    # A znode: ZooKeeper's servers take 1 MB (jute.maxbuffer).
    znode_bytes: int = 1 << 20
    # A znode's path whose meaning is remembered; longer ones take a hundred times as much memory.
    znode_path_chars: int = 1_000
    # A setting's name and its value; longer ones are taken for secrets.
    setting_name_chars: int = 512
    setting_value_chars: int = 64 << 10
    # Named values that the grammar lists; larger sets are named only.
    listed_values: int = 8


LIMITS: Final = DissectorLimits()
