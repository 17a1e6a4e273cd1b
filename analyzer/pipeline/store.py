"""The output folder: batches of tables, and manifests that list the valid ones.

    OUT/_manifest/<batch>.json             written last, by rename
    OUT/<table>/batch_id=<batch>/*.parquet
    OUT/_staging/<batch>/                  while it is made
    OUT/_lock                              held while a batch is made

Batches without a manifest are invalid, and the next run removes them. A manifest names the batches
that it replaces: they are valid until it exists, so that a reader never finds a folder without
tables.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from kafkascope.analyzer.pipeline.tables.schemas import CARRY, TABLES, VERSION
from kafkascope.captures.errors import CaptureError
from kafkascope.dissectors.codec.jsonform import dumps, dumps_indented, loads

MANIFEST: Final = "_manifest"
STAGING: Final = "_staging"
LOCK: Final = "_lock"


class InUse(CaptureError):
    """Another run writes to the folder."""


def batch_id(*parts: Any) -> str:
    """Return the name of a batch: equal for equal input, options and predecessor."""
    return blake2b(dumps([VERSION, *parts]), digest_size=8).hexdigest()


class Store:
    """An output folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for writing; `InUse` when another run holds the lock. A killed run holds
        no lock. What fails before it writes anything leaves no folder."""
        existed = self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        lock = self.path / LOCK
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A run that failed may have removed the file in between: then the lock is on
                # another.
                locked = os.fstat(file.fileno()).st_ino == lock.stat().st_ino
            except OSError:
                locked = False
            if not locked:
                raise InUse(f"{self.path}: another run is writing there")
            try:
                yield
            except BaseException:
                if {path.name for path in self.path.iterdir()} == {LOCK}:
                    lock.unlink()
                    if not existed:
                        self.path.rmdir()
                raise

    def manifests(self) -> list[dict[str, Any]]:
        """Return the manifests of all valid batches, in order."""
        all_ = []
        for path in sorted((self.path / MANIFEST).glob("*.json")):
            manifest = loads(path.read_bytes())
            if manifest["schema_version"] > VERSION:
                raise CaptureError(f"{path} was written by a newer kafkascope")
            all_.append(manifest)
        replaced = {batch for manifest in all_ for batch in manifest.get("replaces", ())}
        # Each names the one before: batches after a missing one are not valid.
        by_previous = {
            manifest["previous"]: manifest
            for manifest in all_
            if manifest["batch_id"] not in replaced
        }
        out: list[dict[str, Any]] = []
        last = ""
        while last in by_previous:
            out.append(by_previous.pop(last))
            last = out[-1]["batch_id"]
        return out

    def name(self, *parts: Any) -> str:
        """Return the name of a new batch. Names of replaced batches are taken as well: their
        folders exist until the new manifest does."""
        manifests = self.manifests()
        taken = {manifest["batch_id"] for manifest in manifests}
        taken.update(batch for manifest in manifests for batch in manifest.get("replaces", ()))
        for again in itertools.count():
            batch = batch_id(*parts, again) if again else batch_id(*parts)
            if batch not in taken:
                break
        return batch

    def begin(self, batch: str) -> Path:
        """Return an empty folder to make the batch in; removes remains of killed runs."""
        shutil.rmtree(self.path / STAGING, ignore_errors=True)
        self._sweep()
        staging = self.path / STAGING / batch
        staging.mkdir(parents=True)
        return staging

    def discard(self) -> None:
        """Remove the tables of a failed run."""
        shutil.rmtree(self.path / STAGING, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove batches that are not valid."""
        valid = {manifest["batch_id"] for manifest in self.manifests()}
        for path in (self.path / MANIFEST).glob("*"):
            if path.stem not in valid or path.suffix != ".json":
                path.unlink()
        for name in (*TABLES, CARRY.name):
            for old in (self.path / name).glob("batch_id=*"):
                if old.name.partition("=")[2] not in valid:
                    shutil.rmtree(old)
            with suppress(OSError):  # not empty: a batch has the table
                (self.path / name).rmdir()

    def commit(self, batch: str, made: Path, manifest: dict[str, Any]) -> None:
        """Move the tables in `made` to their folders, then write the manifest."""
        names = self.path / MANIFEST
        names.mkdir(exist_ok=True)
        final = names / f"{batch}.json"
        for name in (*TABLES, CARRY.name):
            folder = self.path / name / f"batch_id={batch}"
            shutil.rmtree(folder, ignore_errors=True)
            if (made / name).is_dir():
                folder.parent.mkdir(exist_ok=True)
                (made / name).rename(folder)
        text = dumps_indented(manifest)
        temporary = names / f"{batch}.new"
        with temporary.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(final)
        self._sweep()
        shutil.rmtree(self.path / STAGING, ignore_errors=True)

    def files(self, table: str, batch: str) -> list[Path]:
        return sorted((self.path / table / f"batch_id={batch}").glob("*.parquet"))
