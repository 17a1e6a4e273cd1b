"""Keys of a topic's records, from the first exchanges that carried some: how many records have one,
how many keys there are, which are the most frequent, to which partitions they went."""

from __future__ import annotations

from collections import Counter
from time import monotonic
from typing import Final

from kafkascope.analyzer.exchanges.records import RecordField, fields_of
from kafkascope.analyzer.render.cells import size
from kafkascope.analyzer.statistics.histogram import Histogram
from kafkascope.analyzer.text import cut, padded, safe
from kafkascope.captures.errors import CaptureError
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Batch, open_batch
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import View
from kafkascope.tui.screens.charts import bar
from kafkascope.tui.screens.sheet import Spans

ENOUGH: Final = 20_000
"""Records that are counted; the rest is left unread."""
MOST_KEYS: Final = 50_000
TOP: Final = 12
SHOWN: Final = 28
"""Characters of a key that are shown."""


class RecordKeys:
    """Counts records in slices, so that keys never wait."""

    def __init__(self, store: Store, topic: str, filter_text: str) -> None:
        self.store = store
        self.topic = topic
        self.view = View(store, f"({filter_text}) and records > 0")
        self._next = 0
        self.records = 0
        self.keyless = 0
        self.unread = 0
        """Number of batches that cannot be opened."""
        self.found: Counter[bytes] = Counter()
        self.partitions: dict[bytes, set[int]] = {}
        self.key_sizes = Histogram()
        self.value_sizes = Histogram()

    @property
    def over(self) -> bool:
        """Whether no more records are counted."""
        done = self.store.progress.done and not self.view.behind
        return self.records >= ENOUGH or (done and self._next >= self.view.arrived)

    def advance(self, seconds: float) -> bool:
        """Count more records, for `seconds` at most; return whether there were any."""
        until = monotonic() + seconds
        self.view.advance(seconds)
        before = self._next
        while self._next < self.view.arrived and self.records < ENOUGH and monotonic() < until:
            index, self._next = self.view.arrival(self._next), self._next + 1
            try:
                exchange = self.store.session.exchange(index)
            except (CaptureError, IndexError):
                continue  # it is gone
            for field in fields_of(exchange, self.store.session.context.names):
                if field.topic == self.topic:
                    self._take(field)
        return self._next != before

    def _take(self, field: RecordField) -> None:
        try:
            for batch in field.batches():
                if not isinstance(batch, Batch) or batch.control:
                    continue
                opened = open_batch(field.data, batch)
                self.unread += opened.error is not None
                for record in opened.records:
                    self._count(record.key, record.value, field.partition)
        except DissectError:
            self.unread += 1

    def _count(self, key: bytes | None, value: bytes | None, partition: int) -> None:
        self.records += 1
        if value is not None:
            self.value_sizes.add(len(value))
        if key is None:
            self.keyless += 1
            return
        self.key_sizes.add(len(key))
        if key in self.found or len(self.found) < MOST_KEYS:
            self.found[key] += 1
            self.partitions.setdefault(key, set()).add(partition)

    def lines(self) -> list[Spans]:
        """Return the result so far."""
        if not self.records:
            text = "no record of this topic" if self.over else "looking at records ..."
            return [[(text, "dim")]]
        more = ", the first ones" if self.records >= ENOUGH else "" if self.over else " so far"
        keyed = self.records - self.keyless
        out: list[Spans] = [
            [(f"{self.records:,} records, written and read", "header"), (more, "dim")],
            [
                ("without key  ", "dim"),
                (f"{100 * self.keyless / self.records:.0f} %   ", ""),
                ("different keys  ", "dim"),
                (f"{len(self.found):,}{'+' * (len(self.found) >= MOST_KEYS)}   ", ""),
            ],
        ]
        for name, sizes in (("key", self.key_sizes), ("value", self.value_sizes)):
            if sizes.count:
                p50, p99 = sizes.percentile(0.5), sizes.percentile(0.99)
                out.append(
                    [
                        (f"size of {name:<6}", "dim"),
                        (f"p50 {size(p50)}   p99 {size(p99)}   max {size(sizes.most)}", ""),
                    ]
                )
        moved = sum(len(places) > 1 for places in self.partitions.values())
        if moved:
            text = f"{moved:,} key{'s' * (moved != 1)} went to more than one partition"
            out.append([(f"! {text}", "!"), ("   their order is not kept", "dim")])
        if self.unread:
            out.append([(f"! {self.unread:,} batches cannot be opened", "!")])
        if keyed:
            out += [
                [],
                [(f"{'most frequent key':<{SHOWN + 2}}{'n':>7}  {'partitions':<12}", "header")],
            ]
        for key, count in self.found.most_common(TOP):
            places = sorted(self.partitions[key])
            where = ",".join(map(str, places[:4])) + ("…" if len(places) > 4 else "")
            out.append(
                [
                    (padded(shown(key), SHOWN + 2), "label"),
                    (f"{count:>7,}  ", ""),
                    (f"{where:<12}", "!" if len(places) > 1 else "dim"),
                    (bar(count / keyed, 30), "bar"),
                    (f" {100 * count / keyed:.0f} %", "dim"),
                ]
            )
        return out


def shown(key: bytes) -> str:
    """Return a key as text, or as hexadecimal if it is none."""
    try:
        text = safe(key.decode("utf-8"))
    except UnicodeDecodeError:
        text = f"0x{key[:SHOWN].hex()}"
    return cut(text or '""', SHOWN)
