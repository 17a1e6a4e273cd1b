"""One run: lists and indexes the inputs, makes the tables with an engine, and commits them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from errno import ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow.parquet as pq

from kafkascope.analyzer.pipeline import plain
from kafkascope.analyzer.pipeline.job import Before, Engine, File, Job, Parts, job_of
from kafkascope.analyzer.pipeline.places import fingerprint_of, listed, size_of
from kafkascope.analyzer.pipeline.store import Store
from kafkascope.analyzer.pipeline.tables.logs import LOG_TABLES, Wanted, log_rows, segments_of
from kafkascope.analyzer.pipeline.tables.schemas import CARRY, TABLES, VERSION
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.limits import CaptureLimits
from kafkascope.captures.parts.split import SPLIT_BYTES, Index
from kafkascope.dissectors.values import Uuid
from kafkascope.release import release

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.model import RecoveryVerdict
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions
    from kafkascope.analyzer.pipeline.tables.facts import TableFacts
    from kafkascope.captures.inputs.order import Order
    from kafkascope.captures.tls.keys.keylog import KeyLog
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.known import KnownSchemas


PLAIN: Final = plain.Plain()
Used: TypeAlias = Literal["refuse", "append", "replace"]
"""What a run does if the folder has tables."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run."""

    manifest: dict[str, Any]
    damage: list[str]
    order: Order | None = None
    """The order of the packets where files hold the same ones."""
    of_logs: bool = False
    """Whether lines of request logs were read in place of packets."""


def run(
    inputs: Sequence[str],
    out: str | Path,
    options: TableOptions,
    *,
    engine: Engine = PLAIN,
    split_bytes: int = SPLIT_BYTES,
    keys: KeyLog | None = None,
    schemas: KnownSchemas | None = None,
    used: Used = "refuse",
    limits: CaptureLimits = CAPTURE_LIMITS,
) -> Result:
    """Write the tables of the inputs to the folder `out`. `used`: what to do if it has tables."""
    names = listed(inputs)

    def job_after(before: Before) -> Job:
        job = job_of(
            names,
            options,
            split_bytes=split_bytes,
            engine=engine,
            before=before,
            keys=keys,
            schemas=schemas,
            limits=limits,
        )
        known = {*zip(before.fingerprints, before.sizes, strict=True)}
        again = [file.name for file in job.files if (file.fingerprint, file.size) in known]
        if again:
            raise CaptureError(f"{out} already contains the tables of {again[0]}")
        return job

    return _run(out, used, engine, job_after)


def run_logs(
    files: Sequence[AtRest],
    out: str | Path,
    options: TableOptions,
    wanted: Wanted,
    payloads: Payloads | None = None,
    used: Used = "refuse",
) -> Result:
    """Write the tables `records` and `record_batches` of Kafka's own files to the folder `out`;
    other tables are empty."""

    def job_after(before: Before) -> Job:
        inputs = [
            File(number, path, size_of(path), fingerprint_of(path), Index(path, "log"))
            for number, path in enumerate(segments_of(files), before.files)
        ]
        return Job(inputs, options, before)

    return _run(out, used, _Logs(files, wanted, payloads), job_after)


def _run(out: str | Path, used: Used, engine: Engine, job_after: Callable[[Before], Job]) -> Result:
    """Make one more batch in a folder. `job_after`: returns the job, given the earlier batches."""
    store = Store(out)
    with store.locked():
        manifests = store.manifests()
        check_use(out, manifests, used)
        job = job_after(before_of(store, manifests) if used == "append" else Before())
        replaced = [old["batch_id"] for old in manifests] if used == "replace" else []
        return make(store, job, engine, replaced)


class _Logs(Engine):
    """An engine that reads Kafka's own files in one process."""

    def __init__(self, files: Sequence[AtRest], wanted: Wanted, payloads: Payloads | None) -> None:
        self._files = files
        self._wanted = wanted
        self._payloads = payloads

    def rows(self, job: Job, earlier: TableFacts | None, folder: Path) -> Parts:
        """Make the rows of records and batches."""
        indexes = iter([file.index for file in job.files])

        def record_damage(verdict: RecoveryVerdict) -> None:
            next(indexes).damage = verdict.problem and f"{verdict.file}: {verdict.problem}"

        writers = plain.Writers(folder, compression=plain.QUICK)
        for file in self._files:
            for table, batch in log_rows(
                file, LOG_TABLES, self._wanted, self._payloads, record_damage
            ):
                writers.write(table, batch)
        return plain.together([writers.close()])


def check_use(out: str | Path, manifests: Sequence[dict[str, Any]], used: Used) -> None:
    """Raise `CaptureError` if the folder has tables that this run must not change."""
    if manifests and manifests[-1]["keep"] is not None:
        raise CaptureError(f"{out} was written with --follow: continue with --follow")
    if manifests and used == "refuse":
        files = sum(len(manifest["files"]) for manifest in manifests)
        raise CaptureError(
            f"{out} has the tables of {files} file{'s' * (files != 1)}: add to them with --append, "
            "or replace them with --replace"
        )


def before_of(store: Store, manifests: Sequence[dict[str, Any]]) -> Before:
    before = Before()
    for manifest in manifests:
        before.batch = manifest["batch_id"]
        before.files += len(manifest["files"])
        before.packets += manifest["packets"]
        before.exchanges += manifest["exchanges"]
        before.connections += manifest["connections"]
        # Missing in manifests of versions that did not keep states of connections.
        before.last_ns = max(before.last_ns, manifest.get("last_ns", 0))
        before.fingerprints += [bytes.fromhex(f["fingerprint"]) for f in manifest["files"]]
        before.sizes += [f["size_bytes"] for f in manifest["files"]]
        for path in store.files("topic_names", before.batch):
            for row in pq.ParquetFile(path).read().to_pylist():
                before.topics[Uuid.parse(row["topic_id"])] = row["topic"]
    if before.batch:
        for path in store.files(CARRY.name, before.batch):
            before.carried += pq.ParquetFile(path).read().to_pylist()
    return before


def make(store: Store, job: Job, engine: Engine, replaces: Sequence[str] = ()) -> Result:
    """Make and commit the batch of a job; `replaces`: ids of the batches that it replaces."""
    batch = store.name(job.identity())
    staging = store.begin(batch)
    try:
        made, facts = plain.run(job, staging, engine)
        manifest = manifest_of(job, facts, batch, made, engine.name) | {"replaces": list(replaces)}
        store.commit(batch, made, manifest)
    except OSError as error:
        store.discard()
        if error.errno == ENOSPC:
            raise CaptureError(f"no space left on the disk of {store.path}") from None
        raise
    except Exception:
        store.discard()
        raise
    damage = [file.index.damage for file in job.files if file.index.damage]
    return Result(manifest, damage, job.order, job.of_logs)


def manifest_of(job: Job, facts: TableFacts, batch: str, made: Path, engine: str) -> dict[str, Any]:
    first = [file.index.first_ns for file in job.files if file.index.first_ns is not None]
    return {
        "schema": "batch/1",
        "batch_id": batch,
        "previous": job.before.batch,
        "schema_version": VERSION,
        "kafkascope": release(),
        "engine": engine,
        "options": job.options.to_json(),
        "keep": None if job.keep is None else asdict(job.keep),
        "files": [
            {
                "file_id": file.id,
                "path": file.name,
                "size_bytes": file.size,
                "fingerprint": file.fingerprint.hex(),
                "packets": file.index.packets,
                "first_frame": file.first_frame,
                "damage": file.index.damage,
            }
            for file in job.files
        ],
        "packets": job.packets,
        "dropped": sum(file.index.dropped for file in job.files),
        "first_ns": min(first, default=None),
        "last_ns": job.last_ns,
        "exchanges": facts.exchanges,
        "skipped_bytes": facts.skipped_bytes,
        "opaque": dict(facts.opaque),
        "left_out": sorted(facts.left_out),
        "connections": _opened(job, made),
        "carried": _rows(made / CARRY.name),
        "rows": {name: _rows(made / name) for name in TABLES},
    }


def _opened(job: Job, made: Path) -> int:
    """Return the count of connections that began in this batch: ended ones, and carried ones."""
    ranks = [np.zeros(0, np.int64)]
    for path in (made / "connections").glob("*.parquet"):
        ranks.append(pq.read_table(path, columns=["connection"]).column(0).to_numpy())
    for path in (made / CARRY.name).glob("*.parquet"):
        for of_shard in pq.read_table(path, columns=["ranks"]).column(0):
            ranks.append(of_shard.values.to_numpy())
    unique = np.unique(np.concatenate(ranks))
    return int((unique >= job.before.connections).sum())


def _rows(folder: Path) -> int:
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
