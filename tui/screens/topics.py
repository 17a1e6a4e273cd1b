"""Screen 4: topics, their partitions, who writes and who reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from time import monotonic
from typing import Final

from kafkascope.analyzer.exchanges.records import RecordField, fields_of
from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.render.cells import size
from kafkascope.analyzer.render.payloads import key_text
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.statistics.traffic import SizesOf
from kafkascope.analyzer.text import columns_taken, cut, padded, safe
from kafkascope.captures.errors import CaptureError
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Record
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.framing import Side
from kafkascope.schemas.model import SchemaKey
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import View
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.board import OVER_TIME, SLICE, Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.charts import bar
from kafkascope.tui.screens.sheet import Sheet, Spans, narrow

# Records that are counted; the rest is left unread.
ENOUGH: Final = 20_000
TOP: Final = 12
# Characters of a key that are shown.
SHOWN: Final = 28


class RecordKeys:
    """Counts records in slices, so that keys never wait."""

    def __init__(
        self, store: Store, topic: str, filter_text: str, payloads: Payloads | None = None
    ) -> None:
        """`payloads`: knows the schemas that keys and values name."""
        self.store, self.topic, self._payloads = store, topic, payloads
        self.schemas: Counter[tuple[Side, SchemaKey]] = Counter()
        """How many keys and values name which schema; `record_schemas` of them."""
        self.view = View(store, f"({filter_text}) and records > 0")
        self._next = self.records = self.keyless = 0
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
            named = payloads.named(side, data, record.headers)
            key = named and (side, named[0])
            if key and (key in self.schemas or len(self.schemas) < LIMITS.record_schemas):
                self.schemas[key] += 1

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
            text = padded(safe(f"{form}schema {key_text(key)}"), SHOWN)
            subjects = cut(safe(", ".join(names)), 2 * SHOWN)
            line = [(f"{side + 's by':<10} ", "dim"), (text, "label"), (f"{count:>7,}  ", "")]
            out.append([*line, (subjects, "dim")])
        if len(self.schemas) > TOP:
            out.append([(f"... {len(self.schemas) - TOP} more schemas", "dim")])
        return out

    def _count(self, key: bytes | None, value: bytes | None, partition: int) -> None:
        self.records += 1
        if value is not None:
            self.value_sizes.add_all([len(value)])
        if key is None:
            self.keyless += 1
            return
        self.key_sizes.add_all([len(key)])
        if len(key) > LIMITS.record_key_bytes:
            key = key[: LIMITS.record_key_bytes] + blake2b(key, digest_size=16).digest()
        if key in self.found or len(self.found) < LIMITS.record_keys:
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
                *(("without key  ", "dim"), (f"{100 * self.keyless / self.records:.0f} %   ", "")),
                ("distinct keys  ", "dim"),
                (f"{len(self.found):,}{'+' * (len(self.found) >= LIMITS.record_keys)}   ", ""),
            ],
        ]
        for name, sizes in (("key", self.key_sizes), ("value", self.value_sizes)):
            if sizes.count:
                p50, p99 = sizes.percentile(0.5), sizes.percentile(0.99)
                text = f"p50 {size(p50)}   p99 {size(p99)}   max {size(sizes.most)}"
                out.append([(f"size of {name:<6}", "dim"), (text, "")])
        out += self._schema_lines()
        moved = sum(len(places) > 1 for places in self.partitions.values())
        if moved:
            text = f"{moved:,} key{'s' * (moved != 1)} went to more than one partition"
            out.append([(f"! {text}", "!"), ("   their order is not guaranteed", "dim")])
        if self.unread:
            out.append([(f"! {self.unread:,} batches cannot be decoded", "!")])
        if keyed:
            titles = f"{'most frequent key':<{SHOWN + 2}}{'n':>7}  {'partitions':<12}"
            out += [[], [(titles, "header")]]
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


ALARMS: Final = {"failed": "!", "refused_records": "!"}


def _evidence(board: Board, line: Line) -> str:
    return evidence.of_topic(line)


def _of_topic(
    board: Board, line: Line, statistic: str, table: str, **options: object
) -> list[Line]:
    """Return the lines about a topic of a table of a statistic."""
    found = board.statistic(statistic)
    lines = [] if found is None else getattr(found, table)(board.names, **options)
    return [each for each in lines if each["topic"] == line["topic"]]


def _partitions(board: Board, line: Line) -> Content:
    keep = ("share", "produced_records", "fetched_records")
    sheet = Sheet(narrow(Topics.PARTITION_COLUMNS, "topic"), alarms=ALARMS, keep=keep)
    return sheet.fill(_of_topic(board, line, "topics", "partitions"), board.host.times())


def _batches(board: Board, line: Line) -> Content:
    by = ("what", "api", "client", "topic")
    lines = _of_topic(board, line, "sizes", "rows", by=by)
    sheet = Sheet(SizesOf.columns(("api", "client")), keep=("count", "p50", "max"))
    return board.listed(sheet, lines, "no record batch of this topic in the capture")


def _batch_evidence(board: Board, line: Line) -> str:
    topic = "" if board.line is None else evidence.of_topic(board.line)
    return evidence.both(topic, evidence.of_api(line))


def _leaders(board: Board, line: Line) -> Content:
    lines = _of_topic(board, line, "cluster", "leaders")
    sheet = Sheet(
        narrow(Cluster.LEADER_COLUMNS, "topic"),
        alarms={"failed": "!", "changes": "?"},
        tones={"offline": lambda value: "!" if value else ""},
        keep=("leader", "leader_epoch"),
    )
    return board.listed(sheet, lines, "no leaders advertised in the capture")


def _keys(board: Board, line: Line) -> Content:
    """Return the keys of a topic; none of those that are summed up, or have no name."""
    topic, keys = evidence.of_topic({"topic": line["topic"]}), board.cache.get("keys")
    if not topic:
        board.cache.pop("keys", None)
        return "This line sums up many topics, or one without a name: no keys to count."
    if keys is None or keys.topic != line["topic"]:
        payloads = board.host.workspace.feed.payloads()
        keys = RecordKeys(board.host.store, line["topic"], topic, payloads)
        board.cache["keys"] = keys
        keys.advance(SLICE)
    lines: Content = keys.lines()
    return lines


def _count_keys(board: Board) -> bool:
    keys: RecordKeys | None = board.cache.get("keys")
    return keys is not None and not keys.over and keys.advance(SLICE)


def _who(board: Board, line: Line) -> Content:
    """Return each client with the partitions that it writes and reads."""
    partitions = _of_topic(board, line, "topics", "partitions")
    names = sorted({name for each in partitions for name in (*each["writers"], *each["readers"])})
    if not names:
        return board.worded("no producer or consumer in the capture")
    margin = min(32, max(map(columns_taken, map(safe, names))) + 2)
    room = max(10, board.room[0] - margin - 20)
    out: list[Spans] = [[(f"{'client':<{margin}}{'writes':<10}{'reads':<10}partitions", "header")]]
    for name in names:
        ways = [
            [each["partition"] for each in partitions if name in each[way]]
            for way in ("writers", "readers")
        ]
        places = sorted({*ways[0], *ways[1]}, key=lambda each: (isinstance(each, str), each))
        counts = [f"{len(way)} of {len(partitions)}" if way else "-" for way in ways]
        out.append(
            [
                (padded(cut(safe(name), margin - 1), margin), "label"),
                (f"{counts[0]:<10}{counts[1]:<10}", ""),
                (cut(", ".join(map(str, places)), room), "dim"),
            ]
        )
    return out + _shares([each for each in partitions if each["share"]])


def _shares(partitions: Sequence[Line]) -> list[Spans]:
    if len(partitions) < 2:
        return []
    out: list[Spans] = [[], [("share of the bytes", "header")]]
    for each in partitions[:20]:
        number, share = f"{each['partition']!s:>6}  ", each["share"]
        out.append([(number, ""), (bar(share, 40), "bar"), (f" {100 * share:.0f} %", "dim")])
    return out


BOARD: Final = BoardSpec(
    number=4,
    statistic="topics",
    command="kafkascope topics {}",
    help=(
        "Topics with the records produced and fetched in this capture, their clients, batch "
        "sizes and compression. Partitions shows the share of each partition and reveals hot "
        "ones. Leaders shows leaders as advertised to clients. Keys also lists the schemas of "
        "keys and values. A name that ends in ? is the start of a topic id."
    ),
    tabs={
        "Partitions": Tab(_partitions, _evidence),
        "Who": Tab(_who),
        "Batches": Tab(_batches, _batch_evidence),
        "Keys": Tab(_keys, work=_count_keys),
        "Leaders": Tab(_leaders, _evidence),
        "Over time": OVER_TIME,
    },
    sheet=lambda board: Sheet(
        narrow(Topics.COLUMNS),
        alarms=ALARMS,
        keep=("produced_records", "fetched_records", "failed", "writers"),
    ),
    evidence=_evidence,
    empty="No records of topics in the capture",
)
