"""Counts of durations or sizes on a logarithmic scale: percentiles in bounded memory, mergeable.

Each power of two has 32 buckets, so a percentile is at most 1/32 above the true value, and never
above the largest one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Self

SUB_BITS: Final = 5


def bucket_of(value: int) -> int:
    """Return the number of the bucket that holds a value, which is 0 or more."""
    shift = max(0, value.bit_length() - SUB_BITS - 1)
    return (shift << SUB_BITS) + (value >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    """Return the smallest and the largest value of a bucket."""
    shift = max(0, (bucket >> SUB_BITS) - 1)
    low = bucket - (shift << SUB_BITS)
    return low << shift, ((low + 1) << shift) - 1


class Histogram:
    """How many values there were of each size."""

    __slots__ = ("buckets", "least", "most", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.total = 0
        self.least: int | None = None
        self.most: int | None = None

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.buckets.values())

    def add(self, value: int) -> None:
        """Count a value; negative ones (clocks that went back) count as 0."""
        if value < 0:
            value = 0
        # As `bucket_of`: this is done some ten times for each exchange.
        shift = value.bit_length() - SUB_BITS - 1
        bucket = (shift << SUB_BITS) + (value >> shift) if shift > 0 else value
        try:
            self.buckets[bucket] += 1
        except KeyError:
            self.buckets[bucket] = 1
        self.total += value
        least, most = self.least, self.most
        if least is None or most is None:
            self.least = self.most = value
        elif value > most:
            self.most = value
        elif value < least:
            self.least = value

    def add_all(self, values: Iterable[int]) -> None:
        """Count values."""
        counts = Counter(values)
        if not counts:
            return
        if min(counts) < 0:
            counts[0] += sum(counts.pop(value) for value in [each for each in counts if each < 0])
        buckets = self.buckets
        sum_ = 0
        for value, count in counts.items():
            shift = value.bit_length() - SUB_BITS - 1
            bucket = (shift << SUB_BITS) + (value >> shift) if shift > 0 else value
            sum_ += value * count
            if bucket in buckets:
                buckets[bucket] += count
            else:
                buckets[bucket] = count
        self.total += sum_
        self._reach(min(counts))
        self._reach(max(counts))

    def _reach(self, value: int) -> None:
        self.least = value if self.least is None else min(self.least, value)
        self.most = value if self.most is None else max(self.most, value)

    def merge(self, other: Histogram) -> None:
        """Count what the other one counted."""
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.total += other.total
        for value in (other.least, other.most):
            if value is not None:
                self._reach(value)

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

    def powers(self) -> dict[int, int]:
        """Return, by power of two, how many values are below it and not below the one before:
        bars."""
        found: dict[int, int] = {}
        for bucket in sorted(self.buckets):
            power = bounds_of(bucket)[1].bit_length()
            found[power] = found.get(power, 0) + self.buckets[bucket]
        return found

    def dump(self) -> list[Any]:
        """Return the state as JSON."""
        pairs = [each for pair in sorted(self.buckets.items()) for each in pair]
        return [self.total, self.least, self.most, pairs]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        self.total, self.least, self.most, pairs = state
        self.buckets = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return self
