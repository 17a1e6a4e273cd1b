"""Notes of the user about exchanges: marks, comments, what to ignore, names of topics; the rules
that colour rows; the comparison of marked exchanges."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import SystemCommand

from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.text import plural
from kafkascope.captures.errors import CaptureError
from kafkascope.dissectors.values import Uuid
from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.document.values import joined, unnamed_ids
from kafkascope.tui.settings.colours import colours_path
from kafkascope.tui.settings.palette import NORMAL, STYLES
from kafkascope.tui.views.dialogs import Page
from kafkascope.tui.views.lines import Piece


class MarksController(Controller):
    """Changes notes and updates what depends on them."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.notes = self.workspace.notes
        self._announced = False
        """Whether the user has read where marks are kept."""

    def commands(self) -> Iterable[SystemCommand]:
        """Yield commands that have no key."""
        about = "for ids without a name in the capture"
        yield SystemCommand("Name a topic id", about, self.name_topic)
        yield SystemCommand("Reload the colour rules", str(colours_path()), self.read_colours)

    def noted(self) -> None:
        """Update rows, colours and the view after notes have changed."""
        self.workspace.colours.forget()
        self.list.changed()
        if self.workspace.filters_by("marked", "ignored", "comment"):
            self.workspace.notes_changed()
        if self.notes.said:
            self.shell.say(self.notes.said, "warning")
            self.notes.said = ""

    def resolve(self) -> None:
        """Find the exchanges of notes that were kept in a file, among those that came meanwhile."""
        before = frozenset(self.notes.ignored)
        session = self.workspace.session
        if self.notes.resolve(session):
            for number in self.notes.ignored - before:
                index = session.index_of(number)
                assert index is not None  # it came just now
                self.workspace.view.hide(index)
            self.noted()
            self.workspace.unsettled = True

    def read_colours(self) -> None:
        colours = self.workspace.colours
        colours.read()
        self.list.changed()
        if colours.said:
            self.shell.say(colours.said, "warning")
        count = plural(len(colours.rules), "colour rule")
        self.shell.say(f"{count} from {colours_path()}")

    def mark(self) -> None:
        if (number := self.list.number) is not None:
            self.notes.mark(number, self.workspace.session)
            self.noted()
            if not self._announced:
                self._announced = True
                self.shell.say(self.notes.home)

    def only_marked(self) -> None:
        text = self.workspace.view.text
        if text == "marked" or text.endswith(" and marked"):
            self.shell.show_filter(text[: -len(" and marked")] if text != "marked" else "")
        elif not self.notes.marked:
            self.shell.say("No marks. m marks an exchange.")
        else:
            self.shell.show_filter(joined("and", "marked", text))

    def next_mark(self, by: int) -> None:
        from kafkascope.tui.data.columns import numbered

        self.shell.step(by, numbered(self.workspace.store, self.notes.marked), "mark")

    def ignore(self) -> None:
        """Take the exchange out of the list; one that is ignored comes back."""
        rows, view = self.list, self.workspace.view
        index, number = rows.index, rows.number
        if index is None or number is None:
            return
        after = view[min(rows.cursor + 1, len(view) - 1)]
        self.notes.ignore(number, self.workspace.session)
        if number in self.notes.ignored:
            view.hide(index)
        elif "ignored" in view.text:
            view.noted()
        view.advance(0.1)
        self.noted()
        rows.stay_on(after)
        self.workspace.unsettled = True
        self.host.filter_changed()
        self.shell.look()
        self.shell.update_status()

    def only_ignored(self) -> None:
        if self.workspace.view.text == "ignored":
            self.shell.show_filter("")
        elif not self.notes.ignored:
            self.shell.say("No ignored exchanges. i ignores one.")
        else:
            self.shell.show_filter("ignored")

    def comment(self) -> None:
        number = self.list.number
        if number is None:
            return

        def answer(text: str) -> None:
            self.notes.comment(number, text, self.workspace.session)
            self.noted()
            self.shell.look_again()

        self.shell.ask(f"Comment on {number}", answer, self.notes.comments.get(number, ""))

    def name_topic(self) -> None:
        session = self.workspace.session
        found = unnamed_ids(session, self.list.index)
        if not found:
            self.shell.say("Every topic id has a name.")
            return

        def chosen(key: str) -> None:
            topic_id = Uuid.parse(key)

            def answer(text: str) -> None:
                if text.strip():
                    self.notes.name_topic(topic_id, text.strip(), session)
                    self.noted()
                    self.shell.look(anew=True)

            self.shell.ask(f"Name of topic {key}", answer)

        ids = [str(Uuid(each)) for each in found]
        self.shell.pick("Name a topic id", list(zip(ids, ids, strict=True)), chosen)

    def compare(self) -> None:
        """Show how two marked exchanges differ, or the marked one and the one under the cursor."""
        numbers, here = sorted(self.notes.marked), self.list.number
        if len(numbers) == 1 and here is not None and here not in numbers:
            numbers.append(here)
        if len(numbers) != 2:
            count = len(numbers)
            self.shell.say(f"Mark two exchanges (m) to compare them; marked: {count}.")
            return
        session = self.workspace.session
        indexes = [session.index_of(number) for number in numbers]
        if None in indexes:
            self.shell.say("A marked exchange was evicted.", "warning")
            return
        try:
            a, b = (session.exchange(index) for index in indexes if index is not None)
        except CaptureError as error:
            self.shell.say(str(error), "warning")
            return
        lines = differences(a, b, numbers)
        self.shell.push_screen(Page(f"{numbers[0]} and {numbers[1]}", lines, self.shell.glyphs))


def differences(a: Exchange, b: Exchange, numbers: list[int]) -> list[list[Piece]]:
    """Return three lines for each difference: the path, and the value on either side."""
    from kafkascope.analyzer.render.tree import text_of
    from kafkascope.analyzer.transform.compared import compared

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
    return lines or [[("No difference except times and ids", NORMAL)]]
