"""The way of a record as JSON and as lines of text; applications, and lines of all journeys, as
JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.journeys.joins import LEGS
from kafkascope.analyzer.statistics.journeys.model import Application, Fetched, Journey, Produced
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import safe
from kafkascope.times import MS, iso_ms, iso_ns

ABSENT: Final = "  Not in this capture: "


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
    if isinstance(value, Application):
        edges = fields.pop("edges")
        for way, missing in (("writes", {"way", "group", "groups"}), ("reads", {"way", "schemas"})):
            fields[way] = [
                {name: part for name, part in edge.items() if name not in missing}
                for edge in edges
                if edge["way"] == way
            ]
    return fields


def journey_lines(one: Journey, times: Times) -> Iterator[str]:
    """Yield the lines about a record: one for each leg, with its time and the time since the record
    was sent; then what is to be said of clocks, and what the capture does not have."""
    key = "" if one.key is None else f", key {safe(one.key)}"
    yield f"{safe(one.topic)}-{one.partition}@{one.offset}{key}"
    sent_ns = one.produced and one.produced.sent_ns
    legs = sorted(_legs(one), key=lambda leg: leg[0])
    for time_ns, leg, text in legs:
        since = "" if sent_ns is None else f"{(time_ns - sent_ns) / MS:+,.3f} ms"
        yield f"  {leg:<13}{times.text(time_ns)}  {since:>12}  {text}".rstrip()
    if one.transaction is not None:
        yield f"  The transaction was {one.transaction}."
    if one.created_ms is not None:
        text = f"  Created {iso_ms(one.created_ms)} by the producer's clock"
        if sent_ns is not None:
            ahead = sent_ns - one.created_ms * MS
            text += f", {abs(ahead) / MS:,.3f} ms {'before' if ahead >= 0 else 'after'} it was sent"
            if ahead < 0:
                text += ": that clock is ahead of the capture's"
        elif legs and legs[0][0] < (one.created_ms - 1) * MS:
            after = one.created_ms * MS - legs[0][0]
            text += f", {after / MS:,.3f} ms after it was {legs[0][1]}: the clocks disagree"
        yield f"{text}."
    if sent_ns is not None and legs[0][0] < sent_ns:
        yield "  Legs are negative: clocks of the capture's hosts disagree, or it was sent again."
    if one.possible_producers:
        names = ", ".join(map(safe, one.possible_producers))
        yield (
            f"  Unknown: its Produce request. Those of {names} have no offset (acks=0, or no"
            " response)."
        )
    elif one.produced is None:
        yield f"{ABSENT}its Produce request."
    elif one.produced.acknowledged_ns is None:
        yield f"{ABSENT}a response to its Produce request (acks=0, or it was lost)."
    if not one.fetched:
        yield f"{ABSENT}a Fetch response with it."
        if one.produced is None:
            yield "  `kafkascope stats partitions INPUT` lists the offsets in a capture."
    silent = {safe(each.group or "") for each in one.fetched if each.committed_ns is None} - {""}
    if silent:
        yield f"{ABSENT}a commit beyond it by {', '.join(sorted(silent))}."


def _legs(one: Journey) -> Iterator[tuple[int, str, str]]:
    """Yield what happened to a record, and when."""
    if one.produced is not None:
        yield one.produced.sent_ns, "sent", _who(one.produced)
        if one.produced.acknowledged_ns is not None:
            yield one.produced.acknowledged_ns, "acknowledged", ""
    for node, time_ns in one.replicated:
        yield time_ns, "replicated", f"broker {node} fetched beyond it"
    if one.visible_ns is not None:
        yield one.visible_ns, "visible", "high watermark beyond it"
    if one.transaction is not None and one.stable_ns is not None:
        yield one.stable_ns, "stable", "last stable offset beyond it (read_committed)"
    commits = {}
    for each in one.fetched:
        group = "without a group" if each.group is None else f"group {safe(each.group)}"
        yield each.time_ns, "fetched", f"{_who(each)}, {group}"
        yield from ((time_ns, "again", f"{_who(each)}, {group}") for time_ns in each.again_times_ns)
        if each.committed_ns is not None:
            commits[each.committed_ns, each.group] = "committed", f"group {safe(each.group or '')}"
    yield from ((time_ns, *leg) for (time_ns, _), leg in commits.items())
    for each in one.hidden:
        yield each.time_ns, "hidden", f"{_who(each)}: its transaction was aborted"


def _who(each: Produced | Fetched) -> str:
    name = safe(each.application)
    same = each.application == each.client_id
    return name if same else f"{name} ({safe(each.client_id) or 'no client id'})"


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
