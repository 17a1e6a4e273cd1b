"""Which thread each partition belongs to, as consumers of 0.8 compute it for themselves: by range,
or, since 0.8.2, by round robin (`kafka.consumer.PartitionAssignor`). Stateless.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from itertools import islice
from typing import Final, TypeAlias

MOST_THREADS: Final = 10_000
"""Of a group for one topic; what more have is not held against anything."""

Part: TypeAlias = tuple[str, int]
"""Topic and partition."""


def ranges(
    subscriptions: Mapping[str, Mapping[str, int]], partitions: Mapping[str, int]
) -> dict[Part, str]:
    """Return the thread that each partition belongs to, as consumers of 0.8 compute it."""
    found: dict[Part, str] = {}
    for topic, count in partitions.items():
        threads = sorted(
            islice(
                (
                    f"{member}-{number}"
                    for member, topics in subscriptions.items()
                    for number in range(topics.get(topic, 0))
                ),
                MOST_THREADS + 1,
            )
        )
        if not threads or len(threads) > MOST_THREADS:
            continue
        each, more = divmod(count, len(threads))
        for at, thread in enumerate(threads):
            begin = each * at + min(at, more)
            for partition in range(begin, begin + each + (at < more)):
                found[topic, partition] = thread
    return found


def round_robin(
    subscriptions: Mapping[str, Mapping[str, int]], partitions: Mapping[str, int]
) -> dict[Part, str]:
    """Return the thread that each partition belongs to, by the other assignor (since 0.8.2): all
    partitions in the order of the hashes of their names, one after the other to all threads. Empty
    where members are not alike, which it refuses."""
    alike = list(subscriptions.values())
    if not alike or any(each != alike[0] for each in alike) or len(set(alike[0].values())) != 1:
        return {}
    (streams,) = set(alike[0].values())
    threads = sorted(f"{member}-{number}" for member in subscriptions for number in range(streams))
    parts = [(topic, number) for topic, count in partitions.items() for number in range(count)]
    parts.sort(key=lambda part: _hash(f"[{part[0]},{part[1]}]"))
    return dict(zip(parts, itertools.cycle(threads), strict=False)) if threads else {}


def _hash(text: str) -> int:
    """Return the hash that Java gives a text."""
    found = 0
    for unit in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit[0]) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found
