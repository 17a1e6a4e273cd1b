"""The filter: its box with completion and history, filters from values, what to follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from textual import events, on
from textual.timer import Timer
from textual.widgets import Input

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.language import bind, complete, seen_in
from kafkascope.analyzer.filter.names import names_at, spelled_out, wants_keeping, without_names
from kafkascope.analyzer.filter.saved import read_saved, saved_path, write_saved
from kafkascope.tui.actions.base import Base
from kafkascope.tui.data.view import View
from kafkascope.tui.document import values
from kafkascope.tui.settings.config import filters_of, remember_filter
from kafkascope.tui.views.choices import Choices

TYPING: Final = 0.15
LADDER: Final = "ladder"


class Filtering(Base):
    """Which exchanges are shown."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.filter_error = ""
        self.saved, self.saved_said = read_saved()
        """Filters by name."""
        self._typing: Timer | None = None
        self._aside: tuple[int | None, int | None] = (None, None)
        """The exchange that the cursor was on before half a filter was applied, and after."""
        self._history: list[str] = []
        self._past = -1
        """Place in the history; -1: what is typed."""
        self._given = self.view_.text
        """Text that was put into the box, not typed: it asks for no completion."""
        self._applied: str | None = None
        """Text in the box whose filter is shown already."""

    @property
    def box(self) -> Input:
        """Where filters are typed."""
        return self.screen_stack[0].query_one("#filter", Input)

    @property
    def choices(self) -> Choices:
        """What may be typed."""
        return self.screen_stack[0].query_one(Choices)

    def action_filter(self) -> None:
        """To the filter."""
        self.focus_now(self.box)

    def put(self, text: str) -> None:
        """Put a text into the box."""
        self.box.value = text
        self._given = self.box.value  # written out where the text holds what terminals obey
        self.box.cursor_position = len(text)
        self.choices.show(None)

    def show_filter(self, text: str) -> None:
        """The exchanges that a filter wants."""
        if self.apply_filter(text, entered=True):
            self.put(text)
            self._applied = self.box.value
            self.host.show(1)
            self.enter(self.list)

    def prepare_filter(self, text: str) -> None:
        """Put a filter into its box."""
        self.put(text)
        self.focus_now(self.box)

    @on(Input.Changed, "#filter")
    def typing(self, event: Input.Changed) -> None:
        """Filters that need no message apply by themselves."""
        if self._typing is not None:
            self._typing.stop()
        if wants_keeping(event.value) is not None:
            self.choices.show(None)
            self.filter_error = ""
            self.say()
            return
        if event.value == self._given:
            self.choices.show(None)
        else:
            self._given = "\0"
            self._past = -1
            self._complete()
        text = event.value
        if text == self._applied:
            return
        self._applied = None
        self._typing = self.set_timer(TYPING, lambda: self.apply_filter(text, entered=False))

    def _complete(self) -> None:
        box = self.box
        if not box.has_focus:
            return
        seen = seen_in(self.feed.store.session)
        found = names_at(box.value, box.cursor_position, self.saved)
        if found is None:
            from kafkascope.analyzer.findings import RULES

            found = complete(without_names(box.value), box.cursor_position, seen, RULES)
        word = box.value[found.begin : found.end]
        if [item.text for item in found.items] == [word] and found.error is None:
            self.choices.show(None)
        else:
            self.choices.show(found)

    @on(events.DescendantBlur)
    def left_box(self, event: events.DescendantBlur) -> None:
        """Nothing is typed any more."""
        if event.widget.id == "filter":
            self.choices.show(None)

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
        self.call_after_refresh(self._complete)
        return True

    def box_key(self, key: str) -> bool:
        """Up and down in the box: choices, or what was asked before. Whether it did anything."""
        by = 1 if key == "down" else -1
        if self.choices.item is not None and self._past < 0:
            self.choices.step(by)
            return True
        if not self._history:
            self._history = filters_of(self.source_name)
        at = self._past - by
        if -1 <= at < len(self._history):
            self._past = at
            self.put("" if at < 0 else self._history[at])
        return True

    def on_key(self, event: events.Key) -> None:
        """Keys of the box that Textual has no use for."""
        focused = self.focused
        if focused is None or event.key not in ("up", "down"):
            return
        if focused.id == "filter" and self.box_key(event.key):
            event.stop()

    @on(Input.Submitted, "#filter")
    def entered(self, event: Input.Submitted) -> None:
        """Apply, and back to the list; or take what was chosen."""
        if self.choices.moved and self.take_choice():
            return
        kept = wants_keeping(event.value)
        if kept is not None:
            self._keep(*kept)
        elif self.apply_filter(event.value, entered=True):
            self.choices.show(None)
            self._given = event.value
            if event.value.strip():
                remember_filter(self.source_name, event.value.strip())
                self._history = []
            self.back()

    def _keep(self, name: str, text: str) -> None:
        """Give a filter a name, or take it away; it is shown at once."""
        saved = {each: other for each, other in self.saved.items() if each != name}
        try:
            if text:
                saved[name] = text
                bind(spelled_out(text, saved))
            write_saved(saved)
        except FilterError as error:
            self.filter_error = f"@{name}: {error.reason}"
            self.say()
            return
        except OSError as error:
            self.tell(f"{saved_path()}: {error.strerror}", "warning")
        known = name in self.saved
        self.saved = saved
        if text:
            self.tell(f"@{name} is kept in {saved_path()}")
            self.show_filter(f"@{name}")
        else:
            self.tell(f"@{name} is forgotten" if known else f"there is no @{name}")
            self.show_filter("")

    def apply_filter(self, text: str, *, entered: bool) -> bool:
        """Show what a filter wants, if it is one; those that read messages wait for Enter."""
        try:
            view = View(self.feed.store, spelled_out(text, self.saved), self.notes.known)
        except FilterError as error:
            hint = f" ({error.hint.split('   ')[0]})" if error.hint else ""
            # What is only begun is no mistake.
            shown = self.choices.found if self.choices.display else None
            begun = shown is not None and shown.unfinished and not entered
            self.filter_error = "" if begun else f"column {error.column}: {error.reason}{hint}"
            self.say()
            return False
        self.filter_error = ""
        if view.text != self.view_.text and (entered or view.fast):
            view.sort(self.view_.order)
            index = self.list.index
            before, after = self._aside
            if index is not None and index == after:
                index = before  # half a filter had left it out
            self.view_ = self.list.view = view
            view.advance(0.1)
            self.list.cursor = 0 if index is None else view.place_of(index)
            self.list.changed()
            self.list.move_to(self.list.cursor, tell=False)
            self._aside = (None, None) if entered else (index, self.list.index)
            self._busy = True
            self.look()
            self.host.filter_changed()
        self.say()
        return True

    # --- from values ------------------------------------------------------------------------

    def action_from_value(self) -> None:
        """A filter from what is under the cursor."""
        item, index = self.detail.item, self.list.index
        if (self.detail.has_focus or self.hex.has_focus) and item is not None:
            condition = values.of_item(item)
            if condition:
                self._ways(condition)
                return
            self.tell("this line is no field with a value; here is what the row says")
        if index is None:
            return
        conditions = values.of_row(self.feed.store.session, index)
        self.pick("filter from this row", [(each, each) for each in conditions], self._ways)

    def _ways(self, condition: str) -> None:
        present = self.view_.text
        usable = [way for way in values.WAYS if present or way[0] in ("is", "not", "prepare")]
        choices = [(way, title.format(condition)) for way, title in usable]

        def chosen(way: str) -> None:
            text = values.joined(way, condition, present)
            if way == "prepare":
                self.prepare_filter(text)
            else:
                self.show_filter(text)

        self.pick("filter", choices, chosen)

    def action_follow(self) -> None:
        """All that the exchange under the cursor is a part of."""
        index = self.list.index
        if index is None:
            return
        session = self.feed.store.session
        found = list(values.follows(session, index))
        number = session.connections[session.columns["connection"][index]].number
        choices = [(each.filter, each.title) for each in found]
        choices.insert(1, (LADDER, f"connection {number} as a ladder (screen 2)"))

        async def ladder() -> None:
            await self.run_action("screen(2)")
            board: Any = self.host.board
            if board is not None and not board.select(number):
                self.tell(f"connection {number} is not counted yet")

        def chosen(text: str) -> None:
            if text == LADDER:
                self.call_later(ladder)
            else:
                self.show_filter(text)
                self.tell("following; / and Esc show everything again")

        self.pick("follow", choices, chosen)

    def action_column(self) -> None:
        """The field under the cursor as a column of the list; once more takes it away."""
        item = self.detail.item
        if (self.detail.has_focus or self.hex.has_focus) and item is not None and item.path:
            self.add_column(item.path)
            return
        known = [
            *("conn", "version", "topic", "partition", "group", "error", "wait", "excess"),
            *("throttle", "records", "codec", "acks", "software", "user", "producer.id", "member"),
            *("generation", "correlation_id", "client.ip", "frame", "state", "txn"),
        ]
        here = [(name, f"- {name}") for name in self.list.extra]
        choices = here + [(name, f"+ {name}") for name in known if name not in self.list.extra]
        self.pick("columns", choices, self.add_column)

    def add_column(self, name: str) -> None:
        """Add a column, or take it away."""
        extra = self.list.extra
        if name in extra:
            extra.remove(name)
        else:
            try:
                from kafkascope.analyzer.render.listing import columns_of
                from kafkascope.analyzer.render.times import Times

                columns_of((name,), Times())
            except FilterError as error:
                self.tell(error.reason, "warning")
                return
            extra.append(name)
        self.list.changed()
        self.say()
        if self._pane is not self.list:
            self.tell(f"column {name} {'added' if name in extra else 'removed'}")


def title_of(name: str) -> str:
    """What the header calls an input."""
    return "stdin" if name == "-" else Path(name).name or name
