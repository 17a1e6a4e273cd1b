"""The terminal UI: puts controllers and panes together and passes messages to them. Decides nothing
about Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.markup import escape
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from kafkascope.tui.commands import GoTo, commands
from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.controllers.filter import FilterController
from kafkascope.tui.controllers.findings import FindingsController
from kafkascope.tui.controllers.help import HelpController
from kafkascope.tui.controllers.inputs import InputsController, PortsController
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.marks import ComparisonController, MarksController
from kafkascope.tui.controllers.navigation import NavigationController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.controllers.panes import PanesController
from kafkascope.tui.controllers.prompt import PromptController
from kafkascope.tui.controllers.reading import ReadingController
from kafkascope.tui.controllers.search import JumpsController, SearchController
from kafkascope.tui.controllers.sharing import CopyController, ExportController
from kafkascope.tui.controllers.status import StatusController
from kafkascope.tui.controllers.table import BELOW, FIRST, KEYS, LIST_ONLY
from kafkascope.tui.controllers.values import ValuesController
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.host import Counted, Host
from kafkascope.tui.settings.config import Config
from kafkascope.tui.settings.notes import Notes
from kafkascope.tui.settings.palette import Glyphs, use
from kafkascope.tui.settings.themes import register
from kafkascope.tui.views.detail import DetailPane
from kafkascope.tui.views.exchanges import ExchangeList, ListHeading
from kafkascope.tui.views.hexpane import HexPane
from kafkascope.tui.views.lines import Lines
from kafkascope.tui.views.safe import SafeHighlighter
from kafkascope.tui.views.screen_tabs import ScreenTabs
from kafkascope.tui.views.splitter import Splitter

if TYPE_CHECKING:
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.process.control import Control

TICK: Final = 0.1
HIGH: Final = 10
"""Lines of the terminal from which the bar of tabs is shown."""
HELLO: Final = 30.0
"""Seconds that the first notification stays."""


class ScopeApp(App[None]):
    """Shows one input: the list of exchanges, and boards in its place."""

    CSS_PATH = Path(__file__).with_name("app.tcss")  # a subclass may live elsewhere
    TITLE = "kafkascope"
    COMMANDS = App.COMMANDS | {GoTo}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key.keys, key.bound, key.help, id=key.id, show=False, priority=key.id in FIRST)
            for key in KEYS
        ),
        Binding("escape", "escape", "leave", show=False),
    ]

    def __init__(
        self,
        feed: Feed,
        name: str,
        *,
        filter_text: str = "",
        plain: bool = False,
        times: str = "u",
        counted: Counted | None = None,
        control: Control | None = None,
        notes: Notes | None = None,
        config: Config | None = None,
    ) -> None:
        """`counted` counts numbers for the boards, `control` steers a proxy."""
        super().__init__()
        self.glyphs = Glyphs(plain)
        self.config = config
        self.hello = ""
        """A notification for the start."""
        self.animation_level = "none"
        self.workspace = Workspace(feed, name, filter_text=filter_text, notes=notes)
        self.list = ExchangeList(self.workspace, self.glyphs, times)
        self.detail, self.hex = DetailPane(self.glyphs), HexPane(self.glyphs)
        self.screens = ScreenTabs(self.glyphs)
        self.host = Host(self.workspace, self, self.list, counted, control)
        context = Context(self.workspace, self, self.list, self.detail, self.hex)
        self.panes = PanesController(context)
        self.prompt = PromptController(context)
        self.filter = FilterController(context)
        self.search = SearchController(context)
        self.inspector = InspectorController(context)
        self.marks = MarksController(context)
        self.values = ValuesController(context)
        self.order = OrderController(context)
        self.exports = ExportController(context)
        self.inputs = InputsController(context)
        self.findings = FindingsController(context)
        self.navigation = NavigationController(
            context, self.panes, self.filter, self.order, self.inspector, self.search
        )
        self.reading = ReadingController(context, self.marks, self.order, self.inspector)
        self.status = StatusController(
            context,
            KEYS,
            self.panes,
            self.navigation,
            self.filter,
            self.order,
            self.inspector,
            self.findings,
        )
        # The rest of what controllers call is at the end of the class.
        self.pick, self.ask, self.typed = self.prompt.pick, self.prompt.ask, self.prompt.typed
        self.look, self.look_again = self.inspector.look, self.inspector.look_again
        self.prepare_filter, self.focus_view = self.filter.prepare, self.panes.focus_view
        self.here, self.push_view = self.navigation.here, self.navigation.push
        self.restore_view, self.show_filter = self.navigation.restore, self.navigation.show_filter
        self.show_exchange = self.navigation.show_exchange
        self.show_limited = self.navigation.show_limited
        self.step, self.rows_changed = self.search.step, self.host.filter_changed
        self.findings_pending, self.remark = self.findings.pending, self.status.remark
        self.controllers: tuple[Controller, ...] = (
            self.filter,
            self.search,
            self.panes,
            self.inspector,
            self.marks,
            self.values,
            self.order,
            self.exports,
            self.inputs,
            JumpsController(context),
            CopyController(context),
            ComparisonController(context),
            PortsController(context, self.inputs),
            self.navigation,
            HelpController(context, KEYS),
        )
        self._actions: dict[str, Callable[[], Any]] = {}
        for each in self.controllers:
            self._actions |= each.actions()
        if config is not None and config.keys:
            self.set_keymap(config.keys)

    def compose(self) -> ComposeResult:
        """Yield the widgets from top to bottom."""
        yield Static(id="header", markup=False)
        yield self.screens
        yield from self.filter.compose()
        yield from self.panes.compose()
        yield from self.prompt.compose()
        yield Static(id="footer", markup=False)

    def on_mount(self) -> None:
        """Tell what is wrong with files of the user, and start to read."""
        work = self.workspace
        said = list(self.config.said) if self.config is not None else []
        said.append(register(self, self.config.theme if self.config is not None else ""))
        said += [work.notes.said, self.filter.saved_said, work.colours.said]
        work.notes.said = ""
        for text in filter(None, said):
            self.tell(text, "warning")
        if self.hello:
            lines = [self.glyphs.text(line) for line in self.hello.splitlines()]
            self.notify("\n".join(lines), timeout=HELLO, markup=False)
        self.theme_changed_signal.subscribe(self, lambda theme: self._recolour(theme.dark))
        self.focus_now(self.list)
        self.panes.rearrange()
        if self.host.proxy is not None:
            self.host.proxy.start(self.run_worker)
        self.set_interval(TICK, self.tick)
        self.tick()

    def _recolour(self, dark: bool) -> None:
        use(dark=dark)
        for lines in self.screen_stack[0].query(Lines):
            lines.changed()
        self.update_status()

    def tick(self) -> None:
        """Take in rows and numbers; called every `TICK` seconds."""
        self.host.tick()
        self.findings.tick()
        self.reading.tick()
        self.navigation.tick()
        self.panes.fit()

    # --- keys -------------------------------------------------------------------------------

    async def action_run(self, id_: str) -> None:
        """Call what a controller declares for a key."""
        done = self._actions[id_]()
        if isawaitable(done):
            await done

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys of the list while a board is shown, / where text is typed, and keys that come
        first (`FIRST`) below a dialog."""
        id_ = parameters[0] if action == "run" else None
        if id_ in BELOW and len(self.screen_stack) > 1:
            return False
        if id_ == "filter.focus" and isinstance(self.focused, Input | TextArea):
            return False
        return self.host.board is None or id_ not in LIST_ONLY

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield what the palette offers."""
        about = "Change colours; kafkascope and kafkascope-light are tested for contrast"
        yield SystemCommand("Change the theme", about, self.action_change_theme)
        yield SystemCommand("Quit", "key Q", self.action_quit)
        for title, about, run, *_ in commands(self):
            # The palette takes texts as markup, which can bind actions to a click.
            yield SystemCommand(
                escape(self.glyphs.text(title)), escape(self.glyphs.text(about)), run
            )

    def action_leave(self) -> None:
        """Go back; at the root leave the program."""
        if not self.navigation.back():
            self.inputs.leave()

    def action_escape(self) -> None:
        """Close the question, leave the filter box as it was, or go back; at the root remove the
        filter."""
        if self.typed() is not None:
            self.prompt.end()
        elif self.filter.box.has_focus:
            self.filter.cancel()
        elif not self.navigation.back() and self.filter.text:
            self.filter.restore("")
        self.update_status()

    async def action_quit(self) -> None:
        """Leave the program."""
        self.inputs.leave()

    # --- messages ---------------------------------------------------------------------------

    def on_unmount(self) -> None:
        """Stop counting for boards."""
        self.host.close()

    def on_resize(self, event: events.Resize) -> None:
        """Arrange the panes for the new size."""
        self.panes.arrange(event.size.width, event.size.height)

    def on_key(self, event: events.Key) -> None:
        """Take up and down in the filter, which Textual has no use for."""
        if self.focused is self.filter.box and event.key in ("up", "down"):
            self.filter.history(event.key)
            event.stop()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follow the focus, which the mouse moves as well."""
        if event.widget is self.filter.box:
            self.filter.begin()
        if isinstance(event.widget, ExchangeList | DetailPane | HexPane):
            self.panes.entered = event.widget
        self.update_status()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Hide completions when the filter loses the focus."""
        if event.widget is self.filter.box:
            self.filter.choices.show(None)
            self.filter.commit()

    @on(CommandPalette.Opened)
    def palette_opened(self) -> None:
        """Let the input of the palette draw text as ours do."""
        for box in self.screen.query(Input):
            box.highlighter = SafeHighlighter(self.glyphs)

    @on(Input.Changed, "#filter")
    def filter_typed(self, event: Input.Changed) -> None:
        """Pass on what is typed into the filter."""
        self.filter.typed(event.value)

    @on(Input.Submitted, "#filter")
    def filter_entered(self, event: Input.Submitted) -> None:
        """Pass on Enter in the filter."""
        self.filter.entered(event.value)

    @on(Input.Submitted, "#prompt")
    def prompt_entered(self, event: Input.Submitted) -> None:
        """Pass on the answer to a question."""
        self.prompt.answered(event.value)

    @on(ScreenTabs.Picked)
    async def screen_clicked(self, event: ScreenTabs.Picked) -> None:
        """Show the screen of a tab."""
        await self.show_screen(event.number)

    @on(Lines.Moved)
    def cursor_moved(self, event: Lines.Moved) -> None:
        """Follow the cursor of the list or of the detail."""
        if event.lines is self.list:
            self.navigation.cursor_moved()
            self.order.cursor_moved()
            self.inspector.look_soon()
        elif event.lines is self.detail:
            self.inspector.light_bytes()

    @on(DetailPane.Wanted)
    def unfold_wanted(self, event: DetailPane.Wanted) -> None:
        """Open a line that takes long to make."""
        self.inspector.unfold(event.item)

    @on(HexPane.Picked)
    def byte_picked(self, event: HexPane.Picked) -> None:
        """Select the field of a byte."""
        self.inspector.pick_byte(event.at)

    @on(ListHeading.Picked)
    def title_clicked(self, event: ListHeading.Picked) -> None:
        """Sort by the column of the title."""
        self.order.order_by(event.name)

    @on(ExchangeList.Opened)
    def row_opened(self) -> None:
        """Open the detail on a double click."""
        self.panes.open()

    @on(events.Click, "#tabs")
    def tab_clicked(self, event: events.Click) -> None:
        """Show the tab under the mouse."""
        self.inspector.click_tabs(event.x)

    @on(Splitter.Dragged, "#bar")
    def bar_dragged(self, event: Splitter.Dragged) -> None:
        """Resize the bytes."""
        self.panes.drag_bar(event.x)

    @on(Splitter.Dragged, "#tabs")
    def tabs_dragged(self, event: Splitter.Dragged) -> None:
        """Resize the list."""
        self.panes.drag_tabs(event.x, event.y)

    # --- what controllers call --------------------------------------------------------------

    def tell(self, text: str, severity: Any = "information") -> None:
        """Show a sentence for a while."""
        self.notify(self.glyphs.text(text), severity=severity, markup=False)

    def update_status(self) -> None:
        """Draw header, titles, tabs, the state of the filter and the footer again."""
        if self.is_running:
            self.status.update()
            high = self.size.height >= HIGH
            if self.screens.display != high:
                self.screens.display = high
            self.screens.show(self.host.tabs(), self.host.number, self.size.width)

    def write(self, name: str, text: str, style: Style) -> None:
        """Put a text into a line of the main screen, by its id."""
        new = self.glyphs.rich(text, style)
        for widget in self.screen_stack[0].query(f"#{name}").results(Static):
            old = widget.content
            if not isinstance(old, Text) or (old.plain, old.style) != (new.plain, style):
                # Another layout is for those that are as wide as their text.
                widget.update(new, layout=bool(widget.styles.is_auto_width))

    def put_on_clipboard(self, text: str) -> None:
        """Copy through the terminal (OSC 52), which works over ssh and in tmux."""
        self.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self.tell(f"Copied {len(text):,} characters.")

    def focus_now(self, widget: Widget) -> None:
        """Give a widget the focus before the next key is handled: `Widget.focus` does so later, and
        what is typed quickly would go astray."""
        self.screen_stack[0].set_focus(widget)

    def take_choice(self) -> bool:
        """Complete what is typed into the filter."""
        return self.filter.box.has_focus and self.filter.take_choice()

    def shows_context(self) -> bool:
        """Return whether the detail shows the context of an exchange."""
        return self.inspector.tab == "Context"

    def in_list(self) -> bool:
        """Return whether the list was the last pane to have the focus."""
        return self.panes.entered is self.list

    async def show_screen(self, number: int) -> None:
        """Show a screen: 1 is the list, the others are boards."""
        if number == self.host.number:
            return
        if self.hello:
            self.hello = ""
            self.clear_notifications()
        await self.navigation.show_screen(number)

    def stop_activity(self) -> None:
        """Stop the search or the export that runs."""
        self.exports.stop()
        self.search.stop()
