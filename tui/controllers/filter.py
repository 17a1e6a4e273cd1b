"""The filter: its box with completion and history, and saved filters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from textual.app import ComposeResult, SystemCommand
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Static

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.language import bind, complete, seen_in
from kafkascope.analyzer.filter.saved import (
    names_at,
    read_saved,
    saved_path,
    spelled_out,
    wants_keeping,
    without_names,
    write_saved,
)
from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.settings.config import filters_of, remember_filter
from kafkascope.tui.settings.palette import NORMAL
from kafkascope.tui.stack import ViewState
from kafkascope.tui.views.choices import Choices
from kafkascope.tui.views.safe import SafeInput

# Seconds without a key after which a filter that is being typed is applied.
TYPING: Final = 0.15
PLACEHOLDER: Final = "Type a filter, for example: api == Fetch"


class FilterController(Controller):
    """Chooses which exchanges are shown."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.box = SafeInput(id="filter", compact=True, placeholder=PLACEHOLDER)
        self.choices = Choices(self.shell.glyphs)
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
        self.text = self.workspace.view.text
        """The filter that is in use, as it was written."""
        self._before: ViewState | None = None
        """The view in which the user began to type."""

    def compose(self) -> ComposeResult:
        with Horizontal(id="filterline"):
            yield Static(" / ", id="slash", markup=False)
            self.box.value = self.workspace.view.text  # not before: it asks for the running app
            yield self.box
            yield Static(id="filterstate", markup=False)
        yield self.choices

    def commands(self) -> Iterable[SystemCommand]:
        for name, text in self.saved.items():
            yield SystemCommand(
                f"Filter by @{name}", text, partial(self.shell.show_filter, f"@{name}")
            )

    def focus(self) -> None:
        if self.workspace.decoding is not None:
            # For completion: schemas may be long, and keys never wait for them.
            threading.Thread(target=self.workspace.decoding.learn, daemon=True).start()
        self.begin()
        self.shell.focus_now(self.box)

    def begin(self) -> None:
        """Remember the view in which the user begins to type."""
        self._before = self._before or self.shell.here()

    def put(self, text: str) -> None:
        self.box.value = text
        self._given = self.box.value  # written out where the text holds what terminals obey
        self.box.cursor_position = len(text)
        self.choices.show(None)

    def put_applied(self, text: str) -> None:
        """Put a filter into the box that is applied already."""
        self.put(text)
        self._applied, self.error, self._before = self.box.value, "", None
        self._stop_typing()

    def restore(self, text: str) -> None:
        """Apply the filter of a view that is shown again."""
        if text != self.text:
            self.apply(text, entered=True)
        self.put_applied(text)

    def prepare(self, text: str) -> None:
        """Put a filter into the box and give that the focus; Enter applies it."""
        self.begin()
        self.put(text)
        self.shell.focus_now(self.box)

    def cancel(self) -> None:
        """Leave the box: the view is as it was before the user typed."""
        before, self._before = self._before, None
        if before is not None:
            self.shell.restore_view(before)
        else:
            self.shell.focus_view()

    def commit(self) -> None:
        """Keep what was typed; Esc goes back to the view before it."""
        before, self._before = self._before, None
        if before is not None and before.filter != self.text:
            self.shell.push_view(before)

    @property
    def waits(self) -> bool:
        """Whether a filter is typed that Enter applies, as messages have to be read for it."""
        return self.box.has_focus and bool(self.box.value) and self.box.value.strip() != self.text

    # --- typing -----------------------------------------------------------------------------

    def typed(self, text: str) -> None:
        """Complete a text that is being typed, and apply it when typing rests."""
        self._stop_typing()
        if wants_keeping(text) is not None:
            self.choices.show(None)
            self.error = ""
            self.shell.update_status()
            return
        if text == self._given:
            self.choices.show(None)
        else:
            self._given, self._past = "\0", -1
            self._complete()
        if text != self._applied:
            self._applied = None
            self._typing = self.shell.set_timer(TYPING, lambda: self.apply(text, entered=False))

    def _stop_typing(self) -> None:
        if self._typing is not None:
            self._typing.stop()

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
        whole = [item.text for item in found.items] == [word] and found.error is None
        self.choices.show(None if whole else found)

    def take_choice(self) -> bool:
        """Put the item under the cursor into the box; False when there is none."""
        item, found, box = self.choices.item, self.choices.found, self.box
        if item is None or found is None:
            return False
        glue = "" if item.text.endswith(".") or item.text == ")" else " "
        before = box.value[: found.begin] + item.text + glue
        box.value = before + box.value[found.end :].lstrip()
        box.cursor_position = len(before)
        self.choices.show(None)
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
            self.commit()
            self.shell.focus_view()

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
            self.shell.say(f"{saved_path()}: {error.strerror}", "warning")
        done = f"Deleted @{name}." if name in self.saved else f"No saved filter @{name}."
        self.saved = saved
        self.shell.say(f"Saved @{name} in {saved_path()}." if text else done)
        self.shell.show_filter(f"@{name}" if text else "")

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
        if entered or view.fast:
            self.text = text.strip()
        if view.text != workspace.view.text and (entered or view.fast):
            view.sort(workspace.view.order)
            index, (before, after) = rows.index, self._aside
            if index is not None and index == after:
                index = before  # half a filter had left it out
            workspace.view.close()
            workspace.view = view
            view.advance(0.1)
            rows.stay_on(index)
            self._aside = (None, None) if entered else (index, rows.index)
            workspace.unsettled = True
            self.shell.look()
            self.host.filter_changed()
        self.shell.update_status()
        return True


class PromptController(Controller):
    """Asks one question at a time."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.line = Horizontal(id="promptline")
        self.box = SafeInput(id="prompt", compact=True)
        self._answer: Callable[[str], object] | None = None

    def compose(self) -> ComposeResult:
        with self.line:
            yield Static(id="asking", markup=False)
            yield self.box

    def typed(self) -> str | None:
        """Return the answer so far; None without an open question."""
        return self.box.value if self.box.has_focus else None

    def ask(self, what: str, answer: Callable[[str], object], text: str = "") -> None:
        self._answer = answer
        self.shell.write("asking", f" {what}: ", NORMAL)
        self.box.value = text
        self.box.cursor_position = len(text)
        self.line.display = True
        self.shell.focus_now(self.box)

    def answered(self, text: str) -> None:
        self.end()
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(text.strip())

    def end(self) -> None:
        # The focus goes first, so that no key is lost to the filter.
        self.shell.focus_view()
        self.line.display = False
