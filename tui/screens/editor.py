"""An editor for the body of a held frame, as JSON."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from kafkascope.analyzer.text import json_safe
from kafkascope.dissectors.codec.jsonform import dumps_indented
from kafkascope.tui.settings.palette import STYLES, Glyphs
from kafkascope.tui.views.safe import SafeTextArea


class Editor(ModalScreen[Any]):
    """Edits a body; the result is the body to send on, None to hold it further."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f2", "send", "send it on", id="editor.send", show=False, priority=True),
        Binding("escape", "dismiss(None)", "leave it held", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Editor { align: center middle; }
    Editor > Vertical { width: 90%; height: 90%; background: $panel; padding: 0 1; }
    Editor Static { height: 1; }
    Editor TextArea, Editor TextArea:focus { height: 1fr; border: none; padding: 0; }
    """

    def __init__(self, title: str, body: Any, glyphs: Glyphs) -> None:
        super().__init__()
        self.heading = title
        self.body = body
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Yield the title, the text, and a line for what is wrong with it."""
        with Vertical():
            yield Static(self.glyphs.rich(self.heading, STYLES["header"]), markup=False)
            yield SafeTextArea(json_safe(dumps_indented(self.body)).decode(), self.glyphs)
            yield Static(id="editor-state", markup=False)

    def on_mount(self) -> None:
        """Show the keys and give the text the focus."""
        self._say("ctrl+s forwards the frame   Esc keeps it held", "dim")
        self.query_one(TextArea).focus()

    def _say(self, text: str, role: str) -> None:
        self.query_one("#editor-state", Static).update(self.glyphs.rich(text, STYLES[role]))

    def action_send(self) -> None:
        """Send the body on, if it is a JSON object."""
        area = self.query_one(TextArea)
        try:
            body = json.loads(area.text)
        except json.JSONDecodeError as error:
            self._say(f"line {error.lineno}, column {error.colno}: {error.msg}", "!")
            area.move_cursor((error.lineno - 1, error.colno - 1))
        except RecursionError:
            self._say("Nested too deeply", "!")
        else:
            if isinstance(body, dict):
                self.dismiss(body)
            else:
                self._say("The body must be an object: { ... }", "!")
