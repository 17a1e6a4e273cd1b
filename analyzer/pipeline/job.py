"""What a run is about: its files, each with its index, in the order of their first packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from analyzer.pipeline.collect import Options
from analyzer.pipeline.numbers import MAX_FILES
from analyzer.pipeline.places import fingerprint_of, open_anywhere, size_of
from captures.errors import NotACapture
from captures.split import SPLIT_BYTES, Index, Split, index

LARGE_COMPRESSED: Final = 1 << 30
"""From here on a file that cannot be cut keeps one core busy for long."""


@dataclass(slots=True)
class File:
    """An input file."""

    id: int
    name: str
    size: int
    fingerprint: bytes
    index: Index
    first_frame: int = 1

    @property
    def splits(self) -> list[Split]:
        """Its parts, with the numbers that files and packets have in this run."""
        return [
            replace(each, file=self.id, first=each.first + self.first_frame - 1)
            for each in self.index.splits
        ]

    @property
    def status(self) -> str:
        """One word."""
        if self.index.damage:
            return "damaged"
        return "ok" if self.index.packets else "empty"


@dataclass(slots=True)
class Job:
    """A run over files."""

    files: list[File]
    options: Options
    previous: str = ""
    """The batch before."""

    @property
    def size(self) -> int:
        """Bytes of all files, as stored."""
        return sum(file.size for file in self.files)

    @property
    def packets(self) -> int:
        """Of all files."""
        return sum(file.index.packets for file in self.files)

    def identity(self) -> list[Any]:
        """What the batch's id depends on: everything that changes the rows."""
        files = [
            [file.name.rpartition("/")[2], file.size, file.fingerprint.hex()] for file in self.files
        ]
        return [files, asdict(self.options), self.previous]


Indexer = Callable[[list[str], int], list[Index]]
"""(names, bytes of a part) -> their indexes, in this order."""


def index_all(names: list[str], split_bytes: int) -> list[Index]:
    """Index files one after the other."""
    return [index(name, open_anywhere, split_bytes=split_bytes) for name in names]


def job_of(
    names: Iterable[str],
    options: Options,
    *,
    split_bytes: int = SPLIT_BYTES,
    indexer: Indexer = index_all,
    previous: str = "",
    first_file: int = 0,
    first_frame: int = 1,
) -> Job:
    """Index the files, and put them in order as `open_inputs` does."""
    order = list(names)
    if len(order) > MAX_FILES:
        raise NotACapture(f"{len(order)} files are more than one run takes ({MAX_FILES})")
    indexes = dict(zip(order, indexer(order, split_bytes), strict=True))
    if len(order) > 1:
        order.sort(key=lambda name: indexes[name].first_ns or 0)
    files = []
    for number, name in enumerate(order, first_file):
        file = File(number, name, size_of(name), fingerprint_of(name), indexes[name], first_frame)
        first_frame += file.index.packets
        files.append(file)
    return Job(files, options, previous)


def capture_rows(job: Job) -> list[tuple[Any, ...]]:
    """Rows of `captures`."""
    rows = []
    for file in job.files:
        about = file.index
        note = about.damage
        if about.compressed and file.size >= LARGE_COMPRESSED:
            note = note or "compressed: read by one task"
        rows.append(
            (
                file.id,
                file.name,
                file.fingerprint.hex(),
                about.format,
                sorted({each.link_type for each in about.interfaces}),
                file.size,
                about.packets,
                file.first_frame,
                about.first_ns,
                about.last_ns,
                about.dropped,
                file.status,
                note or None,
            )
        )
    return rows


def split_rows(job: Job) -> list[tuple[Any, ...]]:
    """Rows of `splits`."""
    return [
        (
            split.file,
            split.number,
            split.start,
            -1 if split.end is None else split.end,
            split.packets,
            split.first,
            "big" if split.order == ">" else "little",
            split.section,
            [
                (
                    each.number,
                    each.link_type,
                    each.name,
                    each.comment,
                    each.snaplen,
                    str(each.multiplier),
                    str(each.divisor),
                    each.offset_s,
                )
                for each in split.interfaces
            ],
        )
        for file in job.files
        for split in file.splits
    ]


def damage_rows(job: Job) -> list[tuple[Any, ...]]:
    """Rows of `diagnostics` about damaged files."""
    return [
        (
            file.index.last_ns,
            "read",
            "error",
            "damaged",
            file.index.damage,
            file.id,
            file.index.damage_at,
            None,
            None,
            None,
            None,
        )
        for file in job.files
        if file.index.damage
    ]
