"""Questions to the user: for a line of text at the foot of the screen, or for a choice."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.screens.picker import pick
from kafkascope.tui.settings.palette import NORMAL
from kafkascope.tui.views.safe import SafeInput


class PromptController(Controller):
    """Asks one question at a time."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.line = Horizontal(id="promptline")
        self.box = SafeInput(id="prompt", compact=True)
        self._answer: Callable[[str], object] | None = None

    def compose(self) -> ComposeResult:
        """Yield the line with the question and its input."""
        with self.line:
            yield Static(id="asking", markup=False)
            yield self.box

    def typed(self) -> str | None:
        """Return the answer so far; None while nothing is asked for."""
        return self.box.value if self.box.has_focus else None

    def ask(self, what: str, answer: Callable[[str], object], text: str = "") -> None:
        """Ask for a line of text."""
        self._answer = answer
        self.shell.write("asking", f" {what}: ", NORMAL)
        self.box.value = text
        self.box.cursor_position = len(text)
        self.line.display = True
        self.shell.focus_now(self.box)

    def answered(self, text: str) -> None:
        """Close the question and pass the answer on."""
        self.end()
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(text.strip())

    def end(self) -> None:
        """Close the question."""
        # The focus goes first, so that no key is lost to the filter.
        self.shell.focus_view()
        self.line.display = False

    def pick(
        self,
        title: str,
        choices: list[tuple[str, str]],
        chosen: Callable[[str], object],
        here: str | None = None,
    ) -> None:
        """Let the user choose one of (key, text); `chosen` gets its key, unless there was no
        choice. `here` is the key of what is in use."""
        pick(self.shell, title, choices, self.shell.glyphs, chosen, here)
