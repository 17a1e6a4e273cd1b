"""Keeps the boards: shows them in the place of the list of exchanges, with new numbers."""

from __future__ import annotations

from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from kafkascope.dissectors.zookeeper.types import PREFIX
from kafkascope.tui.data.numbers import Numbers
from kafkascope.tui.host import Host
from kafkascope.tui.screens import EXCHANGES, LIVE, SCREENS, TABS, ZOOKEEPER

if TYPE_CHECKING:
    from kafkascope.analyzer.findings import Cause
    from kafkascope.tui.screens.board import Board, BoardSpec

# A table is made again at the earliest after this many times as long as making it took.
SHARE: Final = 5


def board_of(number: int) -> BoardSpec:
    """Return the declaration of a board by its number; `KeyError`."""
    module = import_module(f"kafkascope.tui.screens.{TABS[number].module}")
    return cast("BoardSpec", module.BOARD)


def _state(numbers: Numbers | None) -> int:
    """Return a number that changes when a board may look different, also at the end of counting."""
    return -1 if numbers is None else 2 * numbers.version + numbers.done


class Boards(Host):
    """Owns the boards of a program."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
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
        if number not in self._boards:
            self._boards[number] = board_of(number).made(self)
        return self._boards[number]

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

    def findings_state(self) -> tuple[int, str]:
        """Return a number that changes with the findings, and how far they are counted; -1 and
        nothing until they are requested."""
        return (-1, "") if self._all is None else (self._all.version, self.so_far(limited=False))

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
        names = self.store.session.context.names
        return None if found is None else (numbers.version, found.causes(names))

    def filter_changed(self) -> None:
        """Show the numbers of another filter, where the board follows it."""
        if self.board is not None and self.board.limited:
            self.board.refresh_numbers()

    def counting(self) -> bool:
        """Return whether the board will show other numbers than it does."""
        if self.board is None:
            return False
        done = self._numbers(limited=self.board.limited).done
        return not done or self._seen.get(self.number) != self._versions()
