"""Captures as Python objects: `open(...)`, then iterate, or ask for findings and tables.

Every iteration reads the input again, from its start, with memory that does not grow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, TypeAlias

from kafkascope.extras import require
from kafkascope.library.errors import UsageError
from kafkascope.library.exchange import Exchange
from kafkascope.library.finding import Finding, at_least
from kafkascope.library.passes import Passes
from kafkascope.library.record import Record
from kafkascope.library.tables import TABLES, How, Key, OwnName, Table, TableName

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from kafkascope.analyzer.model import Severity
    from kafkascope.analyzer.reading.options import ReadOptions

PathLike: TypeAlias = "str | os.PathLike[str]"
Input: TypeAlias = "PathLike | BinaryIO"
ArrowName: TypeAlias = TableName | OwnName
"""Tables that Arrow, pandas and polars take."""
COPY_BYTES: Final = 1 << 20


def open(
    inputs: Input | Iterable[Input],
    *,
    filter: str = "",
    keylog: PathLike | Iterable[PathLike] = (),
    schemas: PathLike | Iterable[PathLike] = (),
    registry: str | None = None,
    decode_as: Iterable[int] = (),
    both_legs: bool = False,
    secrets: bool = False,
    time_zone: str = "",
) -> Capture:
    """Open captures, or request logs of brokers: a path, a folder of rotated files, several of
    them, a file object, or "-".

    `filter`: a display filter (docs/filter.md) that chooses exchanges. `keylog`: TLS key logs.
    `schemas`, `registry`: where keys and values find their schemas besides the capture itself.
    `decode_as`: ports that carry Kafka, whatever the bytes look like. `both_legs`: of a proxy's
    recording also the connections to the brokers. `secrets`: passwords and tokens stay readable.
    `time_zone`: of request logs (`Europe/Berlin`, `+05:30`); empty: as their containers say, else
    this machine's.

    Raises `CaptureError` for what is no capture, `FilterError` for an invalid filter, and
    `MissingExtra` for `keylog` without the extra `tls`. Damage in a capture raises nothing:
    `damage` describes it.
    """
    if logs := _listed(keylog):
        require("kafkascope.open(keylog)")
    from kafkascope.analyzer.reading.options import ReadOptions, SchemaOptions

    options = ReadOptions(
        (),
        filter_text=filter,
        keylog=tuple(map(os.fspath, logs)),
        ports=frozenset(decode_as),
        quiet=True,
        both_legs=both_legs,
        schemas=SchemaOptions(tuple(map(os.fspath, _listed(schemas))), registry=registry),
        jobs=1,
        zone=time_zone,
    )
    return Capture(_listed(inputs), options, secrets=secrets)


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | os.PathLike) or hasattr(given, "read") else [*given]


class Capture:
    """Captured traffic: iterate for its exchanges. Made by `open`; a context manager, though
    nothing is lost without `with`.

    Several threads may read one capture, each has its own pass; an exchange may be handed to
    another thread. Nothing here waits for a network but `registry`, so asyncio users read in a
    thread: `await asyncio.to_thread(list, capture)`.
    """

    def __init__(self, inputs: list[Input], options: ReadOptions, *, secrets: bool) -> None:
        self.filter = options.filter_text
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        options = replace(options, inputs=tuple(map(self._name, inputs)))
        self.passes = Passes(options, secrets=secrets)
        """After everything here; not for others."""

    def _name(self, given: Input) -> str:
        """Return the path of an input; a file object is copied."""
        if isinstance(given, str | os.PathLike):
            return os.fspath(given)
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="kafkascope-")
            weakref.finalize(self, self._folder.cleanup)
        with tempfile.NamedTemporaryFile(dir=self._folder.name, delete=False) as copy:
            shutil.copyfileobj(given, copy, COPY_BYTES)
        return copy.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what a file object was copied to; reading again is an error then."""
        if self._folder is not None:
            self._folder.cleanup()

    def __repr__(self) -> str:
        chosen = f", filter={self.filter!r}" if self.filter else ""
        return f"<Capture {', '.join(self.passes.names)}{chosen}>"

    # --- exchanges and records

    def __iter__(self) -> Iterator[Exchange]:
        """Yield the exchanges in the order of their numbers; live, as they are complete."""
        return self.exchanges()

    def exchanges(self, filter: str = "") -> Iterator[Exchange]:
        """Yield the exchanges, those that `filter` chooses of them."""
        for read in self.passes.rows(filter):
            yield Exchange(*read)

    def records(self, filter: str = "") -> Iterator[Record]:
        """Yield the records that were produced and fetched, of exchanges that `filter` chooses."""
        for exchange in self.exchanges(filter):
            yield from exchange.records()

    # --- what the whole says

    def findings(self, level: Severity = "chat", *, release: str | None = None) -> list[Finding]:
        """Return the findings of `kafkascope check`: causes, the worst and earliest first, each
        before its consequences. `level`: error, warning, note or chat, the minimum severity.
        `release`: a Kafka release that all clients have to work with."""
        from kafkascope.analyzer.findings import Findings
        from kafkascope.analyzer.findings.causes import unfolded

        wanted = _known(release)
        counted = self.passes.count(
            f"findings{wanted}", made := partial(Findings, release=wanted), made
        )
        findings = unfolded(counted.found.causes(counted.names, counted.whole))
        return [Finding(each) for each in findings if at_least(each.severity, level)]

    def clients(self, release: str | None = None) -> Table:
        """Return who is there, and with `release` whether it works with that Kafka release."""
        return self.table("clients", release=release)

    def groups(self) -> Table:
        """Return the groups, how often they rebalance, and why."""
        return self.table("groups")

    def connections(self) -> Table:
        """Return the connections, whatever they carry."""
        return self.table("connections")

    def map(self) -> Table:
        """Return the map of applications: one line for each topic that one writes, or reads for a
        group, with the client ids that are this application and the rule that joined them."""
        return self.table("map")

    def journeys(self) -> Table:
        """Return how long records take: one line for each producing application, topic and group,
        with percentiles from sending to acknowledgement (`produce_p50`), to the group's first fetch
        (`deliver_p50`), from that to its commit (`commit_p50`), and the group's lag."""
        return self.table("journeys")

    def table(
        self, name: TableName, *, by: Key | Sequence[Key] = (), release: str | None = None
    ) -> Table:
        """Return a table of docs/library.md by name: `latency`, `errors`, `topics`, `leaders`...
        `by`: what a line is for, where `kafkascope stats` has --by: `by=("api", "client")`."""
        wanted = TABLES.get(name)
        if wanted is None:
            known = ", ".join(("exchanges", "records", *TABLES))
            raise UsageError(f"there is no table {name!r}; there are {known}")
        how = How(tuple([by] if isinstance(by, str) else by), _known(release) or None)
        counted = self.passes.count(wanted.counts, wanted.counted, wanted.whole)
        return Table(name, *wanted.lines(counted, how))

    @property
    def damage(self) -> tuple[str, ...]:
        """What is wrong with the files, a sentence each: cut short, unreadable parts. Known once
        the capture was read to its end, which this does if nothing has yet."""
        return self.passes.damage()

    # --- tables of others

    def to_batches(self, table: ArrowName = "exchanges", *, rows: int = 16_384) -> Iterator[Any]:
        """Yield a table as `pyarrow.RecordBatch`es of so many rows, fewer of long ones: `exchanges`
        and `records` as docs/spark.md has them while they are read, all others at once."""
        require("Capture.to_arrow")
        from kafkascope.library import arrow

        if table == "exchanges" or table == "records":
            return arrow.batches_of(self.passes, table, rows)
        return iter(arrow.statistic(self.table(table)).to_batches(rows))

    def to_arrow(self, table: ArrowName = "exchanges") -> pyarrow.Table:
        """Return a table as `pyarrow.Table`: `exchanges`, `records`, or one of `table`."""
        require("Capture.to_arrow")
        from kafkascope.library import arrow

        if table == "exchanges" or table == "records":
            return arrow.whole(self.passes, table)
        return arrow.statistic(self.table(table))

    def to_pandas(self, table: ArrowName = "exchanges") -> pandas.DataFrame:
        """Return the same as `pandas.DataFrame`, where pandas is installed."""
        return self.to_arrow(table).to_pandas()

    def to_polars(self, table: ArrowName = "exchanges") -> polars.DataFrame:
        """Return the same as `polars.DataFrame`, where polars is installed."""
        try:
            import polars
        except ImportError:
            raise UsageError("polars is not installed") from None
        frame: polars.DataFrame = polars.from_arrow(self.to_arrow(table))
        return frame


def _known(release: str | None) -> str:
    """Return a release as findings want it; `UsageError` for one that is none."""
    if release is None:
        return ""
    from kafkascope.dissectors.reference.releases import known_release

    try:
        return known_release(release)
    except ValueError as error:
        raise UsageError(str(error)) from None
