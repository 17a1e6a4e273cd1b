"""From where on Spark is faster than the plain engine: a model of what both take, and a sample of
the input. Starts no Spark.

Messages cost more than bytes, and captures hold between a dozen and two thousand exchanges in a
megabyte; so the first part of some files is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.exchanges.offline import Capture
from kafkascope.analyzer.pipeline.places import open_anywhere
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.inputs.files import Source

if TYPE_CHECKING:
    from kafkascope.captures.inputs.inflate import Stream

START_S: Final = 14
"""Until Spark does something. All of these are measured: benchmarks/README.md, `spark.py`."""
SAMPLED_FILES: Final = 3
SAMPLED_BYTES: Final = 512 << 10
"""As stored, of each of them: a quarter of a second at most."""


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

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.read = 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read the next bytes; return 0 at the end."""
        size = self._stream.readinto(buffer[: max(SAMPLED_BYTES - self.read, 0)])
        self.read += size or 0
        return size

    def close(self) -> None:
        """Close the stream."""
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
            with Capture(source, decode_as=decode_as) as capture:
                found += sum(1 for _ in capture.exchanges())
        except CaptureError:
            # Whoever reads it says so.
            continue
        size += beginning.read
    return found * 1e6 / size if size else 0.0
