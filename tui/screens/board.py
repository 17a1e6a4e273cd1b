"""What screens 2 to 9 and 0 have in common: a table, and below it tabs that describe the line under
the cursor. A screen is a declaration (`BoardSpec`), which a `Board` shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingsMap, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Static

from kafkascope.analyzer.render.times import shortened
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.topics import TopicNames
from kafkascope.tui.host import Host
from kafkascope.tui.keys import BOARD_KEYS, Key, Rows, bindings
from kafkascope.tui.screens import TABS, evidence
from kafkascope.tui.screens.activity import Activity
from kafkascope.tui.screens.panes import SheetTable, StaticLines, TablePane, TextLines
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine
from kafkascope.tui.settings.palette import STYLES
from kafkascope.tui.stack import BoardState
from kafkascope.tui.views.dialogs import HelpScreen, Section
from kafkascope.tui.views.empty import sentence
from kafkascope.tui.views.lines import LineList
from kafkascope.tui.views.screen_tabs import Splitter, tab_at, tab_titles

# Seconds that the cursor rests before the tab follows it.
REST: Final = 0.03
# Seconds of work on charts at a time.
SLICE: Final = 0.02
# Seconds between two drawings of a chart that grows.
REDRAW: Final = 0.4
COUNTING: Final = "Counting ..."
NOT_FINAL: Final = ": numbers are not final"
# Lines of a board below which table and tab are not both shown; `TALL` below `WIDE` columns.
WIDE: Final = 100
HIGH: Final = 20
TALL: Final = 28
# Lines that a table must leave free for the tab to be shown on a small terminal all the same.
FREE: Final = 6
# The usual share of the board's height that the table takes at most.
SHARE: Final = 0.45
# Columns in which no cell of a line is cut: what is copied is whole.
UNCUT: Final = 2_000

Content: TypeAlias = "Sheet | str | Sequence[Spans | TextLine]"
"""What a tab shows: a table, a sentence, or lines of text."""


class Tab(NamedTuple):
    """A tab, which describes a line of the table."""

    show: Callable[[Any, Line], Content]
    evidence: Callable[[Any, Line], str] = lambda board, line: ""
    """Returns the filter for a line of the tab's own table."""
    work: Callable[[Any], bool] = lambda board: False
    """Works for `SLICE` seconds at most; returns whether that changed the tab."""


@dataclass(frozen=True)
class BoardSpec:
    """A screen: its table, its tabs and its evidence. Functions get the board first."""

    number: int
    """Key in `screens.TABS`."""
    statistic: str
    """Name in `analyzer.statistics.STATISTICS` of what the table shows."""
    command: str
    """The command that prints the same; `{}` stands for the input."""
    help: str
    """What F1 says about this screen."""
    tabs: Mapping[str, Tab]
    sheet: Callable[[Any], Sheet]
    """Returns the table without lines."""
    evidence: Callable[[Any, Line], str]
    """Returns the filter for the exchanges behind a line."""
    lines: Callable[[Any, Any], Sequence[Line]] = lambda board, found: found.rows(board.names)
    """Returns the lines of the table from `statistic`."""
    identity: Callable[[Any, Line], Any] = lambda board, line: line.get(board.sheet.columns[0].name)
    """Returns what identifies a line among those of newer numbers."""
    words: Callable[[Any], str] = lambda board: ""
    """Returns options that make the command print the table as it is."""
    remark: Callable[[Any], str] = lambda board: ""
    """Returns the text at the right of the titles of the tabs."""
    keys: tuple[Key, ...] = ()
    """Keys besides those of every board."""
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Settings of the table by name, which going back restores: their values, the usual first."""
    actions: Mapping[str, Callable[[Any], None]] = field(default_factory=dict)
    """What keys do; `open`: what Enter does, if not to show the exchanges of the line."""
    enter: str = "exchanges"
    """Where Enter in the table leads, for the footer."""
    empty: str = "Nothing of this kind in the capture"
    """Text of an empty table when all is counted; until then it is `early`."""
    early: str = "Nothing yet ..."
    about_lines: bool = True
    """Whether the tabs describe the line under the cursor."""
    needs_exchanges: bool = True
    """Whether a capture without exchanges has nothing for the table."""
    warns: bool = True
    """Whether a line warns that numbers are not final."""
    table: type[SheetTable] = SheetTable
    board: Callable[[Host, BoardSpec], Board] | None = None

    @property
    def title(self) -> str:
        return TABS[self.number].title

    def made(self, host: Host) -> Board:
        return (self.board or Board)(host, self)


class Board(Vertical):
    """Shows a screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BOARD_KEYS)
    DEFAULT_CSS = """
    Board { height: 1fr; }
    Board .board-tabs { height: 1; background: $surface; }
    Board .board-note { height: 1; }
    Board .lower { height: 1fr; }
    Board LineList { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    def __init__(self, host: Host, spec: BoardSpec) -> None:
        super().__init__(id=f"board-{spec.number}")
        self._bindings = BindingsMap.merge([self._bindings, BindingsMap(bindings(spec.keys))])
        self.host, self.spec = host, spec
        self.settings = {name: values[0] for name, values in spec.choices.items()}
        self.cache: dict[str, Any] = {}
        """What the functions of the screen keep between two calls."""
        self.limited = False
        """Whether only exchanges are counted that the filter of the list selects."""
        self.tabs = tuple(spec.tabs)
        self.tab = self.tabs[0]
        self.sheet = spec.sheet(self)
        self.table = spec.table(self.sheet, host.glyphs)
        self.table.action_call = self.action_call
        self.table.identity = lambda line: spec.identity(self, line)
        self.upper = TablePane(self.table)
        self.low_table = SheetTable(Sheet(()), host.glyphs)
        self.low_sheet = TablePane(self.low_table, classes="lower")
        self.low_text = TextLines(host.glyphs, classes="lower")
        self.low_text.display = False
        self.titles = Splitter(self.drag, classes="board-tabs")
        for lines in (self.table, self.low_table, self.low_text):
            lines.opened = self.action_open_line
        self.above_tab: StaticLines | None = None
        """Lines between the titles of the tabs and the tab, where a board has some."""
        self.note = Static(classes="board-note", markup=False)
        self.note.display = False
        self.so_far = ""
        """How far counting is; empty when the numbers are final."""
        self.zoomed = False
        self._rest: Timer | None = None
        self._content: Content = ()
        self._share = SHARE
        self._activity: Activity | None = None
        """The exchanges behind the line, for charts."""
        self._grown, self._redraw = False, 0.0

    # --- parts ------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self.note
        yield self.upper
        yield self.titles
        if self.above_tab is not None:
            yield self.above_tab
        yield self.low_sheet
        yield self.low_text

    def command(self) -> str:
        """Return the command that prints the table, with the input."""
        words = self.spec.command + self.spec.words(self)
        return words.replace("{}", self.host.workspace.input_name, 1)

    def help(self, everywhere: Rows, others: Sequence[Section]) -> HelpScreen:
        """Return the help screen; `everywhere` are keys that work on all screens, `others` those of
        other screens."""
        mine = [(key.shown, key.help) for key in (*self.spec.keys, *BOARD_KEYS)]
        sections = ((self.spec.title, mine), ("Everywhere", everywhere))
        texts = {"about": self.spec.help, "command": self.command()}
        return HelpScreen(self.host.glyphs, self.spec.title, sections, **texts, others=others)

    def statistic(self, name: str) -> Any | None:
        """Return an accumulator as it is by now; None as long as it is not there."""
        return self.host.statistic(name, limited=self.limited)

    @property
    def names(self) -> TopicNames:
        """The names of topics that are known by their ids."""
        return self.host.store.session.context.names

    @property
    def lower(self) -> LineList:
        """The widget of the tab, for a table or for text."""
        return self.low_table if isinstance(self._content, Sheet) else self.low_text

    @property
    def below(self) -> bool:
        """Whether the tab has the focus."""
        return self.low_table.has_focus or self.low_text.has_focus

    @property
    def line(self) -> Line | None:
        """The line under the cursor of the table."""
        return self.table.line

    @property
    def room(self) -> tuple[int, int]:
        """Columns and lines of the terminal for the tab."""
        above = 0 if self.one_pane else self.upper_height()
        return max(20, self.size.width - 3), max(3, self.size.height - above - 1)

    def on_resize(self, event: events.Resize) -> None:
        """Draw charts again, as wide as the screen."""
        self.place()
        self.refill_lower()

    def place(self) -> None:
        """Show and hide table and tab, and share the height between them."""
        single, below = self.one_pane, self.below
        self.upper.display = not single or not below
        shown = not single or below
        self.titles.display = shown
        table = isinstance(self._content, Sheet)
        self.low_sheet.display = shown and table
        self.low_text.display = shown and not table
        self.upper.styles.height = "1fr" if single else self.upper_height()

    def upper_height(self) -> int:
        """Return the lines of the table beside a tab: as many as it has, within its share."""
        needed = max(1, self.table.count()) + 1
        return needed if self.small else max(3, min(needed, int(self.size.height * self._share)))

    @property
    def small(self) -> bool:
        """Whether table and tab have room side by side only if the table leaves rows free."""
        return self.size.height < (HIGH if self.size.width >= WIDE else TALL)

    @property
    def one_pane(self) -> bool:
        """Whether there is room for the table or the tab only."""
        free = self.size.height - self.note.display - max(1, self.table.count()) - 1
        return self.zoomed or (self.small and free < FREE)

    # --- numbers ----------------------------------------------------------------------------

    def lines(self) -> Sequence[Line] | None:
        """Return the lines of the table by now; None while nothing is known."""
        found = self.statistic(self.spec.statistic)
        return None if found is None else self.spec.lines(self, found)

    def refresh_numbers(self) -> None:
        """Show new numbers, or those of another filter."""
        self.so_far = self.host.so_far(limited=self.limited)
        lines = self.lines()
        self.note.display = bool(self.so_far) and self.spec.warns and lines is not None
        self.note.update(self.host.glyphs.rich(f" {self.so_far}{NOT_FINAL}", STYLES["?"]))
        self.table.empty = self.spec.early if self.so_far else self.why_empty()
        if lines is None:
            self.table.empty = COUNTING
        self.show_lines(lines or ())

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show other lines in the table, and the tab for the one under the cursor."""
        self.upper.refilled(lambda: self.sheet.fill(lines, self.host.times()))
        self.refill_lower()
        self.place()

    def hinted(self) -> tuple[Sequence[Key], str]:
        """Return the keys that do something now, for the footer, and where Enter leads."""
        return self.spec.keys, self.spec.enter

    def why_empty(self) -> str:
        """Return why the table has no lines, with what to do."""
        empty = self.spec.empty
        if self.limited and self.host.workspace.view.text:
            return f"{empty}, among exchanges that match the filter. L counts all of them."
        progress = self.host.store.progress
        if self.spec.needs_exchanges and progress.empty:
            return sentence(progress.empty)
        return f"{empty}."

    def remake(self) -> None:
        """Show another table, after a setting has changed."""
        self._new_sheet()
        self.refresh_numbers()

    def _new_sheet(self) -> None:
        self.sheet = self.spec.sheet(self)
        self.upper.refilled(lambda: setattr(self.table, "sheet", self.sheet))

    def listed(self, sheet: Sheet, lines: Sequence[Line], empty: str) -> Content:
        """Return the table of a tab, or a sentence where there are no lines."""
        return sheet.fill(lines, self.host.times()) if lines else self.worded(empty)

    def worded(self, text: str) -> str:
        """Return a sentence about the whole capture as it holds by now."""
        if self.so_far:
            text = text.replace("in the capture", "so far").replace("as far as seen", "so far")
        return text

    def refill_lower(self) -> None:
        """Fill the tab for the line under the cursor."""
        if not self.is_mounted:
            return
        line = self.line
        about = line if line is not None or self.spec.about_lines else {}
        content = () if about is None else self.spec.tabs[self.tab].show(self, about)
        focused, self._content = self.below, content
        if isinstance(content, Sheet):
            names = [column.name for column in content.columns[:3]]
            self.low_table.identity = lambda each: [each.get(name) for name in names]
            self.low_sheet.refilled(lambda: setattr(self.low_table, "sheet", content))
        else:
            self.low_text.show([[(content, "dim")]] if isinstance(content, str) else content)
        self.place()
        if focused and not self.lower.has_focus:
            self.lower.focus()
        titles, right = tab_titles(self.tabs, self.tab), self.spec.remark(self)
        room = max(1, self.size.width - len(titles) - len(right) - 2)
        self.titles.update(self.host.glyphs.rich(f" {titles}{' ' * room}{right}", STYLES["label"]))
        self.follow_low_cursor()

    def tick(self) -> None:
        """Continue work that takes longer; called ten times a second while the board is shown."""
        if self.work():
            self.refill_lower()

    def work(self) -> bool:
        """Work for `SLICE` seconds at most; return whether that changed the tab."""
        return self.spec.tabs[self.tab].work(self)

    def clear(self) -> None:
        """Show no lines until there are numbers."""
        self.table.wanted = self.table.position()
        self.table.empty = COUNTING
        self.upper.refilled(lambda: self.sheet.fill(()))
        self._content = ()
        self.low_text.show(())

    # --- charts -----------------------------------------------------------------------------

    def activity(self, line: Line) -> Activity:
        """Return the activity of the exchanges behind a line."""
        text = self.limited_to_filter(self.spec.evidence(self, line))
        if self._activity is None or self._activity.text != text:
            if self._activity is not None:
                self._activity.close()
            self._activity = Activity(self.host.store, text, self.host.workspace.notes.known)
            self._activity.advance(SLICE)
        return self._activity

    def grow_chart(self) -> bool:
        """Take in more exchanges; return whether it is time to draw the chart again."""
        activity = self._activity
        if activity is None:
            return False
        self._grown |= activity.advance(SLICE)
        now = monotonic()
        if not self._grown or (activity.behind and now < self._redraw):
            return False
        self._grown, self._redraw = False, now + REDRAW
        return True

    def clock(self) -> Callable[[int], str]:
        """Return how times of an axis are written; without milliseconds where seconds will do."""
        column = self.host.store.session.columns["time_ns"]
        span = column[-1] - column[0] if len(column) else 0
        return shortened(self.host.times().text, short=span < 30_000_000_000)

    def chart(self, line: Line) -> Content:
        """Return the chart of the exchanges behind a line over time."""
        width, height = self.room
        return self.activity(line).chart(width, min(height, 14), self.clock())

    # --- views ------------------------------------------------------------------------------

    def state(self) -> BoardState:
        """Return what is shown, for going back to it."""
        sort = self.sheet.sort
        return BoardState(
            settings=copy(self.settings),
            tab=self.tab,
            limited=self.limited,
            zoomed=self.zoomed,
            sort=None if sort is None else (sort.name, self.sheet.down),
            row=self.table.position(),
            low_row=self.lower.row,
            below=self.below,
        )

    def restore(self, state: BoardState) -> None:
        """Show what was shown: tab, order, rows and focus are as they were."""
        self.settings = copy(state.settings)
        self.tab, self.limited, self.zoomed = state.tab, state.limited, state.zoomed
        self._new_sheet()
        if state.sort is not None:
            self.sheet.sort_as(*state.sort)
        self.table.wanted = state.row
        self.refresh_numbers()
        self.lower.move_to(state.low_row.key, tell=False)
        if state.below:
            self.enter_lower()
        self.call_after_refresh(self._scroll, state)

    def _scroll(self, state: BoardState) -> None:
        """Scroll as it was, now that all parts have their sizes."""
        if self.table.position().key == state.row.key:
            self.table.show_from(self.table.cursor - state.row.above)
        if self.lower.cursor == state.low_row.key:
            self.lower.show_from(self.lower.cursor - state.low_row.above)

    # --- moving -----------------------------------------------------------------------------

    @on(LineList.CursorChanged)
    def follow_cursor(self, event: LineList.CursorChanged) -> None:
        """Let the tab follow when the cursor rests."""
        event.stop()
        if event.lines is self.table:
            if self._rest is not None:
                self._rest.stop()
            self._rest = self.set_timer(REST, self.refill_lower)
        else:
            self.follow_low_cursor()

    def follow_low_cursor(self) -> None:
        """Follow the cursor of the tab; for subclasses."""

    def enter_pane(self) -> None:
        """Give the focus to the table or to the tab, whichever has it not."""
        if not self.below:
            self.enter_lower()
            return
        self.upper.display = True
        self.table.focus()
        self.call_after_refresh(self.rearrange)

    def enter_lower(self) -> None:
        # It gets its place before the focus, so that no key is lost.
        (self.low_sheet if isinstance(self._content, Sheet) else self.low_text).display = True
        self.lower.focus()
        self.call_after_refresh(self.rearrange)

    def rearrange(self) -> None:
        """Place and fill the parts again after the focus or their sizes changed."""
        self.place()
        self.call_after_refresh(self.refill_lower)

    def zoom(self) -> None:
        self.zoomed = not self.zoomed
        self.rearrange()

    def resize(self, by: int) -> None:
        """Give the table more room, or less; 0: as usual."""
        self._share_table(self._share * (1.25 if by > 0 else 0.8) if by else SHARE)

    def _share_table(self, share: float) -> None:
        self._share = min(0.85, max(0.15, share))
        self.rearrange()

    def drag(self, x: int, y: int) -> None:
        """Let the table end at a cell of the screen."""
        if not self.one_pane:
            self._share_table((y - self.region.y) / max(1, self.size.height))

    @on(events.Click, ".board-tabs")
    def tab_clicked(self, event: events.Click) -> None:
        self.tab = tab_at(self.tabs, event.x - 1) or self.tab
        self.refill_lower()

    # --- actions ----------------------------------------------------------------------------

    def action_tab(self, by: int) -> None:
        self.tab = self.tabs[(self.tabs.index(self.tab) + by) % len(self.tabs)]
        self.refill_lower()
        self.rearrange()

    def action_switch(self, name: str) -> None:
        """Give a setting the next of its values."""
        values = self.spec.choices[name]
        self.settings[name] = values[(values.index(self.settings[name]) + 1) % len(values)]
        self.remake()

    def action_call(self, name: str) -> None:
        """Do what only this screen does."""
        self.spec.actions[name](self)

    def target(self) -> tuple[str, int | None]:
        """Return the filter, or the number of the exchange, behind the line with the focus."""
        if self.low_text.has_focus:
            return "", self.low_text.number
        if self.low_table.has_focus and self.low_table.line is not None:
            text = self.spec.tabs[self.tab].evidence(self, self.low_table.line)
        else:
            text = "" if self.line is None else self.spec.evidence(self, self.line)
        return self.limited_to_filter(text) if text else "", None

    def limited_to_filter(self, text: str) -> str:
        """Return a filter of evidence, joined with that of the list where the board follows it."""
        return evidence.both(self.host.workspace.view.text, text) if self.limited else text

    def action_open_line(self) -> None:
        """Go in: to the exchanges behind the line, where the screen knows nothing nearer."""
        self.spec.actions.get("open", Board.open_exchanges)(self)

    def open_exchanges(self) -> None:
        text, number = self.target()
        if number is not None:
            self.host.shell.show_exchange(number)
        elif text:
            self.host.shell.show_filter(text)
        else:
            counting = self.so_far and self.line is None
            why = "Counting is not finished." if counting else "This line has no exchanges."
            self.host.shell.say(why)

    def action_prepare(self) -> None:
        text, number = self.target()
        if number is not None:
            text = f"number == {number}"
        if text:
            self.host.shell.prepare_filter(text)

    def action_limit(self) -> None:
        self.limited = not self.limited
        if self.limited and not self.host.workspace.view.text:
            self.host.shell.say("No filter is set: / sets one, and this screen applies it.")
        self.refresh_numbers()

    def focused_table(self) -> TablePane:
        """Return the table that is sorted by the keys for that."""
        return self.low_sheet if self.low_table.has_focus else self.upper

    def action_sort(self) -> None:
        pane = self.focused_table()
        sheet = pane.table.sheet
        choices = [("", "default order")]
        choices += [(slot.column.name, slot.column.title) for slot in sheet.slots(pane.table.room)]

        def chosen(name: str) -> None:
            pane.refilled(lambda: sheet.sort_by(name) if name else sheet.unsort())

        here = sheet.sort.name if sheet.sort else ""
        self.host.shell.pick("Sort by", choices, chosen, here)

    def action_reverse(self) -> None:
        pane = self.focused_table()
        if pane.table.sheet.sort is None:
            self.action_sort()
        else:
            pane.refilled(pane.table.sheet.reverse)

    def action_copy_line(self) -> None:
        pane = self.lower if self.below else self.table
        if pane.cursor >= pane.count():
            return
        pieces = pane.pieces(pane.cursor, UNCUT)[1:]  # not its edge
        text = self.host.glyphs.text("".join(piece for piece, _ in pieces)).strip()
        text += f"   ({self.so_far}{NOT_FINAL})" if self.so_far else ""
        self.host.shell.put_on_clipboard(text)

    def action_copy_command(self) -> None:
        text = self.command()
        self.host.shell.put_on_clipboard(text, f"Copied: {text}")


OVER_TIME: Final = Tab(Board.chart, work=Board.grow_chart)
