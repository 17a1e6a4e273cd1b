"""The way of a record as JSON and as lines of text; applications, and lines of all journeys, as
JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.journeys.joins import LEGS
from kafkascope.analyzer.statistics.journeys.model import Journey
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import safe
from kafkascope.times import iso_ms, iso_ns

MS: Final = 1_000_000


def as_json(value: Any) -> Any:
    """Return a part of the map or of a journey as JSON: times are texts, whose names have no
    unit."""
    if not hasattr(value, "_asdict"):
        return list(map(as_json, value)) if isinstance(value, tuple | list) else value
    fields = {}
    for name, part in value._asdict().items():
        if name.endswith("_ns") and part is not None:
            part = iso_ns(part) if isinstance(part, int) else tuple(map(iso_ns, part))
        elif name.endswith("_ms"):
            part = iso_ms(part)
        fields[name.removesuffix("_ns").removesuffix("_ms")] = as_json(part)
    return fields


def journey_lines(one: Journey, times: Times) -> Iterator[str]:
    """Yield the lines about a record: one for each leg, with its time and the time since the record
    was sent."""
    key = "" if one.key is None else f", key {safe(one.key)}"
    yield f"{safe(one.topic)}-{one.partition}@{one.offset}{key}"
    produced, lines = one.produced, list[tuple[int, str, str]]()
    origin = None if produced is None else produced.sent_ns
    if produced is not None:
        lines.append((produced.sent_ns, "sent", _who(produced.application, produced.client_id)))
        if produced.acknowledged_ns is not None:
            lines.append((produced.acknowledged_ns, "acknowledged", ""))
    for node, time_ns in one.replicated:
        lines.append((time_ns, "replicated", f"broker {node} fetched beyond it"))
    if one.visible_ns is not None:
        lines.append((one.visible_ns, "visible", "high watermark beyond it"))
    if one.transaction is not None and one.stable_ns is not None:
        lines.append((one.stable_ns, "stable", "last stable offset beyond it (read_committed)"))
    commits = set[tuple[int, str | None]]()
    for each in one.fetched:
        who = _who(each.application, each.client_id)
        group = "without a group" if each.group is None else f"group {safe(each.group)}"
        lines.append((each.time_ns, "fetched", f"{who}, {group}"))
        lines += [(time_ns, "again", f"{who}, {group}") for time_ns in each.again_times_ns]
        if each.committed_ns is not None:
            commits.add((each.committed_ns, each.group))
    for time_ns, group_ in commits:
        lines.append((time_ns, "committed", f"group {safe(group_ or '')}"))
    for each in one.hidden:
        who = _who(each.application, each.client_id)
        lines.append((each.time_ns, "hidden", f"{who}: its transaction was aborted"))
    lines.sort(key=lambda line: line[0])
    for time_ns, leg, text in lines:
        since = "" if origin is None else f"{(time_ns - origin) / MS:+,.3f} ms"
        yield f"  {leg:<13}{times.text(time_ns)}  {since:>12}  {text}".rstrip()
    if one.transaction is not None:
        yield f"  The transaction was {one.transaction}."
    yield from _clocks(one, origin, lines)
    yield from _absent(one)


def _who(application: str, client_id: str) -> str:
    if application == client_id:
        return safe(application)
    return f"{safe(application)} ({safe(client_id) or 'no client id'})"


def _clocks(one: Journey, origin: int | None, lines: list[tuple[int, str, str]]) -> Iterator[str]:
    """Yield what is to be said of clocks: that of the producer, and those that disagree."""
    if one.created_ms is not None:
        text = f"  Created {iso_ms(one.created_ms)} by the producer's clock"
        if origin is not None:
            ahead = origin - one.created_ms * MS
            text += f", {abs(ahead) / MS:,.3f} ms {'before' if ahead >= 0 else 'after'} it was sent"
            if ahead < 0:
                text += ": that clock is ahead of the capture's"
        elif lines and lines[0][0] < (one.created_ms - 1) * MS:
            after = one.created_ms * MS - lines[0][0]
            text += f", {after / MS:,.3f} ms after it was {lines[0][1]}: the clocks disagree"
        yield f"{text}."
    if origin is not None and any(time_ns < origin for time_ns, _, _ in lines):
        yield "  Legs are negative: clocks of the capture's hosts disagree, or it was sent again."


def _absent(one: Journey) -> Iterator[str]:
    """Yield what the capture does not have of a record."""
    produced = one.produced
    if produced is None and one.possible_producers:
        names = ", ".join(map(safe, one.possible_producers))
        yield (
            f"  Unknown: its Produce request. Those of {names} have no offset (acks=0, or no"
            " response)."
        )
    elif produced is None:
        yield "  Not in this capture: its Produce request."
    elif produced.acknowledged_ns is None:
        yield "  Not in this capture: a response to its Produce request (acks=0, or it was lost)."
    if not one.fetched:
        yield "  Not in this capture: a Fetch response with it."
        if produced is None:
            yield "  `kafkascope stats partitions INPUT` lists the offsets in a capture."
    silent = sorted(
        {each.group for each in one.fetched if each.committed_ns is None} - {None}, key=str
    )
    if silent:
        groups = ", ".join(safe(group or "") for group in silent)
        yield f"  Not in this capture: a commit beyond it by {groups}."


def journeys_json(line: Line) -> Line:
    """Return a line of all journeys as JSON: percentiles of a leg are an object."""
    out: Line = {"schema": "journeys/1"}
    for name, value in line.items():
        leg, _, percent = name.rpartition("_")
        if leg in LEGS:
            out.setdefault(f"{leg}_ms", {})[percent] = None if value is None else value / MS
        elif name == "lag_time":
            out["lag_ms"] = value / MS
        else:
            out[name] = value
    return out
