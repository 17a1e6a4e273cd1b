"""What the command palette (ctrl+p or :) offers: every action by its name, screens, columns to sort
by, recent files; a number goes to that exchange."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode

from kafkascope.tui.controllers.table import KEYS, SILENT
from kafkascope.tui.keys import BOARD_KEYS, Key

if TYPE_CHECKING:
    from kafkascope.tui.app import ScopeApp


def commands(app: ScopeApp) -> Iterable[SystemCommand]:
    """Yield what can be done now."""
    board = app.host.board
    if board is not None:
        for key in (*board.KEYS, *BOARD_KEYS):
            yield _of_key(app, board, key, key.action, board.TITLE)
        for column in board.sheet.columns:
            title = f"Sort by {column.title}"
            yield SystemCommand(title, board.TITLE, partial(board.order, column.name))
    for key in KEYS:
        if key.id not in SILENT and not (board is not None and key.id.startswith("list.")):
            yield _of_key(app, app, key, key.bound, "")
    for controller in app.controllers:
        yield from controller.commands()


def _of_key(app: ScopeApp, owner: DOMNode, key: Key, action: str, where: str) -> SystemCommand:
    help_ = "   ".join(part for part in (where, f"key {key.shown}", key.id) if part)

    async def run() -> None:
        await app.run_action(action, default_namespace=owner)

    return SystemCommand(key.help, help_, run)


class GoTo(Provider):
    """Goes to the exchange whose number is typed into the palette."""

    async def search(self, query: str) -> Hits:
        """Yield the exchange of a number."""
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
        """Yield a hint that numbers may be typed."""
        yield DiscoveryHit("Go to an exchange", lambda: None, help="type its number")
