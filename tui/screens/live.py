"""Screen 8: what goes on now: rates, what is kept, and a proxy's rules and held frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from textual.app import ComposeResult

from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Hint, Key, bindings
from kafkascope.tui.process.control import Control, ControlError
from kafkascope.tui.process.watch import ProxyWatch
from kafkascope.tui.screens.board import Board
from kafkascope.tui.screens.editor import Editor
from kafkascope.tui.screens.panes import StaticLines
from kafkascope.tui.screens.picker import pick
from kafkascope.tui.screens.proxied import (
    CONNECTIONS,
    COUNTERS,
    HELD,
    RULES,
    SECONDS,
    connection_line,
    counters_of,
    held_line,
    proxy_of,
    rates_of,
)
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine, text_lines

NO_PROXY: Final = "Not attached to a proxy: kafkascope proxy --upstream HOST:PORT --open"


class LiveBoard(Board):
    """Shows rates, held frames and rules."""

    NUMBER = 8
    TITLE = "Live"
    STATISTICS = ("rates",)
    COMMAND = "kafkascope proxy --upstream HOST:PORT"
    TABS = ("Rules", "Connections", "Proxy", "Counters")
    LINES_MATTER = False
    NOTED = False  # rates are of now
    EMPTY = "No held frames. i holds frames that match a filter, for example api == Produce"
    NEEDS_EXCHANGES = False
    EARLY = EMPTY
    KEYS = (
        Key(
            "live.hold",
            "i",
            "i",
            "hold",
            "Hold frames that match a filter; empty stops holding",
            (Hint("table", 1, "hold"),),
        ),
        Key(
            "live.release",
            "u",
            "u",
            "release",
            "Release the held frame",
            (Hint("table", 2, "release"),),
        ),
        Key("live.release_all", "U", "U", "release_all", "Release all held frames"),
        Key(
            "live.drop",
            "d,delete",
            "d",
            "drop",
            "Drop the held frame; in Rules remove the rule",
            (
                Hint("table", 3, "drop"),
                Hint("tab", 1, "remove rule"),
            ),
        ),
        Key(
            "live.add_rule",
            "I",
            "I",
            "add_rule",
            "Add a rule: FILTER -> ACTION",
            (
                Hint("table", 2, "add rule"),
                Hint("tab", 1, "add rule"),
            ),
        ),
    )
    BINDINGS = bindings(KEYS)
    ENTER = "edit"
    HELP = (
        "Rates of the traffic. With a proxy, frames held by a rule wait here until you release "
        "(u), edit (Enter) or drop (d) them. Other rules delay, drop, fail or replace frames "
        "that match their filter. I adds one, for example: api == Produce -> error "
        "NOT_LEADER_OR_FOLLOWER first 3"
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.head = StaticLines(host.glyphs, id="liveboard-head")
        self.head.styles.height = 3
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
        """Yield the rates above the board."""
        yield self.head
        yield from super().compose()

    def hinted(self) -> tuple[Sequence[Key], str]:
        """Return no keys without a proxy: all of them act on its rules and held frames."""
        return super().hinted() if self.control is not None else ((), "")

    def make_sheet(self) -> Sheet:
        """Return the columns of held frames."""
        return Sheet(HELD, keep=("kind", "api", "held", "client_id"))

    def lines(self) -> Sequence[Line] | None:
        """Return the held frames."""
        return self.held

    def refresh_numbers(self) -> None:
        """Show the rates and the held frames."""
        super().refresh_numbers()
        problem = NO_PROXY if self.host.proxy is None else self.host.proxy.problem
        if problem:
            self.table.empty = problem
            self.table.changed()
        self.head.show(text_lines(self._head()))

    def _head(self) -> list[Spans]:
        rates = self.statistic("rates")
        lines = [] if rates is None else rates.rows()[-SECONDS:]
        progress = self.host.store.progress
        if not lines:
            return [[("No traffic yet" if not progress.done else "No traffic", "dim")]]
        head = rates_of(lines)
        kept = f"{len(self.host.store):,} exchanges in memory"
        if progress.ring:
            kept += ", the oldest are evicted"
        held = self.status.get("held", 0)
        if held > len(self.held):
            kept += f"; {held:,} frames are held, the first {len(self.held):,} are listed"
        head[-1].append((kept, "dim"))
        return head

    def tick(self) -> None:
        """Show another state of the proxy."""
        super().tick()
        proxy = self.host.proxy
        if proxy is None:
            return
        proxy.start(self.app.run_worker)
        if proxy.version != self._seen:
            self._seen = proxy.version
            self._take(proxy)

    def _take(self, proxy: ProxyWatch) -> None:
        state = proxy.state
        now = state.get("at_ns") or time.time_ns()
        self.status, self.metrics = proxy.status, state.get("metrics", {})
        self.rules = state.get("rules", [])
        self.held = [held_line(each, now) for each in state.get("held", ())]
        self.connections = [connection_line(each, now) for each in proxy.connections]
        self.refresh_numbers()

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return the rules, the connections, the state of the proxy, or its counters."""
        if self.control is None:
            return text_lines([[("Available only when attached to a proxy", "dim")]])
        if tab == "Proxy":
            return text_lines(proxy_of(self.status))
        if tab == "Rules" and not self.rules:
            return text_lines(
                [[("No rules: all traffic is forwarded unchanged   (I adds a rule)", "dim")]]
            )
        if tab == "Connections" and not self.connections:
            return text_lines([[("No clients connected", "dim")]])
        sheets = {
            "Rules": (RULES, ("rule", "fired"), self.rules),
            "Connections": (
                CONNECTIONS,
                ("client_address", "broker_address", "in_flight"),
                self.connections,
            ),
            "Counters": (COUNTERS, ("value",), counters_of(self.metrics)),
        }
        columns, keep, lines = sheets[tab]
        return Sheet(columns, keep=keep, alarms={"fired": "?", "unsent": "?"}).fill(lines)

    # --- actions ----------------------------------------------------------------------------

    def _steer(self, work: Coroutine[Any, Any, str], group: str = "steer") -> None:
        """Run what steers the proxy, and tell the sentence that comes of it."""

        async def run() -> None:
            try:
                said = await work
            except ControlError as error:
                self.host.shell.tell(str(error), "warning")
            else:
                if said:
                    self.host.shell.tell(said)

        self.run_worker(run(), group=group, exit_on_error=False)

    def _ask(self, said: Callable[[dict[str, Any]], str], do: str, **words: Any) -> None:
        """Ask the proxy to do something; `said` makes a sentence of its response."""
        control = self.control
        if control is None:
            self.host.shell.tell("Not attached to a proxy.")
            return

        async def ask(control: Control = control) -> str:
            return said(await control.ask(do, **words))

        self._steer(ask())

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
        title = (
            f"{line['kind']} {line['api']} of {line['client_id'] or line['client_address']}, held"
        )
        changed = await self.app.push_screen_wait(Editor(title, body, self.host.glyphs))
        if changed is None:
            return ""
        await control.ask("edit", number=number, body=changed)
        return f"Frame {number} was forwarded."

    def action_release(self) -> None:
        """Release the frame under the cursor."""
        if self.line is None:
            self.host.shell.tell("No held frames.")
        else:
            self._ask(lambda _: "", "release", number=self.line["number"])

    def action_release_all(self) -> None:
        """Release all held frames."""
        self._ask(lambda response: f"Released {response['released']}.", "release", number="all")

    def action_drop(self) -> None:
        """Drop the frame, or remove the rule, under the cursor."""
        if self.low_table.has_focus and self.tab == "Rules":
            rule = self.low_table.line
            if rule is not None:
                self._ask(lambda gone: f"Removed {gone['removed']}.", "remove", name=rule["name"])
        elif self.line is None:
            self.host.shell.tell("No held frames.")
        else:
            number = self.line["number"]
            self._ask(lambda _: f"Frame {number} was dropped.", "drop", number=number)

    def action_hold(self) -> None:
        """Ask for the filter of the frames to hold."""
        suggestions = [
            ("api == Produce", "api == Produce"),
            ("api == Fetch", "api == Fetch"),
            ("api in {JoinGroup, SyncGroup}", "api in {JoinGroup, SyncGroup}"),
            ("error != 0", "error != 0   (responses)"),
            ("", "stop holding"),
        ]

        def chosen(text: str) -> None:
            self._ask(lambda _: self._holding(text), "hold", filter=text or None)

        title = "Hold frames that match a filter (empty: stop holding)"
        pick(self.app, title, suggestions, self.host.glyphs, chosen, free=True, empty="")

    def _holding(self, text: str) -> str:
        """Say what is held from now on; an end of the hold releases no frame."""
        if text:
            return f"Holding frames that match {text}"
        if not self.held:
            return "Holding stopped."
        held = max(len(self.held), self.status.get("held", 0))
        frames = "1 frame is" if held == 1 else f"{held:,} frames are"
        return f"Holding stopped; {frames} still held (U releases all)."

    def action_add_rule(self) -> None:
        """Ask for a rule and add it."""
        suggestions = [
            (text, text)
            for text in (
                "api == Produce -> delay 200ms",
                "api == Produce -> error NOT_LEADER_OR_FOLLOWER first 3",
                "api == FindCoordinator -> error COORDINATOR_NOT_AVAILABLE once",
                "api == Heartbeat -> error REBALANCE_IN_PROGRESS once",
                "api == Fetch -> drop once",
                "api == Metadata -> stale-metadata",
            )
        ]

        def chosen(text: str) -> None:
            self._ask(lambda response: f"Added: {response['rule']['rule']}", "fault", rule=text)

        title = "Add a rule: FILTER -> ACTION"
        pick(self.app, title, suggestions, self.host.glyphs, chosen, free=True)
