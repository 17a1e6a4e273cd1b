"""What users say about exchanges: marks, comments, what to ignore, names of topics, and the
difference of two marked ones."""

from __future__ import annotations

from kafkascope.dissectors.values import Uuid
from kafkascope.tui.actions.looking import Looking
from kafkascope.tui.document import values
from kafkascope.tui.document.values import joined
from kafkascope.tui.settings.colours import colours_path
from kafkascope.tui.settings.palette import NORMAL, STYLES
from kafkascope.tui.views.lines import Piece
from kafkascope.tui.views.page import Page


class Noting(Looking):
    """Marks and comments."""

    def noted(self) -> None:
        """Marks or comments changed."""
        self.colours.forget()
        self.list.changed()
        if any(word in self.view_.text for word in ("marked", "ignored", "comment")):
            self.view_.noted()
            self._busy = True
        if self.notes.said:
            self.tell(self.notes.said, "warning")
            self.notes.said = ""

    def action_colours(self) -> None:
        """Read the colour rules once more."""
        self.colours.read()
        self.list.changed()
        if self.colours.said:
            self.tell(self.colours.said, "warning")
        count, path = len(self.colours.rules), colours_path()
        self.tell(f"{count} colour {'rule' if count == 1 else 'rules'} from {path}")

    def action_mark(self) -> None:
        """Mark the row, or take the mark away."""
        number = self.list.number
        if number is not None:
            self.notes.mark(number, self.feed.store.session)
            self.noted()

    def action_only_marked(self) -> None:
        """Only what is marked, and back."""
        text = self.view_.text
        if text == "marked" or text.endswith(" and marked"):
            self.show_filter(text[: -len(" and marked")] if text != "marked" else "")
        elif not self.notes.marked:
            self.tell("nothing is marked; m marks")
        else:
            self.show_filter(joined("and", "marked", text))

    def action_ignore(self) -> None:
        """Take the row out of the list; among those that are ignored, put it back."""
        index, number = self.list.index, self.list.number
        if index is None or number is None:
            return
        view, place = self.view_, self.list.cursor
        after = view[min(place + 1, len(view) - 1)]
        self.notes.ignore(number, self.feed.store.session)
        if number in self.notes.ignored:
            view.hide(index)
        elif "ignored" in view.text:
            view.noted()
        view.advance(0.1)
        self.list.cursor = view.place_of(after)
        self.noted()
        self.list.move_to(self.list.cursor, tell=False)
        self._busy = True
        self.host.filter_changed()
        self.look()
        self.say()

    def action_only_ignored(self) -> None:
        """Only what is ignored, and back."""
        if self.view_.text == "ignored":
            self.show_filter("")
        elif not self.notes.ignored:
            self.tell("nothing is ignored; i takes an exchange out of the list")
        else:
            self.show_filter("ignored")

    def name_topic(self) -> None:
        """Ask which topic id to name, and how."""
        found = values.nameless(self.feed.store.session, self.list.index)
        if not found:
            self.tell("every topic id has a name")
            return

        def chosen(key: str) -> None:
            topic_id = Uuid.parse(key)

            def answer(text: str) -> None:
                if text.strip():
                    self.notes.name_topic(topic_id, text.strip(), self.feed.store.session)
                    self.feed.store.forget()
                    self.noted()
                    self._shown_number = None
                    self.look()

            self.ask(f"name of topic {key}", answer)

        self.pick("name a topic", [(str(Uuid(each)), str(Uuid(each))) for each in found], chosen)

    def action_next_mark(self, by: int) -> None:
        """The next marked row."""
        from kafkascope.tui.data.masks import numbered

        self.step(by, numbered(self.feed.store, self.notes.marked), "mark")

    def action_comment(self) -> None:
        """Ask for a comment on the exchange under the cursor."""
        number = self.list.number
        if number is None:
            return

        def answer(text: str) -> None:
            self.notes.comment(number, text, self.feed.store.session)
            self.noted()
            self.look_again()

        self.ask(f"comment on {number}", answer, self.notes.comments.get(number, ""))

    def action_diff(self) -> None:
        """How two marked exchanges differ, or the marked one and that under the cursor."""
        numbers = sorted(self.notes.marked)
        here = self.list.number
        if len(numbers) == 1 and here is not None and here not in numbers:
            numbers.append(here)
        if len(numbers) != 2:
            self.tell(f"mark two exchanges (m) to compare them; {len(numbers)} are marked now")
            return
        session = self.feed.store.session
        indexes = [session.index_of(number) for number in numbers]
        if None in indexes:
            self.tell("a marked exchange is not there any more", "warning")
            return
        from kafkascope.analyzer.commands.diff import compared, text_of
        from kafkascope.captures.errors import CaptureError

        try:
            a, b = (session.exchange(index) for index in indexes if index is not None)
        except CaptureError as error:
            self.tell(str(error), "warning")
            return
        lines: list[list[Piece]] = []
        for each in compared(a, b, ("request", "response"), False, True):
            path = f"{each['side']}.{each['path']}".rstrip(".")
            lines.append([(path, STYLES["label"])])
            for sign, side, number in (("-", "left", numbers[0]), ("+", "right", numbers[1])):
                octets = each.get(f"{side}_bytes")
                lines.append(
                    [
                        (f"  {sign} {number:>7}  ", STYLES["dim"]),
                        (text_of(each[side]), STYLES["!"] if sign == "-" else STYLES["good"]),
                        (f"   {octets}" if octets else "", STYLES["dim"]),
                    ]
                )
        if not lines:
            lines = [[("no difference, but for times and ids", NORMAL)]]
        self.push_screen(Page(f"{numbers[0]} and {numbers[1]}", lines, self.glyphs))
