"""Screen 4: topics, their partitions, who writes and who reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.sizes import SizesOf
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.text import columns_taken, cut, padded, safe
from kafkascope.tui.host import Host
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.board import SLICE
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.charts import bar
from kafkascope.tui.screens.record_keys import RecordKeys
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine, text_lines

ALARMS = {"failed": "!", "refused_records": "!"}


NO_KEYS: Final = "This line sums up many topics, or one without a name: no keys to count."


class TopicsBoard(ChartedBoard):
    """Shows topics, those with the most bytes first."""

    NUMBER = 4
    TITLE = "Topics"
    STATISTICS = ("topics", "sizes", "cluster")
    COMMAND = "kafkascope topics {}"
    TABS = ("Partitions", "Who", "Batches", "Keys", "Leaders", "Over time")
    EMPTY = "No records of topics in the capture"
    HELP = (
        "Topics with the records produced and fetched in this capture, their clients, batch "
        "sizes and compression. Partitions shows the share of each partition and reveals hot "
        "ones. Leaders shows leaders as advertised to clients. Keys also lists the schemas of "
        "keys and values. A name that ends in ? is the start of a topic id."
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._keys: RecordKeys | None = None

    def make_sheet(self) -> Sheet:
        """Return the columns of `stats topics`."""
        return Sheet(
            [column for column in Topics.COLUMNS if not column.wide],
            alarms=ALARMS,
            keep=("produced_records", "fetched_records", "failed", "writers"),
        )

    def evidence(self, line: Line) -> str:
        """Return the filter for a topic."""
        return evidence.of_topic(line)

    def low_evidence(self, tab: str, line: Line) -> str:
        """Return the filter for a partition, or for an API and client of the topic."""
        if tab == "Batches":
            topic = "" if self.line is None else evidence.of_topic(self.line)
            return evidence.both(topic, evidence.of_api(line))
        return evidence.of_topic(line)

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return a table or text about a topic, or the chart over time."""
        topic = line["topic"]
        if tab == "Over time":
            return self.chart_tab(line, width, height)
        if tab == "Keys":
            keys = self._keys_of(topic)
            return text_lines([[(NO_KEYS, "dim")]] if keys is None else keys.lines())
        source, table, options, empty = TABLES[tab]
        found = self.statistic(source)
        lines = [] if found is None else getattr(found, table)(self.names, **options)
        lines = [each for each in lines if each["topic"] == topic]
        nothing: list[Spans] = [[(self.worded(empty), "dim")]]
        if tab == "Who":
            return text_lines(who(lines, width) or nothing)
        if empty and not lines:
            return text_lines(nothing)
        return SHEETS[tab]().fill(lines, self.host.times())

    def _keys_of(self, topic: str) -> RecordKeys | None:
        """Return the keys of a topic; None for those that are summed up, or have no name."""
        wanted = evidence.of_topic({"topic": topic})
        if not wanted:
            self._keys = None
        elif self._keys is None or self._keys.topic != topic:
            payloads = self.host.workspace.feed.payloads()
            self._keys = RecordKeys(self.host.store, topic, wanted, payloads)
            self._keys.advance(SLICE)
        return self._keys

    def work(self) -> bool:
        """Look at more records, or exchanges."""
        if self.tab == "Keys":
            return self._keys is not None and not self._keys.over and self._keys.advance(SLICE)
        return super().work()


TABLES: Final[dict[str, tuple[str, str, dict[str, Any], str]]] = {
    "Partitions": ("topics", "partitions", {}, ""),
    "Who": ("topics", "partitions", {}, "no producer or consumer in the capture"),
    "Batches": (
        "sizes",
        "rows",
        {"by": ("what", "api", "client", "topic")},
        "no record batch of this topic in the capture",
    ),
    "Leaders": (
        "cluster",
        "leaders",
        {},
        "no leaders advertised in the capture",
    ),
}
"""Tab -> statistic, its table with options, and the sentence where a topic has no line in it; empty
where none is needed."""
SHEETS: Final[dict[str, Callable[[], Sheet]]] = {
    "Partitions": lambda: Sheet(
        [c for c in Topics.PARTITION_COLUMNS if not c.wide and c.name != "topic"],
        alarms=ALARMS,
        keep=("share", "produced_records", "fetched_records"),
    ),
    "Batches": lambda: Sheet(SizesOf.columns(("api", "client")), keep=("count", "p50", "max")),
    "Leaders": lambda: Sheet(
        [c for c in Cluster.LEADER_COLUMNS if not c.wide and c.name != "topic"],
        alarms={"failed": "!", "changes": "?"},
        tones={"offline": lambda value: "!" if value else ""},
        keep=("leader", "leader_epoch"),
    ),
}
"""Tab -> its table without lines."""


def who(partitions: Sequence[Line], width: int) -> list[Spans]:
    """Return each client with the partitions that it writes and reads; nothing if there is none."""
    names = sorted(
        {name for line in partitions for way in ("writers", "readers") for name in line[way]}
    )
    if not names:
        return []
    margin = min(32, max(map(columns_taken, map(safe, names))) + 2)
    out: list[Spans] = [[(f"{'client':<{margin}}{'writes':<10}{'reads':<10}partitions", "header")]]
    for name in names:
        writes = [line["partition"] for line in partitions if name in line["writers"]]
        reads = [line["partition"] for line in partitions if name in line["readers"]]
        places = sorted({*writes, *reads}, key=lambda each: (isinstance(each, str), each))
        text = ", ".join(map(str, places))
        room = max(10, width - margin - 20)
        out.append(
            [
                (padded(cut(safe(name), margin - 1), margin), "label"),
                (f"{f'{len(writes)} of {len(partitions)}' if writes else '-':<10}", ""),
                (f"{f'{len(reads)} of {len(partitions)}' if reads else '-':<10}", ""),
                (cut(text, room), "dim"),
            ]
        )
    shares = [line for line in partitions if line["share"]]
    if len(shares) > 1:
        out += [[], [("share of the bytes", "header")]]
        for line in shares[:20]:
            out.append(
                [
                    (f"{line['partition']!s:>6}  ", ""),
                    (bar(line["share"], 40), "bar"),
                    (f" {100 * line['share']:.0f} %", "dim"),
                ]
            )
    return out
