"""Copies of what is under the cursor, and exports of exchanges to files."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final

from kafkascope.analyzer.text import plural
from kafkascope.captures.errors import CaptureError
from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.data import copies
from kafkascope.tui.data.exports import FORMS, Job, default_name
from kafkascope.tui.document.values import of_item, of_row
from kafkascope.tui.keys import Hint, Key

TOLD: Final = 0.2
"""Seconds between two updates of the progress."""


class CopyController(Controller):
    """Copies what is under the cursor, in a form that the user chooses."""

    KEYS = (
        Key(
            "copy.value",
            "y",
            "y",
            "copy",
            "Copy the line or value (OSC 52)",
            (
                Hint("detail", 6, "copy"),
                Hint("hex", 2, "copy"),
            ),
        ),
        Key("copy.menu", "c", "c", "menu", "Copy as filter, row, JSON, hex, Python bytes"),
    )

    def copy(self) -> None:
        """Copy the value, the bytes or the row under the cursor."""
        if self.detail.has_focus and self.detail.item is not None:
            text = self.detail.item.text()
        elif self.hex.has_focus and self.hex.space is not None:
            text = self.hex.space.data[slice(*self.hex.span)].hex()
        elif self.list.index is not None:
            text = self._row()
        else:
            return
        self.shell.put_on_clipboard(text)

    def _row(self) -> str:
        return self.list.text(max(80, self.shell.size.width))

    def menu(self) -> None:
        """Ask for a form and copy."""
        index, item = self.list.index, self.detail.item
        if index is None:
            return
        session = self.workspace.session
        number = session.columns["number"][index]
        in_field = (self.detail.has_focus or self.hex.has_focus) and item is not None
        choices = [("row", "row as text"), ("json", "exchange as JSON, with bodies")]
        choices.append(("command", f"command that prints exchange {number}"))
        conditions = of_row(session, index)
        if in_field and item is not None:
            condition = of_item(item)
            conditions = [condition] if condition else conditions
            choices[:0] = [
                ("value", f"value of {item.label or 'this line'}"),
                ("hex", "bytes as hexadecimal"),
                ("dump", "bytes as a hex dump"),
                ("python", "bytes as a Python literal"),
            ]
        else:
            choices += [
                ("hex", "message as hexadecimal"),
                ("dump", "message as a hex dump"),
                ("python", "message as a Python literal"),
            ]
        choices.append(("filter", f"filter: {conditions[0]}"))

        def chosen(form: str) -> None:
            index = session.index_of(number)  # rows may have gone meanwhile
            if index is None:
                self.shell.tell(f"Exchange {number} was evicted.", "warning")
                return
            text = self._text(form, index, conditions[0], in_field)
            if text is not None:
                self.shell.put_on_clipboard(text)

        self.shell.pick("Copy", choices, chosen)

    def _text(self, form: str, index: int, condition: str, in_field: bool) -> str | None:
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
                    return copies.as_json(session, index)
                except CaptureError as error:
                    self.shell.tell(str(error), "warning")
                    return None
        if space is None:
            self.shell.tell("This message has no bytes. Press r for the other one.", "warning")
            return None
        start, end = (item.start, item.end) if in_field and item else (0, len(space.data))
        return copies.octets(space.data[start:end], form, start)


class ExportController(Controller):
    """Runs one export at a time, in a thread."""

    KEYS = (
        Key(
            "list.export",
            "x",
            "x",
            "export",
            "Export as capture, JSON Lines, CSV, fixtures",
            (Hint("list", 10, "export"),),
        ),
        Key(
            "list.save",
            "w",
            "w",
            "ask_where('shown', 'pcapng')",
            "Save the shown exchanges as a capture",
        ),
        Key("list.fixture", "X", "X", "fixture", "Save marked exchanges as test fixtures"),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._job: Job | None = None

    def export(self) -> None:
        """Ask what to export and in which form."""
        sets = [("marked", len(self.workspace.notes.marked)), ("shown", len(self.workspace.view))]
        choices = [
            (
                f"{which} {form}",
                f"{plural(count, f'{which} exchange')}{self._more(which)}: {text}",
            )
            for which, count in sets
            if count or which == "shown"
            for form, (text, _) in FORMS.items()
        ]

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
            self.shell.tell("Nothing to write.")
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
        pending = workspace.asks_about("finding") and bool(self.shell.findings_pending())
        whole = workspace.store.progress.done and not workspace.view.behind and not pending
        return "" if whole or which != "shown" else " so far"

    def _numbers(self, which: str) -> list[int]:
        if which == "this":
            return [] if self.list.number is None else [self.list.number]
        if which == "marked":
            return sorted(self.workspace.notes.marked)
        from kafkascope.tui.data.masks import column

        numbers = column(self.workspace.session, "number")
        found: list[int] = numbers[self.workspace.view.indexes()].tolist()
        return found

    def _export(self, form: str, path: Path, numbers: list[int]) -> None:
        if self._job is not None:
            self.shell.tell("Another export is running; ctrl+c stops it.", "warning")
            return
        job = Job(form, path, numbers, self.workspace.store, self.workspace.notes)
        why = job.refusal()
        if why:
            self.shell.tell(why, "warning")
            return
        self._job = job
        self._so_far(job, "")
        later = self.shell.call_later

        def run() -> None:
            told = time.monotonic()
            try:
                for done in job.run():
                    if time.monotonic() - told > TOLD:
                        told = time.monotonic()
                        later(self._so_far, job, f" {100 * done // max(1, len(numbers))} %")
            except Exception as error:  # the outermost guard of the thread: it tells
                later(self._ended, job, f"{path}: {error}", "warning")
                return
            later(self._ended, job, job.told(), "information")

        threading.Thread(target=run, daemon=True).start()

    def _so_far(self, job: Job, share: str) -> None:
        if job is self._job:
            self.workspace.activity = f"writing {job.path.name}{share}"
            self.shell.update_status()

    def _ended(self, job: Job, text: str, severity: str) -> None:
        if job is self._job:
            self._job = None
            self.workspace.activity = ""
            self.shell.tell(text, severity)
            self.shell.update_status()

    def stop(self) -> None:
        """Stop the export that runs; what is written stays."""
        if self._job is not None:
            self._job.stopped = True
