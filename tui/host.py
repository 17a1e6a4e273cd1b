"""Where boards live: shows them in the place of the list of exchanges, gives them their numbers,
and takes what they ask for to the program around."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.filter.bind import bind, fields_of
from kafkascope.analyzer.filter.fields import NOTED
from kafkascope.analyzer.render.times import Times
from kafkascope.tui.data.numbers import Numbers, StoreNumbers
from kafkascope.tui.screens import SCREENS, board_class
from kafkascope.tui.views.exchanges import RELATIVE, ExchangeList

if TYPE_CHECKING:
    from kafkascope.analyzer.findings import Cause
    from kafkascope.tui.controllers.shell import Shell
    from kafkascope.tui.data.workspace import Workspace
    from kafkascope.tui.process.control import Control
    from kafkascope.tui.screens.board import Board

Counted = Callable[[str], Numbers]
"""Filter -> its numbers."""
SHARE: Final = 5
"""So many times longer than making a table took, the next one is away at least."""


def _state(numbers: Numbers | None) -> int:
    """Another one whenever a board may look different: its last words come with the end."""
    return -1 if numbers is None else 2 * numbers.version + numbers.done


class Host:
    """The scene of all boards of a program."""

    def __init__(
        self,
        workspace: Workspace,
        shell: Shell,
        exchanges: ExchangeList,
        counted: Counted | None = None,
        control: Control | None = None,
    ) -> None:
        self.workspace, self.shell, self.list = workspace, shell, exchanges
        self.store = workspace.store
        self.glyphs = shell.glyphs
        self.control = control
        self._counted = counted or (lambda text: StoreNumbers(self.store, text))
        self._all: Numbers | None = None
        self._some: tuple[str, Numbers] | None = None
        """Filter, and the numbers of what it shows."""
        self._boards: dict[int, Board] = {}
        self._seen: dict[int, tuple[int, int, bool]] = {}
        """Versions of numbers that a board shows, and whether all rows were there."""
        self._due = 0.0
        self.number = 1

    @property
    def board(self) -> Board | None:
        """The board that is shown; None when it is the list."""
        return self._boards.get(self.number)

    def made(self, number: int) -> Board:
        """A board; made when it is first wanted."""
        found = self._boards.get(number)
        if found is None:
            found = self._boards[number] = board_class(number)(self)
        return found

    def show(self, number: int) -> Board | None:
        """Another screen; the board, or None for the list."""
        self.number = number if number in SCREENS else 1
        if self.number == 1:
            return None
        return self.made(self.number)

    # --- numbers ----------------------------------------------------------------------------

    def statistic(self, name: str, *, limited: bool) -> Any | None:
        """An accumulator as it is by now, of everything or of what the filter shows."""
        return self._numbers(limited=limited).get(name)

    def so_far(self, *, limited: bool) -> str:
        """How far counting is; empty when accumulators are of the whole input."""
        numbers = self._numbers(limited=limited)
        if numbers.done:
            return numbers.failure
        if numbers.following:
            return "counting what comes"
        return "counting ..." if numbers.share is None else f"counting {numbers.share} %"

    def board_so_far(self) -> str:
        """The same of the numbers that the board shows; empty without a board."""
        board = self.board
        return "" if board is None else self.so_far(limited=board.limited)

    @property
    def findings_version(self) -> int:
        """Another one when findings are others; negative while nobody wanted any."""
        return -1 if self._all is None else self._all.version

    def findings_so_far(self) -> str:
        """The same of the findings; empty, too, while nobody wanted any."""
        return "" if self._all is None else self.so_far(limited=False)

    def _numbers(self, *, limited: bool) -> Numbers:
        text = self.workspace.view.wanted if limited else ""
        if not text:
            if self._all is None:
                self._all = self._counted("")
            return self._all
        if self._some is None or self._some[0] != text:
            if self._some is not None:
                self._some[1].close()
            self._some = text, self._limited(text)
        return self._some[1]

    def _limited(self, text: str) -> Numbers:
        known = self.workspace.notes.known
        if fields_of(bind(text)) & NOTED:
            # Marks, comments and what was found are known here alone.
            return StoreNumbers(self.store, text, known)
        return self._counted(text)

    def tick(self) -> None:
        """Take in numbers, and show them."""
        board = self.board
        if board is None:
            return
        for numbers in (self._all, self._some[1] if self._some is not None else None):
            if numbers is not None and not numbers.done:
                self._advance(numbers)
        versions, now = self._versions(), monotonic()
        if versions != self._seen.get(self.number) and now >= self._due:
            self._seen[self.number] = versions
            board.refresh_numbers()
            self.shell.update_status()
            # Large tables are made anew less often, so that keys are heard.
            self._due = now + SHARE * (monotonic() - now)
        board.tick()

    def _advance(self, numbers: Numbers) -> None:
        numbers.advance()
        progress = self.store.progress
        if numbers.following and progress.done and progress.stopped:
            numbers.settle()  # nobody follows the file any more

    def _versions(self) -> tuple[int, int, bool]:
        some = None if self._some is None else self._some[1]
        return _state(self._all), _state(some), self.store.progress.done

    def causes(self, known: int, *, final: bool = False) -> tuple[int, list[Cause]] | None:
        """What is found by now, with its version; None when there is nothing but `known`, or, where
        `final` is wanted, when more is to be counted."""
        numbers = self._numbers(limited=False)
        if self.board is None and not numbers.done:
            self._advance(numbers)
        if numbers.version == known or (final and not numbers.done):
            return None
        found = numbers.get("findings")
        if found is None:
            return None
        return numbers.version, found.causes(self.store.session.context.names)

    def filter_changed(self) -> None:
        """What is limited shows other numbers."""
        for board in self._boards.values():
            if board.limited and board is self.board:
                board.refresh_numbers()

    def counting(self) -> bool:
        """Whether the board is to show other numbers than it does."""
        board = self.board
        if board is None:
            return False
        done = self._numbers(limited=board.limited).done
        return not done or self._seen.get(self.number) != self._versions()

    def close(self) -> None:
        """End what counts."""
        for numbers in (self._all, self._some[1] if self._some is not None else None):
            if numbers is not None:
                numbers.close()

    # --- the program around -----------------------------------------------------------------

    def times(self) -> Times:
        """How times are written."""
        how = self.list.times
        times = Times("r" if how in RELATIVE else how)
        session = self.store.session
        if len(session):
            times.saw(session.columns["time_ns"][0])
        return times

    def filter_text(self) -> str:
        """The filter that is in use."""
        return self.workspace.view.text

    def input_name(self) -> str:
        """The input, as a command line wants it."""
        return self.workspace.input_name

    def show_filter(self, text: str) -> None:
        """The exchanges that a filter wants."""
        self.shell.show_filter(text)

    def prepare_filter(self, text: str) -> None:
        """Put a filter into its box."""
        self.shell.prepare_filter(text)

    def show_exchange(self, number: int) -> None:
        """One exchange among its neighbours."""
        self.shell.show_exchange(number)

    def tell(self, text: str, severity: Any = "information") -> None:
        """Say a sentence."""
        self.shell.tell(text, severity)
