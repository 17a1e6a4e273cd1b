"""From where on Spark is faster than the plain engine: a model of what both take, and a sample of
the input. Starts no Spark.

Messages cost more than bytes, and captures hold between a dozen and two thousand exchanges in a
megabyte; so the first part of some files is read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.exchanges.offline import OpenInput
from kafkascope.analyzer.pipeline.places import listed, open_anywhere, size_of
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.inputs.files import Source
from kafkascope.extras import installed

if TYPE_CHECKING:
    from kafkascope.captures.inputs.inflate import ByteStream

# In a megabyte: more hardly fit.
MOST_EXCHANGES: Final = 5000
# Until Spark does something. All of these are measured: benchmarks/README.md, `spark.py`.
START_S: Final = 14
SAMPLED_FILES: Final = 3
# As stored, of each of them: a quarter of a second at most.
SAMPLED_BYTES: Final = 512 << 10


class Costs(NamedTuple):
    """Milliseconds of one core."""

    megabyte: float
    exchange: float

    def of(self, per_megabyte: float) -> float:
        """Return what a megabyte takes that holds so many exchanges."""
        return self.megabyte + self.exchange * per_megabyte


PLAIN: Final = Costs(10, 0.14)
SPARK: Final = Costs(25, 0.2)
"""Divided among cores."""


def worth_spark(cores: int, per_megabyte: float) -> float | None:
    """Return the bytes from which on Spark is faster on so many cores, of input with so many
    exchanges in a megabyte; None: never."""
    saved = PLAIN.of(per_megabyte) - SPARK.of(per_megabyte) / cores
    return START_S * 1e9 / saved if saved > 0 else None


class _Beginning:
    """The first bytes of a stream."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.read = 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        size = self._stream.readinto(buffer[: max(SAMPLED_BYTES - self.read, 0)])
        self.read += size or 0
        return size

    def close(self) -> None:
        self._stream.close()


def exchanges_per_megabyte(names: Sequence[str], decode_as: Sequence[int] = ()) -> float:
    """Return how many exchanges a stored megabyte of the files holds, by the beginnings of the
    first, the last and one in between."""
    last = len(names) - 1
    chosen = {names[last * step // max(SAMPLED_FILES - 1, 1)] for step in range(SAMPLED_FILES)}
    found = size = 0
    for name in sorted(chosen):
        try:
            beginning = _Beginning(open_anywhere(name, 0))
            source = Source([name], None, {0: beginning})
            with OpenInput(source, decode_as=decode_as) as capture:
                found += sum(1 for _ in capture.exchanges())
        except CaptureError:
            # Whoever reads it says so.
            continue
        size += beginning.read
    return found * 1e6 / size if size else 0.0


def engine_for(inputs: Sequence[str], ports: Sequence[int]) -> tuple[str, str]:
    """Return the faster engine for inputs, `plain` or `spark`, and why. `ports`: Kafka's."""
    files = listed(inputs)
    size = sum(map(size_of, files))
    shown = f"{size / 1e6:.0f} MB"
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    # Whatever it holds.
    dense = worth_spark(cores, MOST_EXCHANGES)
    if dense is not None and size < dense:
        return "plain", f"{shown} are read faster than Spark starts"
    held = exchanges_per_megabyte(files, ports)
    least = worth_spark(cores, held)
    shown += f" with about {held:.0f} exchanges in each"
    if least is None:
        return "plain", f"{shown}: on {cores} core{'s' * (cores != 1)} one process is faster"
    if size < least:
        return "plain", f"{shown} are read faster than Spark starts"
    if not installed("spark"):
        return "plain", f"{shown}, but the extra 'spark' is not installed"
    from kafkascope.analyzer.spark.session import NoSpark, check

    try:
        check()
    except NoSpark as error:
        return "plain", str(error)
    return "spark", f"{shown} are worth its start"
