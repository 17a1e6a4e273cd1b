"""What screens 2 to 9 have in common: a table, and below it tabs that describe the line under the
cursor."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Static

from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.topics import TopicNames
from kafkascope.tui.host import Host
from kafkascope.tui.keys import BOARD_KEYS, Key, bindings
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.panes import StaticLines, Table, TableHeading, TablePane, TextLines
from kafkascope.tui.screens.picker import pick
from kafkascope.tui.screens.sheet import Sheet, TextLine
from kafkascope.tui.settings.palette import STYLES
from kafkascope.tui.stack import BoardState, Position
from kafkascope.tui.views.empty import sentence
from kafkascope.tui.views.help import HelpScreen, Row, Section
from kafkascope.tui.views.lines import Lines
from kafkascope.tui.views.splitter import Splitter, tab_at, tab_titles

REST: Final = 0.03
"""Seconds that the cursor rests before the tab follows it."""
SLICE: Final = 0.02
"""Seconds of work on charts at a time."""
NOT_FINAL: Final = ": numbers are not final"
WIDE: Final = 100
HIGH: Final = 20
TALL: Final = 28
"""Lines of a board below which table and tab are not both shown; `TALL` below `WIDE` columns."""
FREE: Final = 6
"""Lines that a table must leave free for the tab to be shown on a small terminal all the same."""
SHARE: Final = 0.45
"""The usual share of the board's height that the table takes at most."""
UNCUT: Final = 2_000
"""Columns in which no cell of a line is cut: what is copied is whole."""


class Board(Vertical):
    """A screen. Subclasses define the table, the tabs, and the filter behind a line."""

    NUMBER: ClassVar[int]
    TITLE: ClassVar[str]
    STATISTICS: ClassVar[tuple[str, ...]] = ()
    """Names in `analyzer.statistics.STATISTICS` of what is shown, that of the table first."""
    COMMAND: ClassVar[str]
    """The command that prints the same; `{}` stands for the input."""
    TABS: ClassVar[tuple[str, ...]] = ()
    ENTER: ClassVar[str] = "exchanges"
    """Where Enter in the table leads, for the footer."""
    LINES_MATTER: ClassVar[bool] = True
    """Whether the tabs describe the line under the cursor."""
    EMPTY: ClassVar[str] = "Nothing of this kind in the capture"
    """Text of an empty table when all is counted; until then it is `EARLY`."""
    EARLY: ClassVar[str] = "Nothing yet ..."
    NEEDS_EXCHANGES: ClassVar[bool] = True
    """Whether a capture without exchanges has nothing for the table."""
    TABLE: ClassVar[type[Table]] = Table
    """The widget of the table."""
    KEYS: ClassVar[tuple[Key, ...]] = ()
    """Keys besides those of every board."""
    VIEW: ClassVar[tuple[str, ...]] = ("tab", "limited", "zoomed")
    """Attributes that going back to the board restores, besides its rows and its order."""
    NOTED: ClassVar[bool] = True
    """Whether a line warns that numbers are not final."""
    HELP: ClassVar[str] = ""
    """What F1 says about this screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BOARD_KEYS)
    DEFAULT_CSS = """
    Board { height: 1fr; }
    Board .board-tabs { height: 1; background: $surface; }
    Board .board-note { height: 1; }
    Board .lower { height: 1fr; }
    Board Lines { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    def __init__(self, host: Host) -> None:
        super().__init__(id=f"board-{self.NUMBER}")
        self.host = host
        self.limited = False
        """Whether only exchanges are counted that the filter of the list selects."""
        self.tab = self.TABS[0] if self.TABS else ""
        name = type(self).__name__.lower()
        self.sheet = self.make_sheet()
        self.table = self.TABLE(self.sheet, host.glyphs, id=f"{name}-table")
        self.table.identity = self.identity
        self.upper = TablePane(self.table, id=f"{name}-upper")
        self.low_table = Table(Sheet(()), host.glyphs, id=f"{name}-low-table")
        self.low_sheet = TablePane(self.low_table, id=f"{name}-low-sheet", classes="lower")
        self.low_text = TextLines(host.glyphs, id=f"{name}-low-text", classes="lower")
        self.low_text.display = False
        self.tabs = Splitter(classes="board-tabs", markup=False)
        self.above_tab: StaticLines | None = None
        """Lines between the titles of the tabs and the tab, where a board has some."""
        self.note = Static(classes="board-note", markup=False)
        self.note.display = False
        self.so_far = ""
        """How far counting is; empty when the numbers are final."""
        self.zoomed = False
        self._rest: Timer | None = None
        self._content: Sheet | Sequence[TextLine] = ()
        """What the tab shows."""
        self._share = SHARE

    # --- what subclasses define -------------------------------------------------------------

    def make_sheet(self) -> Sheet:
        """Return the table without lines."""
        raise NotImplementedError

    def identity(self, line: Line) -> Any:
        """Return what identifies a line among those of newer numbers."""
        return line.get(self.sheet.columns[0].name)

    def lines(self) -> Sequence[Line] | None:
        """Return the lines of the table by now; None while nothing is known."""
        found = self.statistic(self.STATISTICS[0])
        return None if found is None else self.lines_of(found)

    def lines_of(self, found: Any) -> Sequence[Line]:
        """Return the lines of the table from the first of `STATISTICS`."""
        lines: Sequence[Line] = found.rows(self.names)
        return lines

    def evidence(self, line: Line) -> str:
        """Return the filter for the exchanges behind a line."""
        return ""

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return what a tab shows for a line of the table."""
        return []

    def low_evidence(self, tab: str, line: Line) -> str:
        """Return the filter for a line of a table in a tab."""
        return ""

    def work(self) -> bool:
        """Work for `SLICE` seconds at most; return whether that changed the tab."""
        return False

    def said(self) -> str:
        """Return the text at the right of the titles of the tabs."""
        return ""

    def command(self) -> str:
        """Return the command that prints the table as it is; `{}` stands for the input."""
        return self.COMMAND

    # --- parts ------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Yield the table, the titles of the tabs and the tab."""
        yield self.note
        yield self.upper
        if self.TABS:
            yield self.tabs
            if self.above_tab is not None:
                yield self.above_tab
            yield self.low_sheet
            yield self.low_text

    def full_command(self) -> str:
        """Return the command that prints the table, with the input."""
        return self.command().replace("{}", self.host.workspace.input_name, 1)

    def help(self, everywhere: Sequence[Row], others: Sequence[Section]) -> HelpScreen:
        """Return the help screen; `everywhere` are keys that work on all screens, `others` those of
        other screens."""
        mine = [(key.shown, key.help) for key in (*self.KEYS, *BOARD_KEYS)]
        sections = ((self.TITLE, mine), ("Everywhere", everywhere))
        command = self.full_command()
        return HelpScreen(
            self.host.glyphs,
            self.TITLE,
            sections,
            about=self.HELP,
            command=command,
            others=others,
        )

    def statistic(self, name: str) -> Any | None:
        """Return an accumulator as it is by now; None as long as it is not there."""
        return self.host.statistic(name, limited=self.limited)

    @property
    def names(self) -> TopicNames:
        """The names of topics that are known by their ids."""
        return self.host.store.session.context.names

    @property
    def lower(self) -> Lines:
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

    def on_resize(self, event: events.Resize) -> None:
        """Draw charts again, as wide as the screen."""
        self.place()
        self.refill_lower()

    def place(self) -> None:
        """Show and hide table and tab, and share the height between them."""
        if not self.TABS:
            return
        alone, below = self.alone, self.below
        self.upper.display = not alone or not below
        shown = not alone or below
        self.tabs.display = shown
        table = isinstance(self._content, Sheet)
        self.low_sheet.display = shown and table
        self.low_text.display = shown and not table
        self.upper.styles.height = "1fr" if alone else self.upper_height()

    def upper_height(self) -> int:
        """Return the lines of the table beside a tab: as many as it has, within its share."""
        wanted = max(1, self.table.count()) + 1
        return wanted if self.small else max(3, min(wanted, int(self.size.height * self._share)))

    @property
    def small(self) -> bool:
        """Whether table and tab have room side by side only if the table leaves rows free."""
        return self.size.height < (HIGH if self.size.width >= WIDE else TALL)

    @property
    def alone(self) -> bool:
        """Whether there is room for the table or the tab only."""
        free = self.size.height - self.note.display - max(1, self.table.count()) - 1
        return self.zoomed or (self.small and free < FREE)

    # --- numbers ----------------------------------------------------------------------------

    def refresh_numbers(self) -> None:
        """Show new numbers, or those of another filter."""
        self.so_far = self.host.so_far(limited=self.limited)
        found = self.lines()
        self.note.display = bool(self.so_far) and self.NOTED and found is not None
        self.note.update(self.host.glyphs.rich(f" {self.so_far}{NOT_FINAL}", STYLES["?"]))
        self.table.empty = self.EARLY if self.so_far else self.why_empty()
        if found is None:
            self.table.empty = "Counting ..."
        self.upper.refilled(lambda: self.sheet.fill(found or (), self.host.times()))
        self.refill_lower()
        self.place()

    def hinted(self) -> tuple[Sequence[Key], str]:
        """Return the keys that do something now, for the footer, and where Enter leads."""
        return self.KEYS, self.ENTER

    def why_empty(self) -> str:
        """Return why the table has no lines, with what to do."""
        if self.limited and self.host.workspace.view.text:
            return f"{self.EMPTY}, among exchanges that match the filter. L counts all of them."
        progress = self.host.store.progress
        if self.NEEDS_EXCHANGES and progress.empty:
            return sentence(progress.empty)
        return f"{self.EMPTY}."

    def remake(self) -> None:
        """Show another table, after what `make_sheet` depends on has changed."""
        self.sheet = self.make_sheet()
        self.upper.refilled(lambda: setattr(self.table, "sheet", self.sheet))
        self.refresh_numbers()

    def worded(self, text: str) -> str:
        """Return a sentence about the whole capture as it holds by now."""
        return said_so_far(text) if self.so_far else text

    def refill_lower(self) -> None:
        """Fill the tab for the line under the cursor."""
        if not self.TABS or not self.is_mounted:
            return
        line = self.line
        width = max(20, self.size.width - 3)
        height = max(3, self.size.height - (0 if self.alone else self.upper_height()) - 1)
        about = line if line is not None or self.LINES_MATTER else {}
        content = [] if about is None else self.show_tab(self.tab, about, width, height)
        focused, self._content = self.below, content
        if isinstance(content, Sheet):
            names = [column.name for column in content.columns[:3]]
            self.low_table.identity = lambda each: [each.get(name) for name in names]
            self.low_sheet.refilled(lambda: setattr(self.low_table, "sheet", content))
        else:
            self.low_text.show(content)
        self.place()
        if focused and not self.lower.has_focus:
            self.lower.focus()
        tabs, right = tab_titles(self.TABS, self.tab), self.said()
        room = max(1, self.size.width - len(tabs) - len(right) - 2)
        self.tabs.update(self.host.glyphs.rich(f" {tabs}{' ' * room}{right}", STYLES["label"]))

    def tick(self) -> None:
        """Continue work that takes longer; called ten times a second while the board is shown."""
        if self.TABS and self.work():
            self.refill_lower()

    def clear(self) -> None:
        """Show no lines until there are numbers."""
        self.table.wanted = self.table.position()
        self.table.empty = "Counting ..."
        self.upper.refilled(lambda: self.sheet.fill(()))
        self._content = ()
        self.low_text.show(())

    # --- views ------------------------------------------------------------------------------

    def state(self) -> BoardState:
        """Return what is shown, for going back to it."""
        sort = self.sheet.sort
        lower = self.lower
        return BoardState(
            settings={name: copy(getattr(self, name)) for name in self.VIEW},
            sort=None if sort is None else (sort.name, self.sheet.down),
            row=self.table.position(),
            low_row=Position(lower.cursor, lower.cursor - lower.scroll_offset.y),
            below=self.below,
        )

    def restore(self, state: BoardState) -> None:
        """Show what was shown: tab, order, rows and focus are as they were."""
        for name, value in state.settings.items():
            setattr(self, name, copy(value))
        self.sheet = self.make_sheet()
        self.upper.refilled(lambda: setattr(self.table, "sheet", self.sheet))
        if state.sort is not None:
            self.sheet.sort_as(*state.sort)
        self.table.wanted = state.row
        self.refresh_numbers()
        lower, row = self.lower, state.low_row
        lower.move_to(row.key, tell=False)
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

    @on(Lines.Moved)
    def moved(self, event: Lines.Moved) -> None:
        """Let the tab follow when the cursor rests."""
        event.stop()
        if event.lines is self.table:
            if self._rest is not None:
                self._rest.stop()
            self._rest = self.set_timer(REST, self.refill_lower)
        else:
            self.low_moved()

    def low_moved(self) -> None:
        """Follow the cursor of the tab; for subclasses."""

    def enter_pane(self) -> None:
        """Give the focus to the table or to the tab, whichever has it not."""
        if self.TABS and not self.below:
            self.enter_lower()
            return
        self.upper.display = True
        self.table.focus()
        self.call_after_refresh(self.rearrange)

    def enter_lower(self) -> None:
        """Give the focus to the tab."""
        # It gets its place before the focus, so that no key is lost.
        (self.low_sheet if isinstance(self._content, Sheet) else self.low_text).display = True
        self.lower.focus()
        self.call_after_refresh(self.rearrange)

    def rearrange(self) -> None:
        """Place and fill the parts again after the focus or their sizes changed."""
        self.place()
        self.call_after_refresh(self.refill_lower)

    def zoom(self) -> None:
        """Show the part with the focus alone, or both again."""
        self.zoomed = not self.zoomed
        self.rearrange()

    def resize(self, by: int) -> None:
        """Give the table more room, or less; 0: as usual."""
        self._share_table(self._share * (1.25 if by > 0 else 0.8) if by else SHARE)

    def _share_table(self, share: float) -> None:
        self._share = min(0.85, max(0.15, share))
        self.rearrange()

    @on(Splitter.Dragged)
    def dragged(self, event: Splitter.Dragged) -> None:
        """Let the table end where the mouse is."""
        event.stop()
        if not self.alone:
            self._share_table((event.y - self.region.y) / max(1, self.size.height))

    @on(events.Click, ".board-tabs")
    def tab_clicked(self, event: events.Click) -> None:
        """Show the tab under the mouse."""
        tab = tab_at(self.TABS, event.x - 1)
        if tab is not None:
            self.tab = tab
            self.refill_lower()

    # --- actions ----------------------------------------------------------------------------

    def action_tab(self, by: int) -> None:
        """Show the next tab."""
        if self.TABS:
            self.tab = self.TABS[(self.TABS.index(self.tab) + by) % len(self.TABS)]
            self.refill_lower()
            self.rearrange()

    @on(Table.Opened)
    def opened(self, event: Table.Opened) -> None:
        """Open the line of a double click."""
        event.stop()
        self.action_open_line()

    def wanted(self) -> tuple[str, int | None]:
        """Return the filter, or the number of the exchange, behind the line with the focus."""
        if self.low_text.has_focus:
            return "", self.low_text.number
        if self.low_table.has_focus and self.low_table.line is not None:
            text = self.low_evidence(self.tab, self.low_table.line)
        else:
            text = "" if self.line is None else self.evidence(self.line)
        return self.limited_to_filter(text) if text else "", None

    def limited_to_filter(self, text: str) -> str:
        """Return a filter of evidence, joined with that of the list where the board follows it."""
        return evidence.both(self.host.workspace.view.text, text) if self.limited else text

    def action_open_line(self) -> None:
        """Go in: to the exchanges behind the line, where a subclass knows nothing nearer."""
        self.open_exchanges()

    def open_exchanges(self) -> None:
        """Show the exchanges behind the line."""
        text, number = self.wanted()
        if number is not None:
            self.host.shell.show_exchange(number)
        elif text:
            self.host.shell.show_filter(text)
        else:
            counting = self.so_far and self.line is None
            why = "Counting is not finished." if counting else "This line has no exchanges."
            self.host.shell.tell(why)

    def action_prepare(self) -> None:
        """Put the filter of the line into the filter box."""
        text, number = self.wanted()
        if number is not None:
            text = f"number == {number}"
        if text:
            self.host.shell.prepare_filter(text)

    def action_limit(self) -> None:
        """Count only what the filter selects, or everything again."""
        self.limited = not self.limited
        if self.limited and not self.host.workspace.view.text:
            self.host.shell.tell("No filter is set: / sets one, and this screen applies it.")
        self.refresh_numbers()

    def focused_table(self) -> TablePane:
        """Return the table that is sorted by the keys for that."""
        return self.low_sheet if self.low_table.has_focus else self.upper

    def action_sort(self) -> None:
        """Ask for a column to sort by."""
        pane = self.focused_table()
        sheet = pane.table.sheet
        choices = [("", "default order")]
        choices += [(slot.column.name, slot.column.title) for slot in sheet.slots(pane.table.room)]

        def chosen(name: str) -> None:
            pane.refilled(lambda: sheet.sort_by(name) if name else sheet.unsort())

        here = sheet.sort.name if sheet.sort else ""
        pick(self.app, "Sort by", choices, self.host.glyphs, chosen, here)

    def order(self, name: str) -> None:
        """Sort the table by a column; by the same one again, the other way round."""
        self.upper.refilled(lambda: self.sheet.sort_by(name))

    def action_reverse(self) -> None:
        """Sort the other way round."""
        pane = self.focused_table()
        if pane.table.sheet.sort is None:
            self.action_sort()
        else:
            pane.refilled(pane.table.sheet.reverse)

    @on(TableHeading.Picked)
    def title_clicked(self, event: TableHeading.Picked) -> None:
        """Sort by the column of a title."""
        event.stop()
        pane = self.upper if event.heading is self.upper.heading else self.low_sheet
        pane.refilled(lambda: pane.table.sheet.sort_by(event.name))

    def action_copy_line(self) -> None:
        """Copy the line under the cursor to the terminal's clipboard."""
        pane = self.lower if self.below else self.table
        if pane.cursor >= pane.count():
            return
        pieces = pane.pieces(pane.cursor, UNCUT)[1:]  # not its edge
        text = self.host.glyphs.text("".join(piece for piece, _ in pieces)).strip()
        text += f"   ({self.so_far}{NOT_FINAL})" if self.so_far else ""
        self.app.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self.host.shell.tell(f"Copied {len(text)} characters.")

    def action_copy_command(self) -> None:
        """Copy the command that prints the same table."""
        text = self.full_command().encode("utf-8", "replace").decode()
        self.app.copy_to_clipboard(text)
        self.host.shell.tell(f"Copied: {text}")


def said_so_far(text: str) -> str:
    """Return a sentence about the whole capture as one about what was counted."""
    for whole in ("in the capture", "as far as seen"):
        text = text.replace(whole, "so far")
    return text
