"""Batches of files that a capture daemon has closed. Each batch continues the connections that the
one before left open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.pipeline.job import Engine, Keep, job_of
from kafkascope.analyzer.pipeline.places import fingerprint_of, is_remote, listed, size_of
from kafkascope.analyzer.pipeline.runner import PLAIN, Result, before_of, make
from kafkascope.analyzer.pipeline.store import Store
from kafkascope.captures.errors import CaptureError, NotACapture
from kafkascope.captures.parts.split import SPLIT_BYTES

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions
    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.schemas.known import KnownSchemas

# Bytes of the captures of one batch; the plain engine holds its packets in memory.
BATCH_BYTES: Final = 256 << 20
# Seconds; a file that was written to more recently may still be open.
SETTLE_S: Final = 30.0
POLL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ClosedRule:
    """When a file counts as closed: its folder has a younger file, or it was not written to for
    `settle_s` seconds."""

    settle_s: float = SETTLE_S
    last: bool = False
    """Whether all files count as closed, because no more will come."""


def closed(names: Sequence[str], rule: ClosedRule, now: float) -> list[str]:
    if rule.last:
        return list(names)
    times = {name: _written(name) for name in names}
    youngest: dict[str, float] = {}
    for name, written in times.items():
        folder = name.rpartition("/")[0]
        youngest[folder] = max(written, youngest.get(folder, 0))
    return [
        name
        for name, written in times.items()
        if written < youngest[name.rpartition("/")[0]] or now - written >= rule.settle_s
    ]


def _written(name: str) -> float:
    """Return when a file was last written to; objects of remote stores are complete once they
    exist."""
    return 0.0 if is_remote(name) else Path(name).stat().st_mtime


def catch_up(
    inputs: Sequence[str],
    out: str | Path,
    options: TableOptions,
    rule: ClosedRule,
    *,
    engine: Engine = PLAIN,
    split_bytes: int = SPLIT_BYTES,
    batch_bytes: int = BATCH_BYTES,
    keep: Keep | None = None,
    keys: KeyLog | None = None,
    schemas: KnownSchemas | None = None,
) -> Iterator[Result]:
    """Make batches of all files that are closed and not in a batch yet; with `rule.last` the last
    one ends all connections."""
    store = Store(out)
    with store.locked():
        manifests = store.manifests()
        if manifests and manifests[-1]["keep"] is None:
            raise CaptureError(f"{out} is complete: its last batch ended all connections")
        taken = {
            (file["fingerprint"], file["size_bytes"])
            for manifest in manifests
            for file in manifest["files"]
        }
        new = [
            name
            for name in closed(_listed(inputs), rule, time.time())
            if (fingerprint_of(name).hex(), size_of(name)) not in taken
        ]
        batches = list(_batches(_by_time(new), batch_bytes))
        if rule.last and manifests and not batches:
            batches = [[]]
        for number, names in enumerate(batches, 1):
            before = before_of(store, manifests)
            last = rule.last and number == len(batches)
            job = job_of(
                names,
                options,
                split_bytes=split_bytes,
                engine=engine,
                before=before,
                keep=None if last else keep or Keep(),
                keys=keys,
                schemas=schemas,
            )
            result = make(store, job, engine)
            manifests.append(result.manifest)
            yield result


def _listed(inputs: Sequence[str]) -> list[str]:
    try:
        return listed(inputs)
    except NotACapture:
        return []  # no files yet


def _by_time(names: list[str]) -> list[str]:
    """Return the files in the order of their first packets."""
    from kafkascope.analyzer.pipeline.places import open_anywhere
    from kafkascope.captures.errors import CutShort
    from kafkascope.captures.inputs.files import Source

    def first(name: str) -> int:
        with Source([name], None, {0: open_anywhere(name, 0)}) as source:
            try:
                for block in source.blocks():
                    return next(block.packets()).time_ns
            except CutShort:
                pass
        return 0

    return sorted(names, key=first)


def _batches(names: list[str], size: int) -> Iterator[list[str]]:
    batch: list[str] = []
    filled = 0
    for name in names:
        bytes_ = size_of(name)
        if batch and filled + bytes_ > size:
            yield batch
            batch, filled = [], 0
        batch.append(name)
        filled += bytes_
    if batch:
        yield batch


def follow(catch: Callable[[], Iterator[Result]], report: Callable[[Result], object]) -> None:
    """Call `catch` for new batches at intervals, and `report` for each, without end."""
    while True:
        for result in catch():
            report(result)
        time.sleep(POLL_S)
