"""The terminal UI: wires the feed, the views and the keys. Decides nothing about Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input, Static

from analyzer.filter_errors import FilterError
from analyzer.render_times import TIME_FORMATS
from captures.errors import CaptureError
from dissectors.errors import DissectError
from tui.about import PANES
from tui.commands import GoTo, commands
from tui.config import recent
from tui.host import Counted, Host
from tui.keys import KEYS
from tui.palette import NORMAL, STYLES, Glyphs, use
from tui.screens import SCREENS
from tui.screens.picker import Picker
from tui.themes import register
from tui.tree import TABS, Document, Item, Tree
from tui.view import View
from tui.views.detail import DetailPane
from tui.views.exchanges import ExchangeList
from tui.views.help import HelpScreen
from tui.views.hexpane import HexPane
from tui.views.lines import Lines

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.widget import Widget

    from tui.config import Config
    from tui.control import Control
    from tui.feed import Feed

FOOTERS: Final = (
    " / filter   Enter open   1-8 screens   e error   ? keys   q quit",
    " Enter exchanges   tab pane   R next tab   1-8 screens   ? keys   q back",
)
TICK: Final = 0.1
REST: Final = 0.03
"""Seconds that the cursor rests before a message is decoded."""
TYPING: Final = 0.15
FIRST: Final = frozenset({"app.stop", "pane.next", "pane.previous"})
"""Before whatever has the focus, and before Textual's own."""
WIDE: Final = 140
MIDDLE: Final = 100
LOW: Final = 25
"""Lines below which the list stands alone, and columns for bytes beside and for a detail."""


class ScopeApp(App[None]):
    """One source of exchanges."""

    CSS_PATH = "app.tcss"
    TITLE = "kafkascope"
    COMMANDS = App.COMMANDS | {GoTo}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key.keys, key.action, key.help, id=key.id, show=False, priority=key.id in FIRST)
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
        config: Config | None = None,
    ) -> None:
        """`counted` makes numbers for the screens, `control` steers a proxy."""
        super().__init__()
        self.feed = feed
        self.source_name = name
        self.glyphs = Glyphs(plain)
        self.view_ = View(feed.store, filter_text)
        self.list = ExchangeList(self.view_, self.glyphs, times)
        self.detail = DetailPane(self.glyphs)
        self.hex = HexPane(self.glyphs)
        self.filter_error = ""
        self.tab = ""
        self.following = False
        self.found = ""
        self.document: Document | None = None
        self._shown_index: int | None = None
        self._rest: Timer | None = None
        self._typing: Timer | None = None
        self._asked: Callable[[str], None] | None = None
        self._share = 1.0
        self._pane: Lines = self.list
        self._zoomed = False
        self._said = False
        self._busy = True
        self.wanted: str | None = None
        """A file to be shown in the place of this one, empty for the same again."""
        self.animation_level = "none"
        self.config = config
        self.host = Host(self, counted, control)
        if config is not None and config.keys:
            self.set_keymap(config.keys)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Static(id="header", markup=False)
        with Horizontal(id="filterline"):
            yield Static(" / ", id="slash", markup=False)
            yield Input(
                self.view_.text, id="filter", compact=True, placeholder="filter: api == Fetch"
            )
            yield Static(id="filterstate", markup=False)
        with Vertical(id="list"):
            yield Static(id="heading", markup=False)
            yield self.list
        yield Vertical(id="boards")
        with Vertical(id="below"):
            yield Static(id="tabs", markup=False)
            with Horizontal(id="panes"):
                yield self.detail
                yield self.hex
        yield Input(id="prompt", compact=True)
        yield Static(id="footer", markup=False)

    def on_mount(self) -> None:
        """Start the clock."""
        said = list(self.config.said) if self.config is not None else []
        said.append(register(self, self.config.theme if self.config is not None else ""))
        for text in filter(None, said):
            self._tell(text, "warning")
        self.theme_changed_signal.subscribe(self, lambda theme: self._recolour(theme.dark))
        self.list.focus()
        self._arrange(self.size.width, self.size.height)
        self.set_interval(TICK, self.tick)
        self.tick()

    def _recolour(self, dark: bool) -> None:
        use(dark=dark)
        for lines in self.screen_stack[0].query(Lines):
            lines.changed()
        self._say()

    def on_unmount(self) -> None:
        """Nobody looks at numbers any more."""
        self.host.close()

    def on_resize(self, event: events.Resize) -> None:
        """Another layout, perhaps."""
        self._arrange(event.size.width, event.size.height)

    def _arrange(self, width: int, height: int) -> None:
        """Which panes have a place. The focus moves before its pane goes, so that no key is
        lost to the filter."""
        narrow = width < MIDDLE or height < LOW
        pane = self._pane
        alone = narrow or self._zoomed
        board = self.host.board is not None
        self._show(self.query_one("#boards"), board)
        self._show(self.query_one("#list"), not board and (not alone or pane is self.list))
        self._show(self.query_one("#below"), not board and (not alone or pane is not self.list))
        beside = width >= WIDE and not alone
        self._show(self.hex, beside or pane is self.hex)
        self._show(self.detail, beside or pane is not self.hex)
        self.hex.styles.width = 78 if beside else "1fr"
        self._say()
        self.call_after_refresh(self._say)  # by then all have their widths

    def _show(self, widget: Widget, wanted: bool) -> None:
        if widget.display != wanted:
            widget.display = wanted

    def _enter(self, pane: Lines, *, zoomed: bool = False) -> None:
        """Give a pane the focus, and a place."""
        self._pane, self._zoomed = pane, zoomed
        pane.display = True
        self.query_one("#list" if pane is self.list else "#below").display = True
        pane.focus()
        self._arrange(self.size.width, self.size.height)

    # --- what arrives -----------------------------------------------------------------------

    # --- screens ----------------------------------------------------------------------------

    async def action_screen(self, number: int) -> None:
        """Another screen: 1 is the list, the others are boards."""
        if number == self.host.number:
            return
        board = self.host.show(number)
        boards = self.query_one("#boards")
        if board is None:
            self._enter(self._pane)
            return
        if not board.is_attached:
            await boards.mount(board)
        for other in boards.children:
            other.display = other is board
        boards.display = True
        board.table.focus()
        self._arrange(self.size.width, self.size.height)
        self.host.tick()
        board.refresh_numbers()

    def show_filter(self, text: str) -> None:
        """The exchanges that a filter wants."""
        box = self.query_one("#filter", Input)
        if self._apply(text, entered=True):
            box.value = text
            self.host.show(1)
            self._enter(self.list)

    def prepare_filter(self, text: str) -> None:
        """Put a filter into its box."""
        box = self.query_one("#filter", Input)
        box.value = text
        box.focus()
        box.cursor_position = len(text)

    def show_exchange(self, number: int) -> None:
        """One exchange among its neighbours."""
        self.host.show(1)
        self._enter(self.list)
        self._goto(str(number))

    def tick(self) -> None:
        """Take in rows, filter some, say how far it is."""
        self.host.tick()
        before = len(self.view_)
        grew = self.feed.poll(0.05)
        grew |= self.view_.advance(0.03)
        if not grew and not self._busy:
            return
        self._busy = grew or not self.feed.store.progress.done
        if len(self.view_) != before:
            if before < self.list.size.height:
                self.list.changed()
            self.list.grown()
            if self.following:
                self.list.move_to(self.list.count() - 1)
        if self._shown_index != self.list.index:
            self._look()
        self._say()
        progress = self.feed.store.progress
        if progress.done and not self._said:
            self._said = True
            if progress.failure and not len(self.feed.store):
                self.exit(return_code=progress.code or 1, message=progress.failure)
                return
            for text in ([progress.failure] if progress.failure else []) + progress.said:
                self._tell(text, "warning")

    def _tell(self, text: str, severity: Any = "information") -> None:
        self.notify(self.glyphs.text(text), severity=severity, markup=False)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette offers."""
        yield SystemCommand(
            "theme", "colours; ours are kafkascope and kafkascope-light", self._theme
        )
        yield SystemCommand("quit", "leave", self.action_quit)
        yield from commands(self)

    def _theme(self) -> None:
        self.action_change_theme()

    def reopen(self, name: str) -> None:
        """Show another file in the place of this one."""
        self.wanted = name
        self.exit(return_code=self._code())

    def action_reload(self) -> None:
        """The same once more."""
        self.reopen("")

    def action_open_file(self) -> None:
        """Ask for a file."""
        choices = [(name, name) for name in recent()]

        def chosen(name: str | None) -> None:
            if not name:
                return
            path = Path(name).expanduser()
            if path.exists():
                self.reopen(str(path))
            else:
                self._tell(f"{name}: no such file or folder", "warning")

        self.push_screen(Picker("open a capture", choices, self.glyphs, free=True), chosen)

    def _say(self) -> None:
        """Header, heading, tabs, filter state, footer."""
        if not self.is_running:
            return
        store, progress = self.feed.store, self.feed.store.progress
        total = len(store)
        count = (
            f"{len(self.view_):,} of {total:,} shown" if self.view_.text else f"{total:,} exchanges"
        )
        if progress.failure:
            state = "! incomplete"
        elif progress.stopped:
            state = "stopped"
        elif progress.done:
            state = ""
        elif 0 < progress.read < progress.size:
            state = f"reading {100 * progress.read // progress.size} %  ctrl+c stops"
        else:
            state = "reading  ctrl+c stops"
        zone = TIME_FORMATS[self.list.times]
        screen = SCREENS[self.host.number][0] if self.host.number in SCREENS else ""
        title = f" kafkascope  {self.source_name}   {screen}".rstrip()
        right = "   ".join(part for part in (count, zone, state) if part) + " "
        room = max(1, self.size.width - len(right) - 1)
        self._static("header", f"{title[:room]:<{room}} {right}")
        self._static(
            "heading", self.list.heading(max(1, self.list.scrollable_content_region.width))
        )
        tabs = "  ".join(f"[{tab}]" if tab == self.tab else f" {tab} " for tab in TABS)
        item = self.detail.item
        place = ""
        if item is not None and item.end > item.start:
            place = f"{item.label}: bytes {item.start}-{item.end - 1}"
            space = self._space(item)
            place = f"{space.name if space else ''}  {place}"
        room = max(0, self.size.width - len(tabs) - len(place) - 2)
        self._static("tabs", f"{tabs}{' ' * room}{place}")
        if self.filter_error:
            self._static("filterstate", self.filter_error, STYLES["!"])
        elif not self.view_.text:
            self._static("filterstate", "")
        elif self.view_.behind:
            self._static(
                "filterstate", f"scanning {int(100 * self.view_.scanned)} %", STYLES["dim"]
            )
        else:
            speed = ", fast" if self.view_.fast else ""
            self._static("filterstate", f"valid{speed}", STYLES["label"])
        self._static("footer", FOOTERS[self.host.board is not None], STYLES["dim"])

    def _static(self, name: str, text: str, style: Any = NORMAL) -> None:
        for widget in self.screen_stack[0].query(f"#{name}").results(Static):
            widget.update(self.glyphs.rich(text, style))

    # --- the exchange under the cursor ------------------------------------------------------

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The mouse moves the focus, too."""
        if event.widget in (self.list, self.detail, self.hex):
            assert isinstance(event.widget, Lines)
            self._pane = event.widget

    @on(Lines.Moved)
    def moved(self, event: Lines.Moved) -> None:
        """Another exchange, or another field."""
        if event.lines is self.list:
            if self._rest is not None:
                self._rest.stop()
            self._rest = self.set_timer(REST, self._look)
        elif event.lines is self.detail:
            self._mark_bytes()

    def _look(self) -> None:
        """Decode the exchange under the cursor."""
        index = self.list.index
        if index == self._shown_index:
            return
        self._shown_index = index
        self.document = None
        if index is None:
            self.detail.show(Tree([], []))
            self.hex.show(None, 0, 0)
            return
        session = self.feed.store.session
        try:
            self.document = Document(session.exchange(index), session.context.names)
        except (CaptureError, DissectError, OSError) as error:
            self.detail.show(Tree([Item("", str(error), kind="error")], []))
            self.hex.show(None, 0, 0)
            return
        self._show_tab(self.tab or self.document.usual_tab())

    def _show_tab(self, tab: str) -> None:
        if self.document is None:
            return
        self.tab = tab
        tree = self.document.trees[tab]
        self.detail.show(tree)
        if len(tree.roots) > 1 and tree.roots[0].end and not tree.roots[0].open:
            self.detail.move_to(1, tell=False)
        self._mark_bytes()

    def _space(self, item: Item | None) -> Any:
        spaces = self.detail.tree_.spaces
        return spaces[item.space] if item is not None and item.space < len(spaces) else None

    def _mark_bytes(self) -> None:
        item = self.detail.item
        if item is not None:
            self.hex.show(self._space(item), item.start, item.end)
        self._say()

    @on(HexPane.Picked)
    def picked(self, event: HexPane.Picked) -> None:
        """The field of a byte."""
        spaces = self.detail.tree_.spaces
        number = next((n for n, space in enumerate(spaces) if space is self.hex.space), None)
        if number is None:
            return
        item = self.detail.tree_.find(number, event.at)
        if item is not None:
            self.detail.select(item)
            self.hex.span = (item.start, item.end)
            self.hex.changed()
        self._say()

    def action_side(self) -> None:
        """Request or response."""
        self._show_tab("Request" if self.tab == "Response" else "Response")

    def action_tab(self) -> None:
        """The tab behind this one."""
        self._show_tab(TABS[(TABS.index(self.tab) + 1) % len(TABS)] if self.tab else TABS[0])

    # --- panes ------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Into the detail; below 100 columns it takes the screen."""
        self._look()
        self._enter(self.detail)

    def action_pane(self, by: int) -> None:
        """The pane beside, where it has one."""
        if self.host.board is not None:
            self.host.board.enter_pane(by)
            return
        panes: list[Lines] = [self.list, self.detail, self.hex]
        self._look()
        self._enter(panes[(panes.index(self._pane) + by) % 3])

    def action_zoom(self) -> None:
        """This pane alone."""
        if self.host.board is not None:
            self.host.board.zoom()
            return
        self._enter(self._pane, zoomed=not self._zoomed)

    def action_resize(self, by: int) -> None:
        """Shares of list and detail."""
        if self.host.board is not None:
            self.host.board.resize(by)
            return
        self._share = (
            1.0 if not by else min(5.0, max(0.2, self._share * (1.3 if by > 0 else 1 / 1.3)))
        )
        self.query_one("#list").styles.height = f"{self._share:.2f}fr"

    def action_leave(self) -> None:
        """Out of the detail or a board, else out of the program."""
        if self.host.board is not None:
            self.host.show(1)
            self._enter(self._pane)
        elif self.list.has_focus:
            self.exit(return_code=self._code())
        else:
            self.action_escape()

    def action_escape(self) -> None:
        """To the list; out of the filter it clears that, too."""
        box = self.query_one("#filter", Input)
        if box.has_focus and box.value:
            box.value = ""
            self._apply("", entered=True)
        self._back()
        self.query_one("#prompt").display = False

    def _back(self) -> None:
        """To the board, or the list."""
        if self.host.board is None:
            self._enter(self.list)
        else:
            self.host.board.table.focus()

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(return_code=self._code())

    def _code(self) -> int:
        return self.feed.store.progress.code

    def action_stop(self) -> None:
        """Stop loading, or tell how to quit."""
        if self.feed.store.progress.done:
            self._tell("q quits")
        else:
            self.feed.stop()

    def action_help(self) -> None:
        """The keys of this screen."""
        board = self.host.board
        if board is None:
            self.push_screen(HelpScreen(self.glyphs))
        else:
            self.push_screen(board.help(self.source_name))

    def action_about(self) -> None:
        """What the pane with the focus is good for."""
        board, focused = self.host.board, self.focused
        name = focused.id if focused is not None else None
        if name not in ("filter",) and board is not None:
            self.push_screen(board.help(self.source_name))
            return
        about = PANES[name if name in PANES else "exchanges"]
        sections = ((about.title, about.keys),)
        self.push_screen(HelpScreen(self.glyphs, about.title, sections, about=about.text))

    # --- filter -----------------------------------------------------------------------------

    def action_filter(self) -> None:
        """To the filter."""
        self.query_one("#filter", Input).focus()

    @on(Input.Changed, "#filter")
    def typing(self, event: Input.Changed) -> None:
        """Filters that need no message apply by themselves."""
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(TYPING, lambda: self._apply(event.value, entered=False))

    @on(Input.Submitted, "#filter")
    def entered(self, event: Input.Submitted) -> None:
        """Apply, and back to the list."""
        if self._apply(event.value, entered=True):
            self._back()

    def _apply(self, text: str, *, entered: bool) -> bool:
        try:
            view = View(self.feed.store, text)
        except FilterError as error:
            hint = f" ({error.hint.split('   ')[0]})" if error.hint else ""
            self.filter_error = f"column {error.column}: {error.reason}{hint}"
            self._say()
            return False
        self.filter_error = ""
        if view.text != self.view_.text and (entered or view.fast):
            index = self.list.index
            self.view_ = self.list.view = view
            view.advance(0.1)
            self.list.cursor = 0 if index is None else view.place_of(index)
            self.list.changed()
            self.list.move_to(self.list.cursor, tell=False)
            self._busy = True
            self._look()
            self.host.filter_changed()
        self._say()
        return True

    def action_from_value(self) -> None:
        """Put the value under the cursor into the filter."""
        item = self.detail.item
        index = self.list.index
        if self.detail.has_focus and item is not None and item.path and item.raw is not None:
            raw = item.raw
            value = _quoted(raw) if isinstance(raw, str) else str(raw)
            text = f"{item.path} == {value}"
        elif index is not None:
            session = self.feed.store.session
            api = session.apis.values[session.api[index]]
            client = session.client_ids.values[session.client_id[index]]
            text = f"api == {api}" if api else "opaque"
            text += f" and client == {_quoted(client)}" if client else ""
        else:
            return
        box = self.query_one("#filter", Input)
        box.value = text
        box.focus()
        box.cursor_position = len(text)

    # --- moving in the list -----------------------------------------------------------------

    def _step(self, by: int, wanted: Callable[[int], bool], what: str) -> None:
        """To the next row of the view that is wanted."""
        place = self.list.cursor + by
        while 0 <= place < len(self.view_):
            if wanted(self.view_[place]):
                self.list.move_to(place)
                return
            place += by
        self._tell(f"no {what} {'below' if by > 0 else 'above'}")

    def action_error(self, by: int) -> None:
        """The next exchange that went wrong."""
        self._step(by, self.feed.store.is_bad, "error")

    def action_connection(self, by: int) -> None:
        """The next exchange on this connection."""
        column, index = self.feed.store.session.connection, self.list.index
        if index is not None:
            here = column[index]
            self._step(by, lambda other: column[other] == here, "exchange on this connection")

    def action_mark(self) -> None:
        """Mark the row, or take the mark away."""
        if self.list.index is not None:
            self.list.marked ^= {self.list.index}
            self.list.changed()

    def action_next_mark(self, by: int) -> None:
        """The next marked row."""
        self._step(by, self.list.marked.__contains__, "mark")

    def action_tail(self) -> None:
        """Stay at the end."""
        self.following = not self.following
        self.list.move_to(self.list.count() - 1 if self.following else self.list.cursor)
        self._tell("following the end" if self.following else "no longer following")

    def action_time(self) -> None:
        """The next way to write times."""
        ways = [way for way in TIME_FORMATS if way not in ("d", "dd")]
        self.list.times = ways[(ways.index(self.list.times) + 1) % len(ways)]
        self.list.changed()
        if self.host.board is not None:
            self.host.board.refresh_numbers()
        self._say()

    def action_copy(self) -> None:
        """The value or the line, to the terminal's clipboard."""
        if self.detail.has_focus and self.detail.item is not None:
            text = self.detail.item.text()
        elif self.hex.has_focus and self.hex.space is not None:
            text = self.hex.space.data[slice(*self.hex.span)].hex()
        elif self.list.index is not None:
            pieces = self.list.pieces(self.list.cursor, max(80, self.size.width))
            text = self.glyphs.text("".join(piece for piece, _ in pieces)).strip()
        else:
            return
        self.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self._tell(f"copied {len(text)} characters")

    # --- questions --------------------------------------------------------------------------

    def _ask(self, what: str, answer: Callable[[str], None]) -> None:
        self._asked = answer
        prompt = self.query_one("#prompt", Input)
        prompt.value, prompt.placeholder = "", what
        prompt.display = True
        prompt.focus()

    @on(Input.Submitted, "#prompt")
    def answered(self, event: Input.Submitted) -> None:
        """Do what was asked for."""
        self.host.show(1)
        self._enter(self.list)
        event.input.display = False
        if self._asked is not None and event.value.strip():
            self._asked(event.value.strip())

    def action_goto(self) -> None:
        """Ask for a number."""
        self._ask("go to exchange number", self._goto)

    def _goto(self, text: str) -> None:
        plain = text.lstrip(":").replace(",", "")
        index = (
            self.feed.store.session.index_of(int(plain))
            if plain.isascii() and plain.isdigit()
            else None
        )
        if index is None:
            self._tell(f"there is no exchange {text}", "warning")
            return
        place = self.view_.place_of(index)
        if place < len(self.view_) and self.view_[place] == index:
            self.list.move_to(place)
        else:
            self._tell(f"exchange {text} is not shown: the filter leaves it out", "warning")

    def action_find(self) -> None:
        """Ask for a text."""
        self._ask("find text in the list", self._find)

    def _find(self, text: str) -> None:
        self.found = text.lower()
        self.action_find_next(1)

    def action_find_next(self, by: int) -> None:
        """The next row with the text."""
        if self.found:
            self._step(by, self._has, f'"{self.found}"')

    def _has(self, index: int) -> bool:
        store = self.feed.store
        session = store.session
        client = session.client_ids.values[session.client_id[index]] or ""
        parts: Iterable[str] = (
            store.texts[index],
            session.apis.values[session.api[index]],
            client,
            *session.topic_lists.values[session.topics[index]],
            *session.group_lists.values[session.groups[index]],
        )
        return any(self.found in part.lower() for part in parts)


def _quoted(text: str) -> str:
    """A string of the filter language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
