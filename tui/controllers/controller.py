"""Common parts of controllers: the workspace, the app around them, the boards, and the panes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple, TypeVar

from kafkascope.tui.boards import Boards
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.host import Shell
from kafkascope.tui.views.exchanges import ExchangeList
from kafkascope.tui.views.message import DetailPane, HexPane

T = TypeVar("T")
# Seconds between two updates of the progress.
PERIOD_S: Final = 0.2


class ControllerContext(NamedTuple):
    """What every controller is given."""

    workspace: Workspace
    shell: Shell
    host: Boards
    list: ExchangeList
    detail: DetailPane
    hex: HexPane


class Controller:
    """Owns one noun of the program."""

    def __init__(self, context: ControllerContext) -> None:
        self.workspace, self.shell, self.host, self.list, self.detail, self.hex = context
        self._task: object | None = None
        """What runs in a thread; None: nothing, or what nobody waits for any more."""

    def show_activity(self, activity: str) -> None:
        """Show what goes on in the header; empty when it has ended."""
        self.workspace.activity = activity
        self.shell.update_status()

    def run_beside(
        self, words: str, work: Generator[float, None, T], ended: Callable[[T | Exception], None]
    ) -> None:
        """Run `work` in a thread, with the percents that it yields after `words` in the header.
        `ended` gets what it returns, or why it failed, unless it was stopped meanwhile."""
        task = self._task = object()
        later = self.shell.call_later

        def so_far(percent: float) -> None:
            if task is self._task:
                self.show_activity(f"{words} {percent:.0f} %")

        def end(result: Any) -> None:
            if task is self._task:
                self._task = None
                ended(result)
                self.show_activity("")

        def run() -> None:
            shown = time.monotonic()
            try:
                while task is self._task:
                    percent = next(work)
                    if time.monotonic() - shown > PERIOD_S:
                        shown = time.monotonic()
                        later(so_far, percent)
            except StopIteration as done:
                later(end, done.value)
            except Exception as error:  # the outermost guard of the thread: it tells
                later(end, error)

        self.show_activity(words)
        threading.Thread(target=run, daemon=True).start()
