"""Damaged copies of a partition's folder, as disks, crashes and people make them.

Knows a segment only as far as batches can be counted: nothing here is shared with what is tested.
"""

import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

PAGE: Final = 4096
SUFFIXES: Final = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")


def segments(folder: Path) -> list[Path]:
    """Return the segments that hold something, by base offset."""
    return [path for path in sorted(folder.glob("*.log")) if path.stat().st_size]


def starts(data: bytes) -> list[int]:
    """Return where batches, or entries of old message sets, begin."""
    found = []
    at = 0
    while at + 12 <= len(data):
        found.append(at)
        at += 12 + max(0, int(struct.unpack_from(">i", data, at + 8)[0]))
    return found


def _last(folder: Path) -> tuple[Path, bytearray, list[int]]:
    path = segments(folder)[-1]
    data = bytearray(path.read_bytes())
    return path, data, starts(data)


def _flip(folder: Path, byte: int, bit: int, *, which: int = -1, batch: int = -2) -> None:
    """Turn a bit of a batch, the last but one; `byte` counts from its start, or from its end."""
    path = segments(folder)[which]
    data = bytearray(path.read_bytes())
    places = starts(data)
    start, end = list(zip(places, [*places[1:], len(data)], strict=True))[max(batch, -len(places))]
    data[start + byte if byte >= 0 else end + byte] ^= 1 << bit
    path.write_bytes(data)


def _cut(folder: Path, kept: int) -> None:
    """Leave some bytes of the last batch; counted from its end when negative."""
    path, data, places = _last(folder)
    path.write_bytes(data[: places[-1] + kept if kept >= 0 else kept])


def _zeros(folder: Path, begin: float, end: float, which: int = -1) -> None:
    """Put zeros over a part of a segment, from and to shares of its size."""
    path = segments(folder)[which]
    data = bytearray(path.read_bytes())
    one, two = int(len(data) * begin), int(len(data) * end)
    data[one:two] = bytes(two - one)
    path.write_bytes(data)


def _behind(folder: Path, more: bytes) -> None:
    path = segments(folder)[-1]
    path.write_bytes(path.read_bytes() + more)


def _renamed(folder: Path, by: int) -> None:
    stem = segments(folder)[-1].stem
    for suffix in SUFFIXES:
        path = folder / (stem + suffix)
        if path.exists():
            path.rename(folder / (f"{int(stem) + by:020d}" + suffix))


def _remove(folder: Path, which: int) -> None:
    stem = segments(folder)[which].stem
    for suffix in SUFFIXES:
        (folder / (stem + suffix)).unlink(missing_ok=True)


def _index(folder: Path, change: Callable[[bytes], bytes], suffix: str = ".index") -> None:
    path = segments(folder)[-1].with_suffix(suffix)
    if path.exists():
        path.write_bytes(change(path.read_bytes()))


def _twice(folder: Path) -> None:
    path, data, places = _last(folder)
    path.write_bytes(data + data[places[-1] :])


def _swapped(folder: Path) -> None:
    path, data, places = _last(folder)
    one, two = places[-2:]
    path.write_bytes(data[:one] + data[two:] + data[one:two])


DAMAGES: Final[dict[str, Callable[[Path], None]]] = {
    **{f"cut-{kept}": lambda folder, kept=kept: _cut(folder, kept) for kept in (5, 13, 17, 30)},
    "cut-last": lambda folder: _cut(folder, -1),
    "cut-all": lambda folder: segments(folder)[-1].write_bytes(b""),
    "flip-body": lambda folder: _flip(folder, -3, 1),
    "flip-first-segment": lambda folder: _flip(folder, -3, 2, which=0),
    "flip-first-batch": lambda folder: _flip(folder, -3, 2, batch=0),
    "flip-crc": lambda folder: _flip(folder, 17, 0),
    "flip-size": lambda folder: _flip(folder, 10, 4),
    "flip-size-low": lambda folder: _flip(folder, 11, 2),
    "flip-size-sign": lambda folder: _flip(folder, 8, 7),
    "flip-magic": lambda folder: _flip(folder, 16, 2),
    "flip-magic-low": lambda folder: _flip(folder, 16, 0),
    "flip-magic-sign": lambda folder: _flip(folder, 16, 7),
    "flip-offset": lambda folder: _flip(folder, 7, 6),
    "flip-offset-low": lambda folder: _flip(folder, 7, 0),
    "flip-offset-high": lambda folder: _flip(folder, 1, 5),
    "flip-offset-sign": lambda folder: _flip(folder, 0, 7),
    "zeros-inside": lambda folder: _zeros(folder, 0.4, 0.6),
    "zeros-inside-first": lambda folder: _zeros(folder, 0.4, 0.6, 0),
    "zeros-end": lambda folder: _behind(folder, bytes(PAGE)),
    "zeros-end-few": lambda folder: _behind(folder, bytes(9)),
    "zeros-end-cut": lambda folder: _zeros(folder, 0.9, 1),
    "zeros-all": lambda folder: _zeros(folder, 0, 1),
    "garbage-end": lambda folder: _behind(folder, random.Random(1).randbytes(500)),
    "entries-cut": lambda folder: _index(folder, lambda data: data[:-3]),
    "entries-garbage": lambda folder: _index(folder, lambda _: random.Random(2).randbytes(48)),
    "entries-gone": lambda folder: segments(folder)[-1].with_suffix(".index").unlink(),
    "times-garbage": lambda folder: _index(
        folder, lambda _: random.Random(3).randbytes(48), ".timeindex"
    ),
    "name-lower": lambda folder: _renamed(folder, -3),
    "name-higher": lambda folder: _renamed(folder, 3),
    "hole": lambda folder: _remove(folder, len(segments(folder)) // 2),
    "first-gone": lambda folder: _remove(folder, 0),
    "twice": _twice,
    "swapped": _swapped,
}
"""Name -> what it does to the folder of a partition. 0.8.0 takes `.index` in the name of a folder
for a suffix: no name begins so."""


def damaged(folder: Path, into: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name of each damage and a copy of the folder with it, one that differs from the
    original."""
    topic, _, partition = folder.name.rpartition("-")
    for name, change in DAMAGES.items():
        copy = into / f"{topic}.{name}-{partition}"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("partition.metadata"))
        one_segment, one_batch = len(segments(copy)) < 2, len(_last(copy)[2]) < 2
        if (one_segment and name == "first-gone") or (one_batch and name == "swapped"):
            shutil.rmtree(copy)
            continue
        change(copy)
        yield name, copy


def chance(folder: Path, into: Path, seed: int, count: int) -> Iterator[tuple[str, Path]]:
    """Yield copies with damage by chance: one or two bits turned, a stretch of zeros or of noise,
    an end cut off, somewhere in some segment."""
    rng = random.Random(seed)
    topic, _, partition = folder.name.rpartition("-")
    for number in range(count):
        copy = into / f"{topic}.chance-{number}-{partition}"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("partition.metadata"))
        said = []
        for _ in range(rng.choice((1, 1, 2))):
            path = rng.choice(segments(copy) or segments(folder)[:0] or [copy / "none"])
            if not path.exists():
                continue
            data = bytearray(path.read_bytes())
            at = rng.randrange(len(data))
            if rng.random() < 0.5:  # heads of batches are where it is interesting
                at = min(rng.choice(starts(data)) + rng.randrange(40), len(data) - 1)
            kind = rng.choice(("flip", "flip", "flip", "zeros", "noise", "cut"))
            if kind == "flip":
                data[at] ^= 1 << rng.randrange(8)
            elif kind == "cut":
                del data[at:]
            else:
                end = min(len(data), at + rng.randrange(1, 300))
                data[at:end] = bytes(end - at) if kind == "zeros" else rng.randbytes(end - at)
            path.write_bytes(data)
            said.append(f"{kind} {path.name} {at}")
        yield ", ".join(said), copy
