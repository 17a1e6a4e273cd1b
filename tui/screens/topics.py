"""Screen 4: topics, their partitions, who writes and who reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.sizes import BY, SizesOf
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.text import columns_taken, cut, padded, safe
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.board import SLICE, told
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.charts import bar
from kafkascope.tui.screens.keys import Keys
from kafkascope.tui.screens.ladder import Told
from kafkascope.tui.screens.sheet import Sheet, Spans

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.model import Line

ALARMS = {"errors": "!", "refused_records": "!"}


class TopicsBoard(ChartedBoard):
    """Topics by bytes."""

    NUMBER = 4
    TITLE = "Topics"
    STATISTICS = ("topics", "sizes", "cluster")
    COMMAND = "kafkascope stats topics {}"
    TABS = ("Partitions", "Who", "Batches", "Keys", "Leaders", "Over time")
    EMPTY = "no records of any topic in the capture"
    HELP = (
        "Topics with what was written and read in this capture, by whom, how full batches were and "
        "how they were compressed. Partitions shows the share of each, which tells a hot one; "
        "Leaders what clients were told. A name with ? is the beginning of a topic's id."
    )
    KEYS: ClassVar[tuple[Any, ...]] = ()

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._keys: Keys | None = None

    def make_sheet(self) -> Sheet:
        """As `stats topics`."""
        return Sheet(
            [column for column in Topics.COLUMNS if not column.wide],
            alarms=ALARMS,
            keep=("produced_records", "fetched_records", "errors", "writers"),
        )

    def lines(self) -> Sequence[Line] | None:
        """As `stats topics`."""
        found = self.statistic("topics")
        return None if found is None else found.rows(self.names)

    @property
    def names(self) -> Any:
        """Of topics that have only an id."""
        return self.scene.store.session.context.names

    def evidence(self, line: Line) -> str:
        """A topic."""
        return evidence.of_topic(line)

    def low_evidence(self, tab: str, line: Line) -> str:
        """A partition, or an API and client of the topic."""
        if tab == "Batches":
            topic = "" if self.line is None else evidence.of_topic(self.line)
            return evidence.both(topic, evidence.of_api(line))
        return evidence.of_topic(line)

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[Told]:
        """What there is about a topic."""
        topic = line["topic"]
        if tab == "Partitions":
            return self._partitions(topic)
        if tab == "Over time":
            return self.chart_tab(line, width, height)
        if tab == "Who":
            found = self.statistic("topics")
            lines = [] if found is None else found.partitions(self.names)
            return told(self._who([each for each in lines if each["topic"] == topic], width))
        if tab == "Batches":
            return self._batches(topic)
        if tab == "Keys":
            return told(self._keys_of(topic).lines())
        return self._leaders(topic)

    def _who(self, partitions: Sequence[Line], width: int) -> list[Spans]:
        nobody: list[Spans] = [[(self.worded("nobody writes or reads it in the capture"), "dim")]]
        return who(partitions, width) or nobody

    def _keys_of(self, topic: str) -> Keys:
        if self._keys is None or self._keys.topic != topic:
            self._keys = Keys(self.scene.store, topic, evidence.of_topic({"topic": topic}))
            self._keys.advance(SLICE)
        return self._keys

    def work(self) -> bool:
        """Look at more records, or exchanges."""
        if self.tab == "Keys":
            return self._keys is not None and not self._keys.over and self._keys.advance(SLICE)
        return super().work()

    def _partitions(self, topic: str) -> Sheet:
        found = self.statistic("topics")
        sheet = Sheet(
            [c for c in Topics.PARTITION_COLUMNS if not c.wide and c.name != "topic"],
            alarms=ALARMS,
            keep=("share", "produced_records", "fetched_records"),
        )
        lines = [] if found is None else found.partitions(self.names)
        sheet.fill([each for each in lines if each["topic"] == topic], self.scene.times())
        return sheet

    def _batches(self, topic: str) -> Sheet | Sequence[Told]:
        sizes = self.statistic("sizes")
        lines = (
            [] if sizes is None else sizes.rows(self.names, by=("what", "api", "client", "topic"))
        )
        lines = [each for each in lines if each["topic"] == topic]
        if not lines:
            return told([[(self.worded("no record batch of this topic in the capture"), "dim")]])
        sheet = Sheet((BY["api"], BY["client"], *SizesOf.COLUMNS), keep=("count", "p50", "max"))
        sheet.fill(lines, self.scene.times())
        return sheet

    def _leaders(self, topic: str) -> Sheet | Sequence[Told]:
        cluster = self.statistic("cluster")
        lines = [] if cluster is None else cluster.leaders(self.names)
        lines = [each for each in lines if each["topic"] == topic]
        if not lines:
            why = self.worded("no client was told about its leaders in the capture")
            return told([[(why, "dim")]])
        sheet = Sheet(
            [c for c in Cluster.LEADER_COLUMNS if not c.wide and c.name != "topic"],
            alarms={"errors": "!", "changes": "?"},
            tones={"offline": lambda value: "!" if value else ""},
            keep=("leader", "epoch"),
        )
        sheet.fill(lines, self.scene.times())
        return sheet


def who(partitions: Sequence[Line], width: int) -> list[Spans]:
    """Each client with the partitions that it writes and reads; nothing when there is none."""
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
