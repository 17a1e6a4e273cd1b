"""The job of a run: its files, each with its index, in the order of their first packets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from kafkascope.analyzer.pipeline.places import fingerprint_of, open_anywhere, size_of
from kafkascope.analyzer.pipeline.tables.collect import TableOptions
from kafkascope.analyzer.pipeline.tables.facts import TableFacts, identity_of
from kafkascope.captures.errors import NotACapture
from kafkascope.captures.formats.records import skipped_bytes
from kafkascope.captures.formats.text import TEXT
from kafkascope.captures.inputs.order import Order
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.limits import CaptureLimits
from kafkascope.captures.merge.groups import Sketch, size_of_samples, sketch_of
from kafkascope.captures.merge.inputs import order_of
from kafkascope.captures.parts.split import SPLIT_BYTES, Index, Split, index

if TYPE_CHECKING:
    from pathlib import Path

    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.schemas.known import KnownSchemas

Parts: TypeAlias = "Mapping[str, Sequence[Path]]"
"""Files with rows, by table."""
T = TypeVar("T")
R = TypeVar("R")

# Size from which on a compressed file gets a note: it cannot be split, and one task reads it for
# long.
LARGE_COMPRESSED: Final = 1 << 30


@dataclass(slots=True)
class File:
    """An input file."""

    id: int
    name: str
    size: int
    fingerprint: bytes
    index: Index
    first_frame: int = 1
    """Number of the first packet that is read."""
    pieces: list[tuple[int, int, int]] | None = None
    """Packets that are read, as in `Order.pieces`; None: all."""
    shift_ns: int = 0
    """Shift that is added to its times."""
    latest_ns: int | None = None
    """Latest time of the packets that are read, if `pieces` selects some."""

    @property
    def splits(self) -> list[Split]:
        """Parts of the file, with the numbers of files and packets in this run."""
        if self.pieces is None:
            return [
                replace(split, file=self.id, first=split.first + self.first_frame - 1)
                for split in self.index.splits
            ]
        begins = [first for first, _, _ in self.pieces]
        parts = []
        for split in self.index.splits:
            begin = split.first - 1
            low = max(bisect_right(begins, begin) - 1, 0)
            pieces = tuple(self.pieces[low : bisect_left(begins, begin + split.packets)])
            parts.append(replace(split, file=self.id, pieces=pieces, shift_ns=self.shift_ns))
        return parts

    @property
    def last_ns(self) -> int | None:
        if self.pieces is None:
            return self.index.last_ns
        return self.latest_ns


@dataclass(frozen=True, slots=True)
class Keep:
    """Rule for the connections that continue in the next batch."""

    idle_ns: int = 900_000_000_000
    """Connections without packets for longer are over."""
    linger_ns: int = 60_000_000_000
    """Time after the end of a connection during which late packets belong to it."""


@dataclass(slots=True)
class Before:
    """State left by the previous batches."""

    batch: str = ""
    files: int = 0
    packets: int = 0
    exchanges: int = 0
    connections: int = 0
    last_ns: int = 0
    """Time of the latest packet."""
    fingerprints: list[bytes] = field(default_factory=list)
    """Fingerprints by file."""
    sizes: list[int] = field(default_factory=list)
    """Bytes by file: a part of a capture may begin with the same packet."""
    topics: dict[bytes, str] = field(default_factory=dict)
    carried: list[dict[str, Any]] = field(default_factory=list)
    """Rows of `_carry` in the last batch."""

    @property
    def ranks(self) -> dict[int, int]:
        """Numbers of the carried connections, by their places."""
        return {
            place: rank
            for row in self.carried
            for place, rank in zip(row["places"], row["ranks"], strict=True)
        }


@dataclass(slots=True)
class Job:
    """A run over files."""

    files: list[File]
    options: TableOptions
    before: Before = field(default_factory=Before)
    keep: Keep | None = None
    """How long open connections continue in later batches; None ends them with the input."""
    keys: KeyLog | None = field(default=None, repr=False)
    """Key log for TLS, besides the secrets in the files."""
    schemas: KnownSchemas | None = field(default=None, repr=False)
    """Schemas of keys and values; grows while tasks report missing ids."""
    order: Order | None = None
    """The order of the packets where files hold the same ones."""
    given: list[Any] = field(default_factory=list)
    """Identity of the user's schemas: part of the batch's id."""
    limits: CaptureLimits = CAPTURE_LIMITS

    @property
    def of_logs(self) -> bool:
        """Whether its files are request logs of brokers."""
        return bool(self.files) and self.files[0].index.format == TEXT

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def packets(self) -> int:
        return sum(file.index.packets for file in self.files)

    @property
    def by_hosts(self) -> bool:
        """Whether a shard is all connections between two hosts, not one connection: TLS connections
        resume each other's sessions, and a later batch of `--follow` may bring a key log."""
        inside = any(file.index.secrets for file in self.files)
        following = self.keep is not None or bool(self.before.carried)
        return following or self.keys is not None or inside

    def identity(self) -> list[Any]:
        """Return everything that changes the rows: the batch's id depends on it."""
        files = [
            [file.name.rpartition("/")[2], file.size, file.fingerprint.hex()] for file in self.files
        ]
        keep = None if self.keep is None else asdict(self.keep)
        parts = [files, self.options.to_json(), self.before.batch, keep, *self.given]
        return parts if self.keys is None else [*parts, self.keys.identity()]

    @property
    def last_ns(self) -> int:
        return max(self.before.last_ns, *(file.last_ns or 0 for file in self.files), 0)


class Engine:
    """Makes the rows of a job: `plain.Plain` in this process, `spark.engine.Spark` in others."""

    name = "plain"
    few: int | None = None
    """Up to this many rows one process finishes the tables, because starting others would take
    longer; None: always."""

    def rows(self, job: Job, earlier: TableFacts | None, folder: Path) -> Parts:
        """Make the rows of all tables, and the facts, in files below a folder. `earlier`: facts of
        the previous round."""
        raise NotImplementedError

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the result of `work` for each item, in order. Items may be processed on other
        machines."""
        return list(map(work, items))

    def index(self, names: list[str], split_bytes: int) -> list[Index]:
        """Return the indexes of files, in order; `split_bytes`: of a part."""
        return [index(name, open_anywhere, split_bytes=split_bytes) for name in names]

    def sketch(self, names: list[str], count: int) -> list[Sketch]:
        """Return samples of files, in order; `count`: the size of a sample."""
        return [sketch_of(name, count, open_anywhere(name, 0)) for name in names]


def job_of(
    names: Iterable[str],
    options: TableOptions,
    *,
    split_bytes: int = SPLIT_BYTES,
    engine: Engine | None = None,
    before: Before | None = None,
    keep: Keep | None = None,
    keys: KeyLog | None = None,
    schemas: KnownSchemas | None = None,
    limits: CaptureLimits = CAPTURE_LIMITS,
) -> Job:
    """Index the files, and order them as `open_inputs` does."""
    order, engine = list(names), engine or Engine()
    indexes = dict(zip(order, engine.index(order, split_bytes), strict=True))
    texts = sum(each.format == TEXT for each in indexes.values())
    if 0 < texts < len(indexes):
        raise NotACapture("convert captures and request logs to tables in separate runs")
    if len(order) > 1:
        order.sort(key=lambda name: indexes[name].first_ns or 0)
    before = before or Before()
    first_frame = before.packets + 1
    files = []
    secrets: dict[bytes, None] = {}
    for number, name in enumerate(order, before.files):
        # Each rotated file may have the whole key log: blocks of earlier files are dropped.
        own = indexes[name].secrets
        indexes[name].secrets = [(kind, data) for kind, data in own if data not in secrets]
        secrets.update(dict.fromkeys(data for _, data in own))
        file = File(number, name, size_of(name), fingerprint_of(name), indexes[name], first_frame)
        if file.index.pieces is not None:
            file.latest_ns = file.index.last_ns
            file.pieces = [
                (first, count, frame + first_frame - 1) for first, count, frame in file.index.pieces
            ]
        first_frame += file.index.packets
        files.append(file)
    packets = None
    if len(order) > 1 and not texts:
        sketches = engine.sketch(order, size_of_samples(len(order)))
        packets = order_of(order, sketches, lambda name: open_anywhere(name, 0))
    if packets is not None:
        _put_in_order(files, packets, before.packets)
    given = [] if schemas is None else identity_of(schemas)
    return Job(files, options, before, keep, keys, schemas, packets, given, limits)


def _put_in_order(files: list[File], order: Order, before: int) -> None:
    """Set which packets of the files are read, after the packets of batches `before`."""
    pieces = order.pieces([file.index.packets for file in files])
    for number, (file, of_file) in enumerate(zip(files, pieces, strict=True)):
        file.pieces = [(first, count, frame + before) for first, count, frame in of_file]
        file.first_frame = min((frame for _, _, frame in file.pieces), default=0)
        file.shift_ns = order.shifts[number]
        shared = number in order.lasts or not of_file
        file.latest_ns = order.lasts.get(number) if shared else file.index.last_ns


def capture_rows(job: Job) -> list[tuple[Any, ...]]:
    shared = {} if job.order is None else {each.file: each for each in job.order.shared}
    base = job.before.files
    rows = []
    for file in job.files:
        about = file.index
        each = shared.get(file.id - base)
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
                "damaged" if about.damage else "ok" if about.packets else "empty",
                note or None,
                *((each.of + base, each.own, each.ahead_ns) if each else (None, None, None)),
            )
        )
    return rows


def split_rows(job: Job) -> list[tuple[Any, ...]]:
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
    """Return rows of `diagnostics` about damaged files, one per damaged place."""
    rows: list[tuple[Any, ...]] = []
    for file in job.files:
        damaged = file.index
        places: list[tuple[str, int | None, int | None]] = [
            (gap.reason, gap.at, skipped_bytes([gap]) if gap.resume is not None else None)
            for gap in damaged.gaps
        ]
        if len(places) == 1:
            # The message of the file names the place, too.
            places = [(damaged.damage, *places[0][1:])]
        elif damaged.damage and not places:
            places = [(damaged.damage, damaged.damage_at, None)]
        for reason, offset, skipped in places:
            columns = ("read", "error", "damaged", reason)
            ts = None if damaged.last_ns is None else damaged.last_ns // 1000
            rows.append((ts, damaged.last_ns, *columns, file.id, offset, None, None, None, skipped))
    return rows
