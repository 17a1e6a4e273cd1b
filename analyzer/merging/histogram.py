"""Counts of durations or sizes on a logarithmic scale: percentiles in bounded memory, mergeable.

Each power of two has 32 buckets, so a percentile is at most 1/32 above the true value, and never
above the largest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kafkascope.analyzer.merging import measures
from kafkascope.analyzer.merging.measures import Measures
from kafkascope.kernel.groups import tally

# HdrHistogram's scale: within a power of two buckets are equally wide. Five bits are an error of
# 3 %, and numbers of 64 bits have at most 1,920 buckets.
SUB_BITS: Final = 5


def bucket_of(value: int) -> int:
    """Return the number of the bucket that holds a value, which is 0 or more."""
    shift = max(0, value.bit_length() - SUB_BITS - 1)
    return (shift << SUB_BITS) + (value >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    shift = max(0, (bucket >> SUB_BITS) - 1)
    low = bucket - (shift << SUB_BITS)
    return low << shift, ((low + 1) << shift) - 1


class Histogram(Measures):
    """How many values there were of each size."""

    buckets: dict[int, int] = measures.counts()
    total: int = measures.total()
    least: int | None = measures.least()
    most: int | None = measures.most()

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    def add_all(self, values: Sequence[int | None], times: int = 1) -> None:
        """Count values so many times each, but for None; negative ones (clocks that went back)
        count as 0."""
        found = tally(values, times, self.buckets)
        if found is not None:
            sum_, low, high = found
            self.total += sum_
            self.least = low if self.least is None or low < self.least else self.least
            self.most = high if self.most is None or high > self.most else self.most

    def add_counts(self, counts: Mapping[Any, int]) -> None:
        """Do the same with values that were counted: value -> how often."""
        for value, count in counts.items():
            self.add_all((value,), count)

    def percentile(self, share: float) -> int | None:
        """Return the value that this share of all values does not exceed; None when there are
        none."""
        if self.most is None:
            return None
        wanted, seen = share * self.count, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                return min(bounds_of(bucket)[1], self.most)
        return self.most

    def summary(self, prefix: str = "", percents: Iterable[int] = (50, 95, 99)) -> dict[str, Any]:
        """Return percentiles and the largest value by the names of their columns: `p50`, `max`."""
        found = {f"{prefix}p{each}": self.percentile(each / 100) for each in percents}
        return {**found, f"{prefix}max": self.most}
