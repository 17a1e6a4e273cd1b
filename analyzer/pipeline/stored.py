"""Tables in the place of captures: commands that count take the stored states of statistics, and
the captures are never read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.pipeline.store import Store
from kafkascope.captures.errors import CaptureError, CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.dissectors.codec.jsonform import loads

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session
    from kafkascope.captures.model import Closed, Opened, Resolved


class OnlyTables(CaptureError):
    """Something that only captures can tell was asked of tables."""


class Stored:
    """Stands in for `analyzer.offline.Capture` where commands count."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._store = Store(path)
        self._manifests = self._store.manifests()
        if not self._manifests:
            raise CaptureError(f"{path} holds no batch that is complete")
        self.context = Context()
        self.source = Source([])
        self.watch: Callable[[Opened | Closed], None] | None = None
        self.named: Callable[[Resolved], None] | None = None
        self.damage: CutShort | None = None
        self.first_ns = min((m["first_ns"] for m in self._manifests if m["first_ns"]), default=0)
        self.exchanges_told = 0
        self._states: dict[str, list[Any]] | None = None
        self._sum_up()

    def _sum_up(self) -> None:
        context, statistics = self.context, self.source.statistics
        for manifest in self._manifests:
            context.numbers += manifest["exchanges"]
            context.skipped_bytes += manifest["skipped_bytes"]
            context.opaque.update(manifest["opaque"])
            statistics.packets += manifest["packets"]
            statistics.segments += manifest["packets"]
            statistics.dropped += manifest["dropped"]
            statistics.connections += manifest["connections"]
            statistics.damage += [
                CutShort(file["damage"]) for file in manifest["files"] if file["damage"]
            ]
            for path in self._files("topic_names", manifest):
                for row in pq.read_table(path, columns=["topic_id", "topic"]).to_pylist():
                    context.names.learn(_uuid(row["topic_id"]), row["topic"])
        self.exchanges_told = context.numbers

    def _files(self, table: str, manifest: dict[str, Any]) -> list[str]:
        return [str(path) for path in self._store.files(table, manifest["batch_id"])]

    def merge_into(self, statistic: Any) -> None:
        """Count what the job has counted."""
        if self._states is None:
            self._states = {}
            for manifest in self._manifests:
                for path in self._files("statistics", manifest):
                    columns = ["statistic", "state"]
                    for row in pq.read_table(path, columns=columns).to_pylist():
                        self._states.setdefault(row["statistic"], []).append(row["state"])
        states = self._states.get(statistic.NAME)
        if not states:
            raise OnlyTables(f"{self.path} has no state of {statistic.NAME}: read the captures")
        for state in states:
            try:
                statistic.merge(type(statistic)().load(loads(state)))
            except ValueError as error:
                raise OnlyTables(f"{self.path}: {error}; read the captures") from None
        if isinstance(statistic, Findings):
            # Its statistics were counted once, for all.
            for each in statistic.base:
                self.merge_into(each)

    def exchanges(self) -> Iterator[Exchange]:
        """Tables hold none; the error says what to do."""
        raise OnlyTables(
            f"{self.path} holds tables: query them (docs/spark.md), or name the captures"
        )

    def in_flight(self) -> list[Exchange]:
        """None: see `exchanges`."""
        return []

    def session(self) -> Session:
        """None: see `exchanges`."""
        raise OnlyTables(f"{self.path} holds tables, not captures")

    def close(self) -> None:
        """Nothing is open."""


def _uuid(text: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(text + "==")
