"""The delivery audit of a group as tables: partitions with their lag, what went wrong, plans."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.model import (
    EVENT_COLUMNS,
    PARTITION_COLUMNS,
    PLAN_COLUMNS,
    unaudited,
)
from kafkascope.analyzer.statistics.model import Column
from kafkascope.tui.screens.charts import spark
from kafkascope.tui.screens.sheet import Sheet

WIDTH: Final = 16
"""Columns of the lag over time."""
LAG: Final = Column("lag_over_time")
BAD: Final = {"beyond": "!", "back": "!", "skipped": "!", "twice": "!", "again": "?", "none": "?"}
"""Kind of an event -> its role."""


def audited(audit: Audit, tab: str, group: str, times: Times) -> tuple[Sheet, str]:
    """Return the table of a tab, and the sentence to show when it is empty."""
    if audit.groups is not None and "share" in audit.groups.protocols(group):
        return Sheet(()), unaudited(group)
    if tab == "Audit":
        return _events(
            audit, group, times
        ), "nothing was lost, skipped or delivered twice, as far as seen"
    if tab == "Plans":
        return _plans(audit, group, times), "no assignment of this group is in the capture"
    return _partitions(
        audit, group, times
    ), "this group fetched and committed nothing in the capture"


def _partitions(audit: Audit, group: str, times: Times) -> Sheet:
    columns = [each for each in PARTITION_COLUMNS if not each.wide and each.name != "group"]
    at = next(n for n, each in enumerate(columns) if each.name == "lag") + 1
    columns.insert(at, LAG)
    sheet = Sheet(
        columns,
        alarms={"beyond": "!", "back": "!", "again": "?", "lag": "?"},
        tones={LAG.name: lambda value: "bar"},
        keep=(
            "partition",
            "committed_offset",
            "end_offset",
            "lag",
            "fetched_offset",
            LAG.name,
            "remarks",
        ),
    )
    lags = {(each.topic, each.number): each.lags() for each in audit.of_group(group)}
    lines = audit.partitions(group)
    for line in lines:
        line[LAG.name] = lag_line(lags.get((line["topic"], line["partition"]), []))
    return sheet.fill(lines, times)


def lag_line(points: list[tuple[int, int]]) -> str:
    """Draw the largest lag in each slice of the time in which it is known."""
    if len(points) < 2:
        return ""
    first, last = points[0][0], points[-1][0]
    step = max(1, -(-(last - first + 1) // WIDTH))
    found: list[int | None] = [None] * WIDTH
    for time_ns, lag in points:
        at = max(0, min(WIDTH - 1, (time_ns - first) // step))
        found[at] = max(found[at] or 0, lag)
    # Between two points the lag is what it was.
    values: list[int] = []
    for value in found:
        values.append(value if value is not None else values[-1] if values else 0)
    return spark(values).replace(" ", "·")


def _events(audit: Audit, group: str, times: Times) -> Sheet:
    sheet = Sheet(
        [each for each in EVENT_COLUMNS if each.name != "group"],
        tones={"kind": lambda value: BAD.get(value, "label")},
        keep=("kind", "text", "topic", "partition"),
    )
    return sheet.fill(audit.events(group), times)


def _plans(audit: Audit, group: str, times: Times) -> Sheet:
    sheet = Sheet(
        [each for each in PLAN_COLUMNS if each.name != "group"],
        alarms={"needless": "?"},
        tones={"unassigned": lambda value: "!", "twice": lambda value: "!"},
        keep=("generation", "assignor", "members", "same_as", "moved"),
    )
    return sheet.fill(audit.plans(group), times)
