"""Copies of what is under the cursor, and exports of exchanges to files."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from kafkascope.analyzer.text import json_safe, plural
from kafkascope.captures.errors import CaptureError
from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.data.exports import FORMS, Job, default_name
from kafkascope.tui.document.values import of_item, of_row


class SharingController(Controller):
    """Copies what is under the cursor, and runs one export at a time, in a thread."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._job: Job | None = None

    def copy(self) -> None:
        if self.detail.has_focus and self.detail.item is not None:
            self.shell.put_on_clipboard(self.detail.item.text())
        elif self.hex.has_focus and self.hex.space is not None:
            self.shell.put_on_clipboard(self.hex.space.data[slice(*self.hex.span)].hex())
        elif self.list.index is not None:
            self.shell.put_on_clipboard(self._row())

    def _row(self) -> str:
        return self.list.text(max(80, self.shell.size.width))

    def menu(self) -> None:
        index, item = self.list.index, self.detail.item
        if index is None:
            return
        session = self.workspace.session
        number = session.columns["number"][index]
        in_field = (self.detail.has_focus or self.hex.has_focus) and item is not None
        what = "bytes" if in_field else "message"
        octets = [
            ("hex", f"{what} as hexadecimal"),
            ("dump", f"{what} as a hex dump"),
            ("python", f"{what} as a Python literal"),
        ]
        choices = [("row", "row as text"), ("json", "exchange as JSON, with bodies")]
        choices.append(("command", f"command that prints exchange {number}"))
        filter_ = of_row(session, index)[0]
        if in_field and item is not None:
            filter_ = of_item(item) or filter_
            choices = [("value", f"value of {item.label or 'this line'}"), *octets, *choices]
        else:
            choices += octets
        choices.append(("filter", f"filter: {filter_}"))

        def chosen(form: str) -> None:
            index = session.index_of(number)  # rows may have gone meanwhile
            if index is None:
                self.shell.say(f"Exchange {number} was evicted.", "warning")
                return
            text = self._text(form, index, filter_, in_field)
            if text is not None:
                self.shell.put_on_clipboard(text)

        self.shell.pick("Copy", choices, chosen)

    def _text(self, form: str, index: int, condition: str, in_field: bool) -> str | None:
        from kafkascope.tui.data.messages import as_json, octets

        item, space = self.detail.item, self.hex.space
        session = self.workspace.session
        match form:
            case "row":
                return self._row()
            case "filter":
                return condition
            case "value":
                return item.text() if item is not None else None
            case "command":
                number = session.columns["number"][index]
                return f"kafkascope show {self.workspace.input_name} {number}"
            case "json":
                try:
                    line = as_json(session.exchange(index), session.context.names)
                    return json_safe(line).decode().rstrip("\n")
                except CaptureError as error:
                    self.shell.say(str(error), "warning")
                    return None
        if space is None:
            self.shell.say("This message has no bytes. Press r for the other one.", "warning")
            return None
        start, end = (item.start, item.end) if in_field and item else (0, len(space.data))
        return octets(space.data[start:end], form, start)

    # --- exports ----------------------------------------------------------------------------

    def export(self) -> None:
        sets = [("marked", len(self.workspace.notes.marked)), ("shown", len(self.workspace.view))]
        choices = []
        for which, count in sets:
            if count or which == "shown":
                noun = f"{plural(count, f'{which} exchange')}{self._more(which)}"
                forms = FORMS.items()
                choices += [(f"{which} {form}", f"{noun}: {text}") for form, (text, _) in forms]

        def chosen(key: str) -> None:
            which, _, form = key.partition(" ")
            self.ask_where(which, form)

        self.shell.pick("Export", choices, chosen)

    def fixture(self) -> None:
        """Write marked exchanges, or the one under the cursor, as fixtures."""
        self.ask_where("marked" if self.workspace.notes.marked else "this", "fixture")

    def ask_where(self, which: str, form: str) -> None:
        """Ask for a path and export to it; `which` is shown, marked or this."""
        numbers = self._numbers(which)
        if not numbers:
            self.shell.say("Nothing to write.")
            return
        name = default_name(self.workspace.notes.input or self.workspace.name, form)

        def answer(text: str) -> None:
            if text:
                self._export(form, Path(text).expanduser(), numbers)

        noun = plural(len(numbers), "exchange")
        self.shell.ask(f"Write {noun}{self._more(which)} to", answer, name)

    def _more(self, which: str) -> str:
        """Return " so far" if more exchanges may still be shown."""
        workspace = self.workspace
        pending = workspace.filters_by("finding") and bool(self.shell.findings_pending())
        whole = workspace.store.progress.done and not workspace.view.behind and not pending
        return "" if whole or which != "shown" else " so far"

    def _numbers(self, which: str) -> list[int]:
        if which == "this":
            return [] if self.list.number is None else [self.list.number]
        if which == "marked":
            return sorted(self.workspace.notes.marked)
        from kafkascope.tui.data.columns import column

        numbers = column(self.workspace.session, "number")
        found: list[int] = numbers[self.workspace.view.indexes()].tolist()
        return found

    def _export(self, form: str, path: Path, numbers: list[int]) -> None:
        if self._job is not None:
            self.shell.say("Another export is running; ctrl+c stops it.", "warning")
            return
        job = Job(form, path, numbers, self.workspace.store, self.workspace.notes)
        why = job.refusal()
        if why:
            self.shell.say(why, "warning")
            return
        self._job = job

        def ended(result: Exception | None) -> None:
            self._job = None
            if result is None:
                self.shell.say(job.summary())
            else:
                self.shell.say(f"{path}: {result}", "warning")

        def work() -> Generator[float, None, None]:
            for done in job.run():
                yield 100 * done // max(1, len(numbers))

        self.run_beside(f"writing {path.name}", work(), ended)

    def stop(self) -> None:
        """Stop the export that runs; what is written stays."""
        if self._job is not None:
            self._job.stopped = True
