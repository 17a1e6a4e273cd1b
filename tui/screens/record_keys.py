"""Keys of a topic's records, from the first exchanges that carried some: how many records have one,
how many keys there are, which are the most frequent, to which partitions they went."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.exchanges.records import RecordField, fields_of
from kafkascope.analyzer.render.cells import size
from kafkascope.analyzer.render.payloads import key_text
from kafkascope.analyzer.statistics.histogram import Histogram
from kafkascope.analyzer.text import cut, padded, safe
from kafkascope.captures.errors import CaptureError
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import View
from kafkascope.tui.screens.charts import bar
from kafkascope.tui.screens.sheet import Spans

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.analyzer.payloads.model import SchemaKey
    from kafkascope.dissectors.errors import DissectError
    from kafkascope.dissectors.records.records import Record

ENOUGH: Final = 20_000
"""Records that are counted; the rest is left unread."""
MOST_KEYS: Final = 50_000
LONGEST_KEY: Final = 200
"""Bytes of a key that are kept; longer ones are told apart by a hash."""
MOST_SCHEMAS: Final = 1_000
TOP: Final = 12
SHOWN: Final = 28
"""Characters of a key that are shown."""


class RecordKeys:
    """Counts records in slices, so that keys never wait."""

    def __init__(
        self, store: Store, topic: str, filter_text: str, payloads: Payloads | None = None
    ) -> None:
        """`payloads`: knows the schemas that keys and values name."""
        self._payloads = payloads
        self.schemas: Counter[tuple[Side, SchemaKey]] = Counter()
        """How many keys and values name which schema; `MOST_SCHEMAS` of them."""
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
        damage: list[DissectError] = []
        for batch, opened in field.opened(damage=damage):
            if batch.control:
                continue
            self.unread += opened.error is not None
            for record in opened.records:
                self._count(record.key, record.value, field.partition)
                if self._payloads is not None:
                    self._named(self._payloads, record)
        self.unread += len(damage)

    def _named(self, payloads: Payloads, record: Record) -> None:
        sides: tuple[tuple[Side, bytes | None], ...]
        sides = (("key", record.key), ("value", record.value))
        for side, data in sides:
            found = payloads.named(side, data, record.headers)
            if found is None:
                continue
            place = side, found[0]
            if place in self.schemas or len(self.schemas) < MOST_SCHEMAS:
                self.schemas[place] += 1

    def _schema_lines(self) -> list[Spans]:
        """Return a line for each schema that keys and values name, with its subjects as far as
        they are known by now."""
        if self._payloads is None:
            return []
        out: list[Spans] = []
        for (side, key), count in self.schemas.most_common(TOP):
            known = self._payloads.known
            schema = known.find(key)[0] if known.knows(key) else None
            names = dict.fromkeys(name for name, _ in schema.subjects) if schema else {}
            form = f"{schema.format} " if schema else ""
            text = f"{form}schema {key_text(key)}"
            out.append(
                [
                    (f"{side + 's by':<10} ", "dim"),
                    (padded(safe(text), SHOWN), "label"),
                    (f"{count:>7,}  ", ""),
                    (cut(safe(", ".join(names)), 2 * SHOWN), "dim"),
                ]
            )
        if len(self.schemas) > TOP:
            out.append([(f"... {len(self.schemas) - TOP} more schemas", "dim")])
        return out

    def _count(self, key: bytes | None, value: bytes | None, partition: int) -> None:
        self.records += 1
        if value is not None:
            self.value_sizes.add(len(value))
        if key is None:
            self.keyless += 1
            return
        self.key_sizes.add(len(key))
        if len(key) > LONGEST_KEY:
            key = key[:LONGEST_KEY] + blake2b(key, digest_size=16).digest()
        if key in self.found or len(self.found) < MOST_KEYS:
            self.found[key] += 1
            self.partitions.setdefault(key, set()).add(partition)

    def lines(self) -> list[Spans]:
        """Return the result so far."""
        if not self.records:
            text = "No records of this topic" if self.over else "Reading records ..."
            return [[(text, "dim")]]
        more = ", the first ones" if self.records >= ENOUGH else "" if self.over else " so far"
        keyed = self.records - self.keyless
        out: list[Spans] = [
            [(f"{self.records:,} records, produced and fetched", "header"), (more, "dim")],
            [
                ("without key  ", "dim"),
                (f"{100 * self.keyless / self.records:.0f} %   ", ""),
                ("distinct keys  ", "dim"),
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
        out += self._schema_lines()
        moved = sum(len(places) > 1 for places in self.partitions.values())
        if moved:
            text = f"{moved:,} key{'s' * (moved != 1)} went to more than one partition"
            out.append([(f"! {text}", "!"), ("   their order is not guaranteed", "dim")])
        if self.unread:
            out.append([(f"! {self.unread:,} batches cannot be decoded", "!")])
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
