"""The filter: its box with completion and history, and saved filters."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial
from typing import Final

from textual.app import ComposeResult, SystemCommand
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Static

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.language import bind, complete, seen_in
from kafkascope.analyzer.filter.names import names_at, spelled_out, wants_keeping, without_names
from kafkascope.analyzer.filter.saved import read_saved, saved_path, write_saved
from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.keys import Key
from kafkascope.tui.settings.config import filters_of, remember_filter
from kafkascope.tui.views.choices import Choices
from kafkascope.tui.views.safe import SafeInput

TYPING: Final = 0.15
"""Seconds without a key after which a filter that is being typed is applied."""


class FilterController(Controller):
    """Chooses which exchanges are shown."""

    KEYS = (
        Key("filter.focus", "slash", "/", "focus", "filter; Enter applies, Esc leaves and clears"),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.box = SafeInput(id="filter", compact=True, placeholder="filter: api == Fetch")
        """The input in which filters are typed."""
        self.choices = Choices(self.shell.glyphs)
        """The completions below it."""
        self.error = ""
        """Why the text in the box is not a valid filter."""
        self.saved, self.saved_said = read_saved()
        """Saved filters by name, and why they could not be read."""
        self._typing: Timer | None = None
        self._aside: tuple[int | None, int | None] = (None, None)
        """The exchange under the cursor before half a filter was applied, and after."""
        self._history: list[str] = []
        self._past = -1
        """Place in the history; -1: what is typed."""
        self._given = self.workspace.view.text
        """Text that was put into the box, not typed: it is not completed."""
        self._applied: str | None = None
        """Text in the box whose filter is applied already."""

    def compose(self) -> ComposeResult:
        """Yield the line with the box, and the choices that are drawn over what is below it."""
        with Horizontal(id="filterline"):
            yield Static(" / ", id="slash", markup=False)
            self.box.value = self.workspace.view.text  # not before: it asks for the running app
            yield self.box
            yield Static(id="filterstate", markup=False)
        yield self.choices

    def commands(self) -> Iterable[SystemCommand]:
        """Yield a command for each saved filter."""
        for name, text in self.saved.items():
            yield SystemCommand(f"filter @{name}", text, partial(self.show, f"@{name}"))

    def focus(self) -> None:
        """Give the filter box the focus."""
        if self.workspace.decoding is not None:
            # For completion: schemas may be long, and keys never wait for them.
            threading.Thread(target=self.workspace.decoding.learn, daemon=True).start()
        self.shell.focus_now(self.box)

    def put(self, text: str) -> None:
        """Put a text into the box."""
        self.box.value = text
        self._given = self.box.value  # written out where the text holds what terminals obey
        self.box.cursor_position = len(text)
        self.choices.show(None)

    def show(self, text: str) -> None:
        """Apply a filter, put it into the box and go to the list."""
        if self.apply(text, entered=True):
            self.put(text)
            self._applied = self.box.value
            self.shell.show_list()

    def prepare(self, text: str) -> None:
        """Put a filter into the box and give that the focus; Enter applies it."""
        self.put(text)
        self.shell.focus_now(self.box)

    def clear(self) -> None:
        """Clear the error, and the filter if its box has the focus."""
        if self.box.has_focus and self.box.value:
            self.put("")
            self.apply("", entered=True)
        self.error = ""

    # --- typing -----------------------------------------------------------------------------

    def typed(self, text: str) -> None:
        """Complete a text that is being typed, and apply it when typing rests."""
        if self._typing is not None:
            self._typing.stop()
        if wants_keeping(text) is not None:
            self.choices.show(None)
            self.error = ""
            self.shell.update_status()
            return
        if text == self._given:
            self.choices.show(None)
        else:
            self._given = "\0"
            self._past = -1
            self._complete()
        if text == self._applied:
            return
        self._applied = None
        self._typing = self.shell.set_timer(TYPING, lambda: self.apply(text, entered=False))

    def _complete(self) -> None:
        box = self.box
        if not box.has_focus:
            return
        found = names_at(box.value, box.cursor_position, self.saved)
        if found is None:
            from kafkascope.analyzer.findings import RULES

            decoding = self.workspace.decoding
            seen = seen_in(self.workspace.session, None if decoding is None else decoding.seen)
            found = complete(without_names(box.value), box.cursor_position, seen, RULES)
        word = box.value[found.begin : found.end]
        if [item.text for item in found.items] == [word] and found.error is None:
            self.choices.show(None)
        else:
            self.choices.show(found)

    def take_choice(self) -> bool:
        """Put the item under the cursor into the box; False when there is none."""
        choices = self.choices
        item, found = choices.item, choices.found
        if item is None or found is None:
            return False
        box = self.box
        text = item.text
        glue = "" if text.endswith(".") or item.text == ")" else " "
        rest = box.value[found.end :].lstrip()
        before = box.value[: found.begin] + text + glue
        box.value = before + rest
        box.cursor_position = len(before)
        choices.show(None)
        self.shell.call_after_refresh(self._complete)
        return True

    def history(self, key: str) -> None:
        """Step through the choices, or through earlier filters; `key` is up or down."""
        by = 1 if key == "down" else -1
        if self.choices.item is not None and self._past < 0:
            self.choices.step(by)
            return
        if not self._history:
            self._history = filters_of(self.workspace.name)
        at = self._past - by
        if -1 <= at < len(self._history):
            self._past = at
            self.put("" if at < 0 else self._history[at])

    def entered(self, text: str) -> None:
        """Take the choice under the cursor, or apply the text and go back to the list."""
        if self.choices.moved and self.take_choice():
            return
        kept = wants_keeping(text)
        if kept is not None:
            self._keep(*kept)
        elif self.apply(text, entered=True):
            self.choices.show(None)
            self._given = text
            if text.strip():
                remember_filter(self.workspace.name, text.strip())
                self._history = []
            self.shell.back()

    def _keep(self, name: str, text: str) -> None:
        """Save a filter under a name, or forget the name when the text is empty."""
        saved = {each: other for each, other in self.saved.items() if each != name}
        try:
            if text:
                saved[name] = text
                bind(spelled_out(text, saved))
            write_saved(saved)
        except FilterError as error:
            self.error = f"@{name}: {error.reason}"
            self.shell.update_status()
            return
        except OSError as error:
            self.shell.tell(f"{saved_path()}: {error.strerror}", "warning")
        known = name in self.saved
        self.saved = saved
        if text:
            self.shell.tell(f"@{name} is kept in {saved_path()}")
            self.show(f"@{name}")
        else:
            self.shell.tell(f"@{name} is forgotten" if known else f"there is no @{name}")
            self.show("")

    # --- the view ---------------------------------------------------------------------------

    def apply(self, text: str, *, entered: bool) -> bool:
        """Show the exchanges that a filter selects; return whether it is valid. One that has to
        read messages waits until it is `entered`."""
        workspace, rows = self.workspace, self.list
        try:
            view = workspace.filtered(spelled_out(text, self.saved))
        except FilterError as error:
            hint = f" ({error.hint.split('   ')[0]})" if error.hint else ""
            # What is only begun is no mistake.
            shown = self.choices.found if self.choices.display else None
            begun = shown is not None and shown.unfinished and not entered
            self.error = "" if begun else f"column {error.column}: {error.reason}{hint}"
            self.shell.update_status()
            return False
        self.error = ""
        if view.text != workspace.view.text and (entered or view.fast):
            view.sort(workspace.view.order)
            index = rows.index
            before, after = self._aside
            if index is not None and index == after:
                index = before  # half a filter had left it out
            workspace.view.close()
            workspace.view = view
            view.advance(0.1)
            rows.cursor = 0 if index is None else view.place_of(index)
            rows.changed()
            rows.move_to(rows.cursor, tell=False)
            self._aside = (None, None) if entered else (index, rows.index)
            workspace.unsettled = True
            self.shell.look()
            self.shell.rows_changed()
        self.shell.update_status()
        return True
