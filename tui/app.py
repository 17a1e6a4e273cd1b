"""The terminal UI: puts controllers and panes together and passes messages to them. Decides nothing
about Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import events, on
from textual.actions import parse
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode
from textual.markup import escape
from textual.screen import Screen
from textual.widgets import Input, Static, TextArea

from kafkascope.tui.boards import Boards
from kafkascope.tui.controllers.controller import ControllerContext
from kafkascope.tui.controllers.filter import FilterController, PromptController
from kafkascope.tui.controllers.help import HelpController
from kafkascope.tui.controllers.inputs import InputsController
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.marks import MarksController
from kafkascope.tui.controllers.navigation import NavigationController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.controllers.panes import PanesController
from kafkascope.tui.controllers.reading import FindingsController, ReadingController
from kafkascope.tui.controllers.search import SearchController
from kafkascope.tui.controllers.sharing import SharingController
from kafkascope.tui.controllers.status import StatusController
from kafkascope.tui.controllers.table import BELOW, FIRST, KEYS, LIST_ONLY, SILENT
from kafkascope.tui.controllers.values import ValuesController
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.host import Counted, Shell
from kafkascope.tui.keys import BOARD_KEYS, Key
from kafkascope.tui.settings.config import Config
from kafkascope.tui.settings.notes import Notes
from kafkascope.tui.settings.palette import Glyphs, register, use
from kafkascope.tui.views.exchanges import ExchangeList
from kafkascope.tui.views.lines import LineList
from kafkascope.tui.views.message import DetailPane, HexPane
from kafkascope.tui.views.safe import SafeHighlighter
from kafkascope.tui.views.screen_tabs import ScreenTabs

if TYPE_CHECKING:
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.process.control import Control


def commands(app: ScopeApp) -> Iterable[SystemCommand]:
    """Yield what can be done now."""
    board = app.host.board
    if board is not None:
        for key in (*board.spec.keys, *BOARD_KEYS):
            yield _of_key(app, board, key, key.action, board.spec.title)
        for column in board.sheet.columns:
            title = f"Sort by {column.title}"
            yield SystemCommand(title, board.spec.title, partial(board.upper.sort_by, column.name))
    for key in KEYS:
        if key.id not in SILENT and not (board is not None and key.id.startswith("list.")):
            yield _of_key(app, app, key, key.bound, "")
    for controller in (app.filter, app.marks, app.inputs):
        yield from controller.commands()


def _of_key(app: ScopeApp, owner: DOMNode, key: Key, action: str, where: str) -> SystemCommand:
    help_ = "   ".join(part for part in (where, f"key {key.shown}", key.id) if part)

    async def run() -> None:
        await app.run_action(action, default_namespace=owner)

    return SystemCommand(key.help, help_, run)


class GoTo(Provider):
    """Goes to the exchange whose number is typed into the palette."""

    async def search(self, query: str) -> Hits:
        plain = query.strip().replace(",", "")
        if plain.isascii() and plain.isdigit():
            app = cast("ScopeApp", self.app)
            yield Hit(
                1.0,
                f"Go to exchange {plain}",
                partial(app.show_exchange, int(plain)),
                help="by the number in the first column",
            )

    async def discover(self) -> Hits:
        yield DiscoveryHit("Go to an exchange", lambda: None, help="type its number")


TICK: Final = 0.1
# Lines of the terminal from which the bar of tabs is shown.
HIGH: Final = 10
# Seconds that the first notification stays.
HELLO: Final = 30.0
ACTIONS: Final = {key.id: key.action for key in KEYS}


class ScopeApp(Shell):
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
        self.animation_level = "none"
        self.workspace = Workspace(feed, name, filter_text=filter_text, notes=notes)
        self.list = ExchangeList(self.workspace, self.glyphs, times)
        self.detail, self.hex = DetailPane(self.glyphs), HexPane(self.glyphs)
        self.host = Boards(self.workspace, self, self.list, counted, control)
        context = ControllerContext(
            self.workspace, self, self.host, self.list, self.detail, self.hex
        )
        self.panes = PanesController(context)
        self.prompt = PromptController(context)
        self.filter = FilterController(context)
        self.search = SearchController(context)
        self.inspector = InspectorController(context)
        self.marks = MarksController(context)
        self.values = ValuesController(context)
        self.order = OrderController(context)
        self.sharing = SharingController(context)
        self.inputs = InputsController(context)
        self.findings = FindingsController(context)
        self.help = HelpController(context)
        self.navigation = NavigationController(
            context, self.panes, self.filter, self.order, self.inspector, self.search
        )
        self.reading = ReadingController(context, self.marks, self.order, self.inspector)
        self.status = StatusController(
            *(context, self.panes, self.navigation, self.filter),
            *(self.order, self.inspector, self.findings),
        )
        self.list.opened, self.list.order_by = self.panes.open, self.order.order_by
        self.detail.unfold_slowly, self.hex.picked = self.inspector.unfold, self.inspector.pick_byte
        # The rest of what controllers call is at the end of the class.
        self.ask, self.typed = self.prompt.ask, self.prompt.typed
        self.look, self.look_again = self.inspector.look, self.inspector.look_again
        self.prepare_filter, self.focus_view = self.filter.prepare, self.panes.focus_view
        self.here, self.push_view = self.navigation.here, self.navigation.push
        self.restore_view, self.show_filter = self.navigation.restore, self.navigation.show_filter
        self.show_exchange = self.navigation.show_exchange
        self.show_limited, self.show_screen = (
            self.navigation.show_limited,
            self.navigation.show_screen,
        )
        self.step, self.remark = self.search.step, self.status.remark
        self.findings_pending = self.findings.pending
        self.screens = ScreenTabs(self.glyphs, partial(self.call_later, self.show_screen))
        if config is not None and config.keys:
            self.set_keymap(config.keys)

    def compose(self) -> ComposeResult:
        yield Static(id="header", markup=False)
        yield self.screens
        yield from self.filter.compose()
        yield from self.panes.compose()
        yield from self.prompt.compose()
        yield Static(id="footer", markup=False)

    def on_mount(self) -> None:
        """Warn about problems in the user's files, and start to read."""
        work = self.workspace
        said = list(self.config.said) if self.config is not None else []
        said.append(register(self, self.config.theme if self.config is not None else ""))
        said += [work.notes.said, self.filter.saved_said, work.colours.said]
        work.notes.said = ""
        for text in filter(None, said):
            self.say(text, "warning")
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
        for lines in self.screen_stack[0].query(LineList):
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
        """Call the method of a controller that a key is declared for."""
        name, method, arguments = parse(ACTIONS[id_])
        done = getattr(getattr(self, name), method)(*arguments)
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
        self.inputs.leave()

    # --- messages ---------------------------------------------------------------------------

    def on_unmount(self) -> None:
        self.host.close()

    def on_resize(self, event: events.Resize) -> None:
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
        self.filter.typed(event.value)

    @on(Input.Submitted, "#filter")
    def filter_entered(self, event: Input.Submitted) -> None:
        self.filter.entered(event.value)

    @on(Input.Submitted, "#prompt")
    def prompt_entered(self, event: Input.Submitted) -> None:
        self.prompt.answered(event.value)

    @on(LineList.CursorChanged)
    def follow_cursor(self, event: LineList.CursorChanged) -> None:
        if event.lines is self.list:
            self.navigation.follow_cursor()
            self.order.follow_cursor()
            self.inspector.look_soon()
        elif event.lines is self.detail:
            self.inspector.light_bytes()

    @on(events.Click, "#tabs")
    def tab_clicked(self, event: events.Click) -> None:
        self.inspector.click_tabs(event.x)

    # --- what controllers call --------------------------------------------------------------

    def update_status(self) -> None:
        if self.is_running:
            self.status.update()
            high = self.size.height >= HIGH
            if self.screens.display != high:
                self.screens.display = high
            self.screens.show(self.host.tabs(), self.host.number, self.size.width)

    def take_choice(self) -> bool:
        return self.filter.box.has_focus and self.filter.take_choice()

    def shows_context(self) -> bool:
        return self.inspector.tab == "Context"

    def in_list(self) -> bool:
        return self.panes.entered is self.list

    def stop_activity(self) -> None:
        self.sharing.stop()
        self.search.stop()
