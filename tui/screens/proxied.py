"""The state of a proxy as lines of tables and of text: rates, held frames, rules, connections,
counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafkascope.analyzer.render.cells import duration, size
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.tui.screens.charts import spark
from kafkascope.tui.screens.sheet import Spans

SECONDS: Final = 60
"""Seconds of rates that are drawn."""
HELD: Final = (
    Column("number", "count"),
    Column("kind"),
    Column("api"),
    Column("client_id"),
    Column("client_address"),
    Column("broker_address"),
    Column("bytes", "size"),
    Column("held", "duration"),
    Column("rule"),
    Column("summary"),
)
CONNECTIONS: Final = (
    Column("number", "count"),
    Column("client_id"),
    Column("client_address"),
    Column("broker_address"),
    Column("node", "count"),
    Column("age", "duration"),
    Column("in_flight", "count"),
    Column("unsent", "size"),
    Column("stopped", "list"),
)
RULES: Final = (
    Column("name"),
    Column("side"),
    Column("matched", "count"),
    Column("fired", "count"),
    Column("rule"),
)
COUNTERS: Final = (
    Column("name"),
    Column("label"),
    Column("value", "count"),
)


def _addressed(told: dict[str, Any]) -> Line:
    """Return what the control channel says, with the names of columns for both addresses."""
    return {**told, "client_address": told.get("client"), "broker_address": told.get("broker")}


def held_line(told: dict[str, Any], now_ns: int) -> Line:
    """Return a held frame with how long it waits."""
    since, version = told.get("since_ns"), told.get("version")
    return {
        **_addressed(told),
        "api": told["api"] if version is None else f"{told['api']} v{version}",
        "held": None if since is None else max(0, now_ns - since),
    }


def connection_line(told: dict[str, Any], now_ns: int) -> Line:
    """Return a connection of the proxy with its age and what it has not sent."""
    stopped = zip(("requests", "responses"), told.get("stopped") or (), strict=False)
    return {
        **_addressed(told),
        "age": max(0, now_ns - told["opened_ns"]),
        "unsent": sum(told.get("unsent") or ()),
        "stopped": [f"{side}: {why}" for side, why in stopped if why],
    }


def rates_of(lines: Sequence[Line]) -> list[Spans]:
    """Draw exchanges and bytes a second of late, as bars and numbers."""
    width = lines[-1]["width"] or 1
    last = lines[-1]
    seconds = width / 1_000_000_000
    asked = [line["request_bytes"] + line["response_bytes"] for line in lines]
    slow = [line["excess"] or 0 for line in lines]
    failed = sum(line["failed"] for line in lines)
    rows = (
        (
            "exchanges",
            [line["requests"] for line in lines],
            f"{last['requests'] / seconds:,.0f} /s",
        ),
        ("bytes", asked, f"{size(int(asked[-1] / seconds))}/s"),
        ("mean excess", slow, duration(last["excess"])),
    )
    out: list[Spans] = []
    for name, counts, now in rows:
        bars = spark(counts)
        out.append([(f"{name:<13}", "dim"), (f"{bars:<{SECONDS}}", "bar"), (f"  {now:<12}", "")])
    span = duration(width * len(lines))
    out[0].append((f"in {span}", "dim"))
    out[1].append((f"{failed:,} errors", "!" if failed else "dim"))
    return out


def proxy_of(status: dict[str, Any]) -> list[Spans]:
    """Describe the state of the proxy."""
    if not status:
        return [[("No status yet", "dim")]]
    facts = [
        ("clients connect to", str(status.get("bootstrap", ""))),
        ("mode", str(status.get("mode", ""))),
        ("upstream", ", ".join(status.get("upstreams") or ())),
        ("connections", str(status.get("connections", ""))),
        ("held", str(status.get("held", ""))),
        ("recording", ", ".join(status.get("files") or ()) or "off (-w FILE)"),
        ("process", f"{status.get('pid', '?')}, kafkascope {status.get('version') or '?'}"),
    ]
    recording = status.get("recording")
    if recording:
        dropped = f", {recording['dropped']:,} packets not recorded" if recording["dropped"] else ""
        failed = f": {recording['failed']}" if recording["failed"] else ""
        facts.append(("recorded", size(recording["bytes"]) + dropped + failed))
    nodes = sorted((status.get("nodes") or {}).items(), key=lambda item: int(item[0]))
    routes: list[Spans] = [
        [(f"{node:<8}{each['listener']:<28}", ""), (each["broker"], "dim")] for node, each in nodes
    ]
    notices: list[Spans] = [[(str(text), "")] for text in (status.get("notices") or [])[-20:]]
    out: list[Spans] = [[(f"{name:<22}", "dim"), (text, "")] for name, text in facts]
    for title, lines in (
        (f"{'node':<8}{'advertised as':<28}broker", routes),
        ("messages", notices),
    ):
        out += [[], [(title, "header")], *lines] if lines else []
    return out


def counters_of(metrics: dict[str, dict[str, int]]) -> list[Line]:
    """Return all counters, one a line."""
    return [
        {"name": name, "label": label, "value": value}
        for name, values in sorted(metrics.items())
        for label, value in sorted(values.items())
    ]
