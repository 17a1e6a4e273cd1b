"""Keeps the boards: shows them in the place of the list of exchanges, and counts their numbers."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.filter.bind import bind, fields_of
from kafkascope.analyzer.filter.fields import DECODED, NOTED
from kafkascope.analyzer.render.times import Times
from kafkascope.dissectors.zookeeper.types import PREFIX
from kafkascope.tui.data.numbers import Numbers, StoreNumbers
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.process.watch import ProxyWatch
from kafkascope.tui.screens import EXCHANGES, LIVE, SCREENS, TABS, ZOOKEEPER, board_class
from kafkascope.tui.views.exchanges import RELATIVE, ExchangeList

if TYPE_CHECKING:
    from kafkascope.analyzer.findings import Cause
    from kafkascope.tui.app import ScopeApp
    from kafkascope.tui.data.view import View
    from kafkascope.tui.process.control import Control
    from kafkascope.tui.screens.board import Board

Counted = Callable[[str], Numbers]
"""Filter -> its numbers."""
SHARE: Final = 5
"""A table is made again at the earliest after this many times as long as making it took."""


def _state(numbers: Numbers | None) -> int:
    """Return a number that changes when a board may look different, also at the end of counting."""
    return -1 if numbers is None else 2 * numbers.version + numbers.done


class Host:
    """Owns the boards of a program and what they count."""

    def __init__(
        self,
        workspace: Workspace,
        shell: ScopeApp,
        exchanges: ExchangeList,
        counted: Counted | None = None,
        control: Control | None = None,
    ) -> None:
        self.workspace, self.shell, self.list = workspace, shell, exchanges
        self.store = workspace.store
        self.glyphs = shell.glyphs
        self.proxy = None if control is None else ProxyWatch(control)
        """The proxy whose traffic is shown."""
        self._counted = counted or (lambda text: StoreNumbers(self.store, text))
        self._all: Numbers | None = None
        self._some: Numbers | None = None
        """Numbers of what the filter selects."""
        self._some_text = ""
        """That filter."""
        self._some_view: View | None = None
        """What answers it in the list."""
        self._boards: dict[int, Board] = {}
        self._seen: dict[int, tuple[object, ...]] = {}
        """By board, the state of the numbers that it shows, and whether all rows were there."""
        self._due = 0.0
        self.number = EXCHANGES

    @property
    def board(self) -> Board | None:
        """The board that is shown; None when it is the list."""
        return self._boards.get(self.number)

    def made(self, number: int) -> Board:
        """Return a board, which is made when it is first wanted."""
        found = self._boards.get(number)
        if found is None:
            found = self._boards[number] = board_class(number)(self)
        return found

    def show(self, number: int) -> Board | None:
        """Show another screen; return its board, None for the list."""
        self.number = number if number in SCREENS else EXCHANGES
        if self.number == EXCHANGES:
            return None
        board = self.made(self.number)
        if self._seen.get(self.number) != self._versions():
            board.clear()
        return board

    def refresh(self, board: Board) -> None:
        """Show the numbers of a board that has been drawn, if it is still shown."""
        if board is self.board:
            self._due = 0.0
            self.tick()

    def tabs(self) -> tuple[int, ...]:
        """Return the screens in the bar of tabs: those that have something to show."""
        progress, apis = self.store.progress, self.store.session.tables["api"].values
        there = {
            LIVE: self.proxy is not None or progress.ring or progress.following,
            ZOOKEEPER: any(name.startswith(PREFIX) for name in apis),
        }
        return tuple(n for n in TABS if n == self.number or there.get(n, True))

    # --- numbers ----------------------------------------------------------------------------

    def statistic(self, name: str, *, limited: bool) -> Any | None:
        """Return an accumulator as it is by now, of everything or of what the filter selects; None
        as long as it is not there."""
        return self._numbers(limited=limited).get(name)

    def so_far(self, *, limited: bool) -> str:
        """Return how far counting is; empty when accumulators are of the whole input."""
        numbers = self._numbers(limited=limited)
        if numbers.done:
            return numbers.failure
        if numbers.following:
            return "counting new traffic"
        return "counting ..." if numbers.share is None else f"counting {numbers.share} %"

    def board_so_far(self) -> str:
        """Return how far the numbers of the board are counted; empty without a board."""
        board = self.board
        return "" if board is None else self.so_far(limited=board.limited)

    @property
    def findings_version(self) -> int:
        """A number that changes with the findings; negative while nobody wanted any."""
        return -1 if self._all is None else self._all.version

    def findings_so_far(self) -> str:
        """Return how far findings are counted; empty, too, while nobody wanted any."""
        return "" if self._all is None else self.so_far(limited=False)

    def _numbers(self, *, limited: bool) -> Numbers:
        view = self.workspace.view
        text = view.wanted if limited else ""
        if not text:
            self._all = self._all or self._counted("")
            return self._all
        if self._some is None or self._some_text != text or self._some_view is not view:
            if self._some is not None:
                self._some.close()
            self._some, self._some_text, self._some_view = self._limited(text), text, view
        return self._some

    def _limited(self, text: str) -> Numbers:
        if fields_of(bind(text)) & (NOTED | DECODED):
            # Only this process knows marks, comments, which exchanges findings are about, and which
            # schemas have come.
            return StoreNumbers(self.store, view=self.workspace.view)
        return self._counted(text)

    def tick(self) -> None:
        """Take in numbers and show them on the board; called ten times a second."""
        board = self.board
        if board is None:
            return
        for numbers in (self._all, self._some):
            if numbers is not None and not numbers.done:
                self._advance(numbers)
        versions, now = self._versions(), monotonic()
        if versions != self._seen.get(self.number) and now >= self._due:
            self._seen[self.number] = versions
            board.refresh_numbers()
            self.shell.update_status()
            # Large tables are made again less often, so that keys are handled.
            self._due = now + SHARE * (monotonic() - now)
        board.tick()

    def _advance(self, numbers: Numbers) -> None:
        numbers.advance()
        progress = self.store.progress
        if numbers.following and progress.done and progress.stopped:
            numbers.settle()  # nobody follows the file any more

    def _versions(self) -> tuple[object, ...]:
        limited = id(self._some) if self._some_view is self.workspace.view else 0
        states = _state(self._all), _state(self._some), limited
        return *states, self.store.progress.done, self.list.times

    def causes(self, known: int, *, final: bool = False) -> tuple[int, list[Cause]] | None:
        """Return the findings by now, with their version; None when that is `known` already, or,
        where `final` is wanted, when more is to be counted."""
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
        """Show the numbers of another filter, where the board follows it."""
        if self.board is not None and self.board.limited:
            self.board.refresh_numbers()

    def counting(self) -> bool:
        """Return whether the board will show other numbers than it does."""
        board = self.board
        if board is None:
            return False
        done = self._numbers(limited=board.limited).done
        return not done or self._seen.get(self.number) != self._versions()

    def close(self) -> None:
        """End the processes that count."""
        for numbers in (self._all, self._some):
            if numbers is not None:
                numbers.close()

    def times(self) -> Times:
        """Return how boards write times: as the list, as far as that depends on no other row."""
        how = self.list.times
        times = Times("r" if how in RELATIVE else how)
        session = self.store.session
        if len(session):
            times.saw(session.columns["time_ns"][0])
        return times
