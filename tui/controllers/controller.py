"""What all controllers have: the workspace, the app around them, the panes, and their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.actions import parse
from textual.app import SystemCommand

from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.keys import Key
from kafkascope.tui.views.detail import DetailPane
from kafkascope.tui.views.exchanges import ExchangeList
from kafkascope.tui.views.hexpane import HexPane

if TYPE_CHECKING:
    from kafkascope.tui.app import ScopeApp


class Context(NamedTuple):
    """What every controller is given."""

    workspace: Workspace
    shell: ScopeApp
    """The app, for its last section, the boards, timers and the focus, not for other controllers
    (but for `StatusController` and `ReadingController`)."""
    list: ExchangeList
    detail: DetailPane
    hex: HexPane


class Controller:
    """Owns one noun of the program."""

    KEYS: tuple[Key, ...] = ()

    def __init__(self, context: Context) -> None:
        self.workspace, self.shell, self.list, self.detail, self.hex = context

    def commands(self) -> Iterable[SystemCommand]:
        """Return what the palette offers besides the keys."""
        return ()

    def actions(self) -> dict[str, Callable[[], Any]]:
        """Return what the keys call, by their ids."""
        parsed = {key.id: parse(key.action) for key in self.KEYS if key.bound != key.action}
        return {
            id_: partial(getattr(self, name), *arguments)
            for id_, (_, name, arguments) in parsed.items()
        }
