"""Screen 8: what goes on now: rates, what is kept, and a proxy's rules and held frames."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding

from kafkascope.tui.keys import Key
from kafkascope.tui.process.control import ControlError
from kafkascope.tui.screens.board import Board, told
from kafkascope.tui.screens.editor import Editor
from kafkascope.tui.screens.ladder import Told
from kafkascope.tui.screens.panes import Still
from kafkascope.tui.screens.picker import Picker
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
from kafkascope.tui.screens.sheet import Sheet, Spans

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kafkascope.analyzer.statistics.model import Line
    from kafkascope.tui.process.control import Control

AGAIN_S: Final = 2.0
"""Until a proxy that does not answer is tried once more."""


class LiveBoard(Board):
    """Rates above, held frames, rules."""

    NUMBER = 8
    TITLE = "Live"
    STATISTICS = ("rates",)
    COMMAND = "kafkascope proxy --upstream HOST:PORT"
    TABS = ("Rules", "Connections", "Proxy", "Counters")
    LINES_MATTER = False
    NOTED = False  # rates are of now
    EMPTY = "nothing is held   (i holds what a filter matches, e.g.  api == Produce)"
    EARLY = EMPTY
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("live.hold", "i", "i", "hold", "hold what a filter matches; an empty one ends it"),
        Key("live.release", "u", "u", "release", "let the held frame go on"),
        Key("live.release_all", "U", "U", "release_all", "let all of them go on"),
        Key("live.drop", "d,delete", "d", "drop", "drop the held frame; in the rules: remove one"),
        Key("live.add_rule", "I", "I", "add_rule", "add a rule: FILTER -> ACTION"),
    )
    HELP = (
        "With a proxy: frames that a rule holds wait here until they are released (u), edited "
        "(Enter) or dropped (d); other rules delay, drop, break or replace what matches their "
        "filter. I adds one, such as: api == Produce -> error NOT_LEADER_OR_FOLLOWER first 3"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in KEYS
    ]

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self.head = Still(scene.glyphs, id="liveboard-head")
        self._watching = False
        self.held: list[Line] = []
        self.rules: list[Line] = []
        self.connections: list[Line] = []
        self.status: dict[str, Any] = {}
        self.metrics: dict[str, dict[str, int]] = {}
        self.problem = ""
        self.hold_filter = ""

    @property
    def control(self) -> Control | None:
        """The proxy, where there is one."""
        found: Control | None = getattr(self.scene, "control", None)
        return found

    def compose(self) -> ComposeResult:
        """Rates above the board."""
        yield self.head
        yield from super().compose()

    def on_mount(self) -> None:
        """Ask at once."""
        super().on_mount()
        self.head.styles.height = 3

    def make_sheet(self) -> Sheet:
        """What is held."""
        return Sheet(HELD, keep=("kind", "api", "waits", "client_id"))

    def lines(self) -> Sequence[Line] | None:
        """What is held."""
        if self.control is None:
            self.table.empty = ""
        return self.held

    def refresh_numbers(self) -> None:
        """Rates, and what is held."""
        super().refresh_numbers()
        if self.control is None:
            self.table.empty = "no proxy here: kafkascope proxy --upstream HOST:PORT --open"
            self.table.changed()
        elif self.problem:
            self.table.empty = self.problem
            self.table.changed()
        self.head.show(told(self._head()))

    def _head(self) -> list[Spans]:
        rates = self.statistic("rates")
        lines = [] if rates is None else rates.rows()[-SECONDS:]
        progress = self.scene.store.progress
        if not lines:
            return [[("no traffic yet" if not progress.done else "no traffic", "dim")]]
        head = rates_of(lines)
        kept = f"{len(self.scene.store):,} exchanges kept"
        if progress.ring:
            kept += ", the oldest go when there are too many"
        head[-1].append((kept, "dim"))
        return head

    def tick(self) -> None:
        """Watch the proxy, from the first time that the board is seen."""
        super().tick()
        if self.control is not None and not self._watching:
            self._watching = True
            self.run_worker(self._watch(self.control), group="watch", exit_on_error=False)

    async def _watch(self, control: Control) -> None:
        while True:
            try:
                async with aclosing(control.states()) as states:
                    async for state in states:
                        self.problem = ""
                        self._take(state, (await control.ask("connections"))["connections"])
            except ControlError as error:
                self.problem = str(error)
                self.held, self.rules, self.connections = [], [], []
                self.refresh_numbers()
            await asyncio.sleep(AGAIN_S)

    def _take(self, state: dict[str, Any], connections: list[dict[str, Any]]) -> None:
        now = state.get("at_ns") or time.time_ns()
        self.status, self.metrics = state["status"], state["metrics"]
        self.rules = state["rules"]
        self.held = [held_line(each, now) for each in state["held"]]
        self.connections = [connection_line(each, now) for each in connections]
        self.refresh_numbers()

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[Told]:
        """Rules, the proxy itself, its counters."""
        if self.control is None:
            return told([[("rules, held frames and counters are a proxy's", "dim")]])
        if tab == "Proxy":
            return told(proxy_of(self.status))
        if tab == "Rules" and not self.rules:
            return told([[("no rule: all passes as it is   (I adds one)", "dim")]])
        if tab == "Connections" and not self.connections:
            return told([[("nobody is connected", "dim")]])
        sheets = {
            "Rules": (RULES, ("rule", "fired"), self.rules),
            "Connections": (CONNECTIONS, ("client", "broker", "in_flight"), self.connections),
            "Counters": (COUNTERS, ("value",), counters_of(self.metrics)),
        }
        columns, keep, lines = sheets[tab]
        sheet = Sheet(columns, keep=keep, alarms={"fired": "?", "unsent": "?"})
        sheet.fill(lines)
        return sheet

    # --- actions ----------------------------------------------------------------------------

    def _do(self, what: Callable[[Control], Awaitable[str]]) -> None:
        """Ask for something, say what came of it, look again."""
        control = self.control
        if control is None:
            self.scene.tell("there is no proxy to steer")
            return

        async def run() -> None:
            try:
                said = await what(control)
            except ControlError as error:
                self.scene.tell(str(error), "warning")
            else:
                if said:
                    self.scene.tell(said)

        self.run_worker(run(), group="steer", exit_on_error=False)

    def action_open_line(self) -> None:
        """Edit the held frame."""
        line = self.line
        control = self.control
        if line is None or control is None or self.below:
            return
        number = line["number"]

        async def edit() -> None:
            try:
                body = (await control.ask("show", number=number))["body"]
            except ControlError as error:
                self.scene.tell(str(error), "warning")
                return
            if body is None:
                self.scene.tell("its body cannot be decoded: u releases it, d drops it", "warning")
                return
            title = f"{line['kind']} {line['api']} of {line['client_id'] or line['client']}, held"
            changed = await self.app.push_screen_wait(Editor(title, body, self.scene.glyphs))
            if changed is None:
                return
            await control.ask("edit", number=number, body=changed)
            self.scene.tell(f"frame {number} was sent on")

        async def run() -> None:
            try:
                await edit()
            except ControlError as error:
                self.scene.tell(str(error), "warning")

        self.run_worker(run(), group="edit", exit_on_error=False)

    def action_release(self) -> None:
        """Let the frame under the cursor go on."""
        line = self.line
        if line is None:
            self.scene.tell("nothing is held")
            return
        number = line["number"]

        async def release(control: Control) -> str:
            await control.ask("release", number=number)
            return ""

        self._do(release)

    def action_release_all(self) -> None:
        """Let all go on."""

        async def release(control: Control) -> str:
            told = await control.ask("release", number="all")
            return f"{told['released']} released"

        self._do(release)

    def action_drop(self) -> None:
        """Drop the frame, or remove the rule, under the cursor."""
        if self.low_table.has_focus and self.tab == "Rules":
            line = self.low_table.line
            if line is None:
                return
            name = line["name"]

            async def remove(control: Control) -> str:
                told = await control.ask("remove", name=name)
                return f"{told['removed']} removed"

            self._do(remove)
            return
        line = self.line
        if line is None:
            self.scene.tell("nothing is held")
            return
        number = line["number"]

        async def drop(control: Control) -> str:
            await control.ask("drop", number=number)
            return f"frame {number} was dropped"

        self._do(drop)

    def action_hold(self) -> None:
        """Ask for the filter of what is to be held."""
        suggestions = [
            ("api == Produce", "api == Produce"),
            ("api == Fetch", "api == Fetch"),
            ("api in {JoinGroup, SyncGroup}", "api in {JoinGroup, SyncGroup}"),
            ("error != 0", "error != 0   (responses)"),
            ("", "hold nothing any longer"),
        ]

        def chosen(text: str | None) -> None:
            if text is None:
                return

            async def hold(control: Control) -> str:
                await control.ask("hold", filter=text or None)
                self.hold_filter = text
                return f"holding {text}" if text else "holding nothing any longer"

            self._do(hold)

        title = "hold what matches (a filter; empty: nothing)"
        self.app.push_screen(
            Picker(title, suggestions, self.scene.glyphs, free=True, empty=""), chosen
        )

    def action_add_rule(self) -> None:
        """Ask for a rule."""
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

        def chosen(text: str | None) -> None:
            if not text:
                return

            async def add(control: Control) -> str:
                told = await control.ask("fault", rule=text)
                return f"added: {told['rule']['rule']}"

            self._do(add)

        self.app.push_screen(
            Picker("add a rule: FILTER -> ACTION", suggestions, self.scene.glyphs, free=True),
            chosen,
        )
