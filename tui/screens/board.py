"""What screens 2 to 8 have in common: a table above, and below it, by tabs, what there is to say
about the line under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Static

from kafkascope.tui.keys import Key
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.ladder import Told
from kafkascope.tui.screens.panes import Heading, Table, TablePane, Text
from kafkascope.tui.screens.picker import Picker
from kafkascope.tui.screens.scene import BOARD_KEYS, Scene
from kafkascope.tui.screens.sheet import Sheet, Spans
from kafkascope.tui.settings.palette import STYLES
from kafkascope.tui.views.help import HelpScreen, Row
from kafkascope.tui.views.lines import Lines
from kafkascope.tui.views.splitter import Splitter

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.model import Line

REST: Final = 0.03
"""Seconds that the cursor rests before the lower part follows."""
SLICE: Final = 0.02
"""Seconds of work on charts at a time."""
NOT_FINAL: Final = ": numbers so far, not final"
WIDE: Final = 100
HIGH: Final = 20
"""Columns and lines (of a board) below which one part has the place of both."""


class Board(Vertical):
    """A screen. Subclasses say what is in the table, in the tabs, and behind a line."""

    NUMBER: ClassVar[int]
    TITLE: ClassVar[str]
    STATISTICS: ClassVar[tuple[str, ...]] = ()
    """What it shows, by the names of `analyzer.statistics.STATISTICS`."""
    COMMAND: ClassVar[str]
    """The command that prints the same; `{}` stands for the input."""
    TABS: ClassVar[tuple[str, ...]] = ()
    LINES_MATTER: ClassVar[bool] = True
    """Whether the tabs are about the line under the cursor."""
    EMPTY: ClassVar[str] = "nothing of this kind in the capture"
    """Said when all is counted; until then it is `EARLY`."""
    EARLY: ClassVar[str] = "nothing yet ..."
    TABLE: ClassVar[type[Table]] = Table
    """The widget of the table."""
    KEYS: ClassVar[tuple[Key, ...]] = ()
    """Besides those of every board."""
    NOTED: ClassVar[bool] = True
    """Whether a line says that numbers are not final."""
    HELP: ClassVar[str] = ""
    """F1: what this screen is good for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in BOARD_KEYS
    ]
    DEFAULT_CSS = """
    Board { height: 1fr; }
    Board .board-tabs { height: 1; background: $surface; }
    Board .board-note { height: 1; }
    Board .lower { height: 1fr; }
    Board Lines { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(id=f"board-{self.NUMBER}")
        self.scene = scene
        self.limited = False
        self.tab = self.TABS[0] if self.TABS else ""
        name = type(self).__name__.lower()
        self.sheet = self.make_sheet()
        self.table = self.TABLE(self.sheet, scene.glyphs, id=f"{name}-table")
        self.table.identity = self.identity
        self.upper = TablePane(self.table, id=f"{name}-upper")
        self.low_table = Table(Sheet(()), scene.glyphs, id=f"{name}-low-table")
        self.low_sheet = TablePane(self.low_table, id=f"{name}-low-sheet")
        self.low_text = Text(scene.glyphs, id=f"{name}-low-text")
        self.tabs = Splitter(classes="board-tabs", markup=False)
        self.note = Static(classes="board-note", markup=False)
        """Says that numbers are not final."""
        self.note.display = False
        self.so_far = ""
        """How far counting is; empty when what is shown is final."""
        self.zoomed = False
        self._rest: Timer | None = None

    # --- what subclasses say ----------------------------------------------------------------

    def make_sheet(self) -> Sheet:
        """The table, still empty."""
        raise NotImplementedError

    def identity(self, line: Line) -> Any:
        """What makes a line the same one when there are new numbers."""
        return line.get(self.sheet.columns[0].name)

    def lines(self) -> Sequence[Line] | None:
        """The lines of the table by now; None while nothing is known."""
        raise NotImplementedError

    def evidence(self, line: Line) -> str:
        """The filter for the exchanges behind a line."""
        return ""

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[Told]:
        """What a tab says about a line."""
        return []

    def low_evidence(self, tab: str, line: Line) -> str:
        """The filter for a line of a table in a tab."""
        return ""

    def work(self) -> bool:
        """Do some work that takes longer, for `SLICE` at most; whether that changed the tab."""
        return False

    def said(self) -> str:
        """What stands at the right of the tabs."""
        return ""

    def command(self) -> str:
        """The command that prints the table as it is; `{}` stands for the input."""
        return self.COMMAND

    def full_command(self) -> str:
        """The same for a command line, with the input."""
        return self.command().replace("{}", self.scene.input_name(), 1)

    def help(self, everywhere: Sequence[Row]) -> HelpScreen:
        """The keys of this screen and those of all screens, and what it is good for."""
        mine = [(key.shown, key.help) for key in (*self.KEYS, *BOARD_KEYS)]
        sections = ((self.TITLE, mine), ("Everywhere", everywhere))
        command = self.full_command()
        return HelpScreen(self.scene.glyphs, self.TITLE, sections, about=self.HELP, command=command)

    # --- parts ------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Table, tabs, what the tab says."""
        yield self.note
        yield self.upper
        if self.TABS:
            yield self.tabs
            self.low_sheet.add_class("lower")
            self.low_text.add_class("lower")
            yield self.low_sheet
            yield self.low_text

    def statistic(self, name: str) -> Any | None:
        """An accumulator, limited to the filter when that is wanted."""
        return self.scene.statistic(name, limited=self.limited)

    @property
    def lower(self) -> Lines:
        """What the tab shows: a table or text."""
        return self.low_table if isinstance(self._content, Sheet) else self.low_text

    @property
    def below(self) -> bool:
        """Whether the lower part has the focus."""
        return self.low_table.has_focus or self.low_text.has_focus

    @property
    def line(self) -> Line | None:
        """The line under the cursor of the table."""
        return self.table.line

    def on_mount(self) -> None:
        """The lower part is filled when the table is."""
        self.low_text.display = False

    def on_resize(self, event: events.Resize) -> None:
        """Charts are as wide as the screen."""
        self.place()
        self.refill_lower()

    def place(self) -> None:
        """Which parts have a place, and how much of it."""
        if not self.TABS:
            return
        alone = self.alone
        below = self.below
        self.upper.display = not alone or not below
        shown = not alone or below
        self.tabs.display = shown
        table = isinstance(self._content, Sheet)
        self.low_sheet.display = shown and table
        self.low_text.display = shown and not table
        self.upper.styles.height = "1fr" if alone else self.upper_height()

    def upper_height(self) -> int:
        """Lines of the table when there is room for both parts: what it has, or its share."""
        wanted = max(1, len(self.sheet.lines)) + 1
        return max(3, min(wanted, int(self.size.height * self._share)))

    @property
    def alone(self) -> bool:
        """Whether one part has the place of both."""
        return self.zoomed or self.size.width < WIDE or self.size.height < HIGH

    _content: Sheet | Sequence[Told] = ()
    _share = 0.45

    def refresh_numbers(self) -> None:
        """There are new numbers, or another filter."""
        self.so_far = self.scene.so_far(limited=self.limited)
        self._note()
        found = self.lines()
        if found is None:
            self.table.empty = "counting ..."
        elif self.so_far:
            self.table.empty = self.EARLY
        else:
            self.table.empty = self.EMPTY

        def change() -> None:
            self.sheet.fill(found or (), self.scene.times())

        self.upper.refilled(change)
        self.refill_lower()
        self.place()

    def _note(self) -> None:
        self.note.display = bool(self.so_far) and self.NOTED
        self.note.update(self.scene.glyphs.rich(f" {self.so_far}{NOT_FINAL}", STYLES["?"]))

    def worded(self, text: str) -> str:
        """A sentence about the whole capture, as it may be said by now."""
        return said_so_far(text) if self.so_far else text

    def refill_lower(self) -> None:
        """What the tab says about the line under the cursor."""
        if not self.TABS or not self.is_mounted:
            return
        line = self.line
        width = max(20, self.size.width - 3)
        height = max(3, self.size.height - (0 if self.alone else self.upper_height()) - 1)
        about = line if line is not None or self.LINES_MATTER else {}
        self._content = [] if about is None else self.show_tab(self.tab, about, width, height)
        content = self._content
        focused = self.below
        if isinstance(content, Sheet):
            names = [column.name for column in content.columns[:3]]
            self.low_table.identity = lambda each: [each.get(name) for name in names]
            self.low_sheet.refilled(lambda: setattr(self.low_table, "sheet", content))
        else:
            self.low_text.show(content)
        self.place()
        if focused and not self.lower.has_focus:
            self.lower.focus()
        self.say_tabs()

    def say_tabs(self) -> None:
        """The titles of the tabs, and a word at the right."""
        tabs = "  ".join(f"[{tab}]" if tab == self.tab else f" {tab} " for tab in self.TABS)
        right = self.said()
        room = max(1, self.size.width - len(tabs) - len(right) - 2)
        self.tabs.update(self.scene.glyphs.rich(f" {tabs}{' ' * room}{right}", STYLES["label"]))

    def tick(self) -> None:
        """Ten times a second while the board is seen."""
        if self.TABS and self.work():
            self.refill_lower()

    # --- moving -----------------------------------------------------------------------------

    @on(Lines.Moved)
    def moved(self, event: Lines.Moved) -> None:
        """The lower part follows when the cursor rests."""
        event.stop()
        if event.lines is self.table:
            if self._rest is not None:
                self._rest.stop()
            self._rest = self.set_timer(REST, self.refill_lower)
        else:
            self.low_moved()

    def low_moved(self) -> None:
        """The cursor of the lower part is elsewhere."""

    def panes(self) -> list[Lines]:
        """What can have the focus."""
        return [self.table, self.lower] if self.TABS else [self.table]

    def enter_pane(self, by: int = 1) -> None:
        """The other part."""
        panes = self.panes()
        here = int(self.below)
        wanted = panes[(here + by) % len(panes)]
        # What has no place gets one first, so that no key is lost.
        if wanted is self.table:
            self.upper.display = True
        elif isinstance(self._content, Sheet):
            self.low_sheet.display = True
        else:
            self.low_text.display = True
        wanted.focus()
        self.call_after_refresh(self.rearrange)

    def rearrange(self) -> None:
        """After the focus moved."""
        self.place()
        self.call_after_refresh(self.refill_lower)

    def zoom(self) -> None:
        """This part alone, and back."""
        self.zoomed = not self.zoomed
        self.rearrange()

    def resize(self, by: int) -> None:
        """More room for the table, or less; 0: as usual."""
        step = 1.25 if by > 0 else 0.8
        self._share = 0.45 if not by else min(0.85, max(0.15, self._share * step))
        self.rearrange()

    @on(Splitter.Dragged)
    def dragged(self, event: Splitter.Dragged) -> None:
        """The table ends there."""
        event.stop()
        if not self.alone:
            share = (event.y - self.region.y) / max(1, self.size.height)
            self._share = min(0.85, max(0.15, share))
            self.rearrange()

    @on(events.Click, ".board-tabs")
    def tab_clicked(self, event: events.Click) -> None:
        """The tab under the mouse."""
        left = 1
        for tab in self.TABS:
            if left <= event.x < left + len(tab) + 2:
                self.tab = tab
                self.refill_lower()
            left += len(tab) + 4

    # --- actions ----------------------------------------------------------------------------

    def action_tab(self, by: int) -> None:
        """Another tab."""
        if self.TABS:
            self.tab = self.TABS[(self.TABS.index(self.tab) + by) % len(self.TABS)]
            self.refill_lower()
            self.rearrange()

    @on(Table.Opened)
    def opened(self, event: Table.Opened) -> None:
        """A double click."""
        event.stop()
        self.action_open_line()

    def wanted(self) -> tuple[str, int | None]:
        """The filter, or the number of the exchange, behind the line with the focus."""
        if self.low_text.has_focus:
            return "", self.low_text.number
        if self.low_table.has_focus and self.low_table.line is not None:
            text = self.low_evidence(self.tab, self.low_table.line)
        else:
            text = "" if self.line is None else self.evidence(self.line)
        if self.limited and text:
            text = evidence.both(self.scene.filter_text(), text)
        return text, None

    def action_open_line(self) -> None:
        """The exchanges behind the line."""
        text, number = self.wanted()
        if number is not None:
            self.scene.show_exchange(number)
        elif text:
            self.scene.show_filter(text)
        else:
            self.scene.tell("no exchanges stand behind this line alone")

    def action_prepare(self) -> None:
        """Put the filter of the line into the box."""
        text, number = self.wanted()
        if number is not None:
            text = f"number == {number}"
        if text:
            self.scene.prepare_filter(text)

    def action_limit(self) -> None:
        """Only what the filter shows, or everything."""
        self.limited = not self.limited
        if self.limited and not self.scene.filter_text():
            self.scene.tell("there is no filter yet: / sets one, and this table follows it")
        self.refresh_numbers()

    def focused_table(self) -> TablePane:
        """The table that sorting is about."""
        return self.low_sheet if self.low_table.has_focus else self.upper

    def action_sort(self) -> None:
        """Ask for a column."""
        pane = self.focused_table()
        sheet = pane.table.sheet
        choices = [("", "usual order")]
        choices += [(slot.column.name, slot.column.title) for slot in sheet.slots(pane.table.room)]

        def chosen(name: str | None) -> None:
            if name is not None:
                pane.refilled(lambda: sheet.sort_by(name) if name else sheet.unsort())

        here = sheet.sort.name if sheet.sort else ""
        self.app.push_screen(Picker("order by", choices, self.scene.glyphs, here), chosen)

    def order(self, name: str) -> None:
        """Order the table by a column; by the same one again, the other way round."""
        self.upper.refilled(lambda: self.sheet.sort_by(name))

    def action_reverse(self) -> None:
        """The other way round."""
        pane = self.focused_table()
        if pane.table.sheet.sort is None:
            self.action_sort()
        else:
            pane.refilled(pane.table.sheet.reverse)

    @on(Heading.Picked)
    def title_clicked(self, event: Heading.Picked) -> None:
        """Order by the column."""
        event.stop()
        pane = self.upper if event.heading is self.upper.heading else self.low_sheet
        pane.refilled(lambda: pane.table.sheet.sort_by(event.name))

    def action_copy_line(self) -> None:
        """The line, to the terminal's clipboard."""
        pane = self.lower if self.below else self.table
        if pane.cursor >= pane.count():
            return
        pieces = pane.pieces(pane.cursor, max(80, self.size.width))[1:]  # not its edge
        text = self.scene.glyphs.text("".join(piece for piece, _ in pieces)).strip()
        text += f"   ({self.so_far}{NOT_FINAL})" if self.so_far else ""
        self.app.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self.scene.tell(f"copied {len(text)} characters")

    def action_copy_command(self) -> None:
        """The command that prints the same table."""
        text = self.full_command().encode("utf-8", "replace").decode()
        self.app.copy_to_clipboard(text)
        self.scene.tell(f"copied: {text}")


def said_so_far(text: str) -> str:
    """A sentence about the whole capture, made one about what was counted."""
    for whole in ("in the capture", "as far as seen"):
        text = text.replace(whole, "so far")
    return text


def told(lines: Sequence[Spans]) -> list[Told]:
    """Lines that are about no exchange."""
    return [Told(line) for line in lines]


__all__ = ["BOARD_KEYS", "SLICE", "Board", "Scene", "told"]
