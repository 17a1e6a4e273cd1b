"""Screen 8: what goes on now: rates, what is kept, and a proxy's rules and held frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from textual.app import ComposeResult

from kafkascope.analyzer.render.cells import duration, size
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Key
from kafkascope.tui.process.control import Control, ControlError
from kafkascope.tui.screens.board import Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.charts import spark
from kafkascope.tui.screens.panes import StaticLines
from kafkascope.tui.screens.sheet import Sheet, Spans
from kafkascope.tui.views.dialogs import Editor

# Seconds of rates that are drawn.
SECONDS: Final = 60
NUMBER: Final = Column("number", "count")
ADDRESSES: Final = (Column("client_id"), Column("client_address"), Column("broker_address"))
HELD: Final = (
    *(NUMBER, Column("kind"), Column("api"), *ADDRESSES, Column("bytes", "size")),
    *(Column("held", "duration"), Column("rule"), Column("summary")),
)
CONNECTIONS: Final = (
    *(NUMBER, *ADDRESSES, Column("node", "count"), Column("age", "duration")),
    *(Column("in_flight", "count"), Column("unsent", "size"), Column("stopped", "list")),
)
RULES: Final = (
    *(Column("name"), Column("side"), Column("matched", "count"), Column("fired", "count")),
    Column("rule"),
)
COUNTERS: Final = (Column("name"), Column("label"), Column("value", "count"))


def _addressed(state: dict[str, Any]) -> Line:
    """Return what the control channel sent, with the names of columns for both addresses."""
    return {**state, "client_address": state.get("client"), "broker_address": state.get("broker")}


def held_line(frame: dict[str, Any], now_ns: int) -> Line:
    """Return a held frame with how long it waits."""
    since, version = frame.get("since_ns"), frame.get("version")
    return {
        **_addressed(frame),
        "api": frame["api"] if version is None else f"{frame['api']} v{version}",
        "held": None if since is None else max(0, now_ns - since),
    }


def connection_line(connection: dict[str, Any], now_ns: int) -> Line:
    """Return a connection of the proxy with its age and what it has not sent."""
    stopped = zip(("requests", "responses"), connection.get("stopped") or (), strict=False)
    return {
        **_addressed(connection),
        "age": max(0, now_ns - connection["opened_ns"]),
        "unsent": sum(connection.get("unsent") or ()),
        "stopped": [f"{side}: {why}" for side, why in stopped if why],
    }


def rates_of(lines: Sequence[Line], room: int = SECONDS) -> list[Spans]:
    """Draw exchanges and bytes a second of late, as bars in the `room` and numbers."""
    last, width = lines[-1], lines[-1]["width"] or 1
    seconds = width / 1_000_000_000
    counts = [line["requests"] for line in lines]
    octets = [(line["request_bytes"] or 0) + (line["response_bytes"] or 0) for line in lines]
    excess = [line["excess"] or 0 for line in lines]
    failed = sum(line["failed"] for line in lines)
    rows = (
        ("exchanges", counts, f"{last['requests'] / seconds:,.0f} /s"),
        ("bytes", octets, f"{size(int(octets[-1] / seconds))}/s"),
        ("mean excess", excess, duration(last["excess"])),
    )
    out: list[Spans] = [
        [(f"{name:<13}", "dim"), (f"{spark(values):<{room}}", "bar"), (f"  {now:<12}", "")]
        for name, values, now in rows
    ]
    out[0].append((f"in {duration(width * len(lines))}", "dim"))
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
    heading = f"{'node':<8}{'advertised as':<28}broker"
    for title, lines in ((heading, routes), ("messages", notices)):
        out += [[], [(title, "header")], *lines] if lines else []
    return out


def counters_of(metrics: dict[str, dict[str, int]]) -> list[Line]:
    return [
        {"name": name, "label": label, "value": value}
        for name, values in sorted(metrics.items())
        for label, value in sorted(values.items())
    ]


# --- the board ------------------------------------------------------------------------------------

NO_PROXY: Final = "Not attached to a proxy: kafkascope proxy --upstream HOST:PORT --open"
EMPTY: Final = "No held frames. i holds frames that match a filter, for example api == Produce"
HOLDS: Final = (
    *((text, text) for text in ("api == Produce", "api == Fetch")),
    ("api in {JoinGroup, SyncGroup}", "api in {JoinGroup, SyncGroup}"),
    ("error != 0", "error != 0   (responses)"),
    ("", "stop holding"),
)
"""Filters that are suggested for frames to hold."""
FAULTS: Final = (
    "api == Produce -> delay 200ms",
    "api == Produce -> error NOT_LEADER_OR_FOLLOWER first 3",
    "api == FindCoordinator -> error COORDINATOR_NOT_AVAILABLE once",
    "api == Heartbeat -> error REBALANCE_IN_PROGRESS once",
    "api == Fetch -> drop once",
    "api == Metadata -> stale-metadata",
)
"""Rules that are suggested."""


class LiveBoard(Board):
    """Shows rates, held frames and rules."""

    def __init__(self, host: Host, spec: BoardSpec) -> None:
        super().__init__(host, spec)
        self.head = StaticLines(host.glyphs)
        self.head.styles.height = 3
        self.head.opened = self.action_open_line
        self._seen = 0
        """The version of the proxy's state that is shown."""
        self.held: list[Line] = []
        self.rules: list[Line] = []
        self.connections: list[Line] = []
        self.status: dict[str, Any] = {}
        self.metrics: dict[str, dict[str, int]] = {}

    @property
    def control(self) -> Control | None:
        """The connection to the proxy, where there is one."""
        return None if self.host.proxy is None else self.host.proxy.control

    def compose(self) -> ComposeResult:
        yield self.head
        yield from super().compose()

    def hinted(self) -> tuple[Sequence[Key], str]:
        """Return no keys without a proxy: all of them act on its rules and held frames."""
        return super().hinted() if self.control is not None else ((), "")

    def lines(self) -> Sequence[Line] | None:
        return self.held

    def refresh_numbers(self) -> None:
        super().refresh_numbers()
        problem = NO_PROXY if self.host.proxy is None else self.host.proxy.problem
        if problem:
            self.table.empty = problem
            self.table.changed()
        self.head.show(self._head())

    def _head(self) -> list[Spans]:
        rates = self.statistic(self.spec.statistic)
        # Numbers before bars: 13 columns of names, 14 of rates, 24 of what else is counted.
        room = max(8, min(SECONDS, self.app.size.width - 53))
        lines = [] if rates is None else rates.rows()[-room:]
        progress = self.host.store.progress
        if not lines:
            return [[("No traffic yet" if not progress.done else "No traffic", "dim")]]
        head = rates_of(lines, room)
        kept = f"{len(self.host.store):,} exchanges in memory"
        if progress.ring:
            kept += ", the oldest are evicted"
        held = self.status.get("held", 0)
        if held > len(self.held):
            kept += f"; {held:,} frames are held, the first {len(self.held):,} are listed"
        head[-1].append((kept, "dim"))
        return head

    def tick(self) -> None:
        super().tick()
        proxy = self.host.proxy
        if proxy is None:
            return
        proxy.start(self.app.run_worker)
        if proxy.version == self._seen:
            return
        self._seen, state = proxy.version, proxy.state
        now = state.get("at_ns") or time.time_ns()
        self.status, self.metrics = proxy.status, state.get("metrics", {})
        self.rules = state.get("rules", [])
        self.held = [held_line(each, now) for each in state.get("held", ())]
        self.connections = [connection_line(each, now) for each in proxy.connections]
        self.refresh_numbers()

    # --- actions ----------------------------------------------------------------------------

    def _steer(self, work: Coroutine[Any, Any, str], group: str = "steer") -> None:
        """Run what steers the proxy, and show the sentence that it returns."""

        async def run() -> None:
            try:
                text, severity = await work, "information"
            except ControlError as error:
                text, severity = str(error), "warning"
            if text:
                self.host.shell.say(text, severity)

        self.run_worker(run(), group=group, exit_on_error=False)

    def request(self, worded: Callable[[dict[str, Any]], str], do: str, **words: Any) -> None:
        """Request something of the proxy; `worded` makes a sentence of its response."""
        control = self.control
        if control is None:
            self.host.shell.say("Not attached to a proxy.")
            return

        async def run(control: Control = control) -> str:
            return worded(await control.ask(do, **words))

        self._steer(run())

    def action_open_line(self) -> None:
        """Edit the held frame under the cursor."""
        line, control = self.line, self.control
        if line is not None and control is not None and not self.below:
            self._steer(self._edit(control, line), "edit")

    async def _edit(self, control: Control, line: Line) -> str:
        number = line["number"]
        body = (await control.ask("show", number=number))["body"]
        if body is None:
            raise ControlError("The body cannot be decoded: u releases the frame, d drops it")
        client = line["client_id"] or line["client_address"]
        title = f"{line['kind']} {line['api']} of {client}, held"
        changed = await self.app.push_screen_wait(Editor(title, body, self.host.glyphs))
        if changed is None:
            return ""
        await control.ask("edit", number=number, body=changed)
        return f"Frame {number} was forwarded."

    def frame(self, do: str, text: str) -> None:
        """Release or drop the frame under the cursor."""
        if self.line is None:
            self.host.shell.say("No held frames.")
        else:
            number = self.line["number"]
            self.request(lambda _: text.format(number), do, number=number)

    def drop(self) -> None:
        """Drop the frame, or remove the rule, under the cursor."""
        if not (self.low_table.has_focus and self.tab == "Rules"):
            self.frame("drop", "Frame {} was dropped.")
        elif (rule := self.low_table.line) is not None:
            self.request(lambda gone: f"Removed {gone['removed']}.", "remove", name=rule["name"])

    def hold(self) -> None:
        def chosen(text: str) -> None:
            self.request(lambda _: self._holding(text), "hold", filter=text or None)

        title = "Hold frames that match a filter (empty: stop holding)"
        self.host.shell.pick(title, HOLDS, chosen, free=True, empty="")

    def _holding(self, text: str) -> str:
        """Say what is held from now on; an end of the hold releases no frame."""
        if text:
            return f"Holding frames that match {text}"
        if not self.held:
            return "Holding stopped."
        held = max(len(self.held), self.status.get("held", 0))
        frames = "1 frame is" if held == 1 else f"{held:,} frames are"
        return f"Holding stopped; {frames} still held (U releases all)."

    def add_rule(self) -> None:
        def chosen(text: str) -> None:
            self.request(lambda added: f"Added: {added['rule']['rule']}", "fault", rule=text)

        choices = [(text, text) for text in FAULTS]
        self.host.shell.pick("Add a rule: FILTER -> ACTION", choices, chosen, free=True)


def _tab(show: Callable[[LiveBoard], Content]) -> Tab:
    none = "Available only when attached to a proxy"
    return Tab(lambda board, line: none if board.control is None else show(board))


def _rules(board: LiveBoard) -> Content:
    if not board.rules:
        return "No rules: all traffic is forwarded unchanged   (I adds a rule)"
    return Sheet(RULES, keep=("rule", "fired"), alarms={"fired": "?"}).fill(board.rules)


def _connections(board: LiveBoard) -> Content:
    if not board.connections:
        return "No clients connected"
    keep = ("client_address", "broker_address", "in_flight")
    return Sheet(CONNECTIONS, keep=keep, alarms={"unsent": "?"}).fill(board.connections)


BOARD: Final = BoardSpec(
    number=8,
    statistic="rates",
    command="kafkascope proxy --upstream HOST:PORT",
    help=(
        "Rates of the traffic. With a proxy, frames held by a rule wait here until you release "
        "(u), edit (Enter) or drop (d) them. Other rules delay, drop, fail or replace frames "
        "that match their filter. I adds one, for example: api == Produce -> error "
        "NOT_LEADER_OR_FOLLOWER first 3"
    ),
    tabs={
        "Rules": _tab(_rules),
        "Connections": _tab(_connections),
        "Proxy": _tab(lambda board: proxy_of(board.status)),
        "Counters": _tab(
            lambda board: Sheet(COUNTERS, keep=("value",)).fill(counters_of(board.metrics))
        ),
    },
    sheet=lambda board: Sheet(HELD, keep=("kind", "api", "held", "client_id")),
    evidence=lambda board, line: "",
    keys=(
        Key(
            "live.hold", "i", "call('hold')", "Hold frames that match a filter; empty stops holding"
        ),
        Key("live.release", "u", "call('release')", "Release the held frame"),
        Key("live.release_all", "U", "call('release_all')", "Release all held frames"),
        Key(
            "live.drop",
            "d,delete",
            "call('drop')",
            "Drop the held frame; in Rules remove the rule",
            "d",
        ),
        Key("live.add_rule", "I", "call('add_rule')", "Add a rule: FILTER -> ACTION"),
    ),
    actions={
        "hold": LiveBoard.hold,
        "release": lambda board: board.frame("release", ""),
        "release_all": lambda board: board.request(
            lambda gone: f"Released {gone['released']}.", "release", number="all"
        ),
        "drop": LiveBoard.drop,
        "add_rule": LiveBoard.add_rule,
    },
    enter="edit",
    empty=EMPTY,
    early=EMPTY,
    about_lines=False,
    needs_exchanges=False,
    warns=False,
    board=LiveBoard,
)
