"""What leaves the program: the copy menu, exports, fixtures."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Final

from textual.message import Message

from kafkascope.tui.actions.base import Base
from kafkascope.tui.data import copies
from kafkascope.tui.data.exports import FORMS, Job, default_name
from kafkascope.tui.document.values import of_item, of_row

TOLD: Final = 0.2
"""Seconds between two words about progress."""


class Sharing(Base):
    """Copy and export."""

    class Exported(Message):
        """So far, or done."""

        def __init__(self, job: Job, text: str, failed: bool, done: bool) -> None:
            super().__init__()
            self.job, self.text, self.failed, self.done = job, text, failed, done

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._job: Job | None = None

    def action_copy(self) -> None:
        """The value or the line, to the terminal's clipboard."""
        if self.detail.has_focus and self.detail.item is not None:
            text = self.detail.item.text()
        elif self.hex.has_focus and self.hex.space is not None:
            text = self.hex.space.data[slice(*self.hex.span)].hex()
        elif self.list.index is not None:
            text = self._row_text()
        else:
            return
        self.put_on_clipboard(text)

    def _row_text(self) -> str:
        pieces = self.list.pieces(self.list.cursor, max(80, self.size.width))
        return self.glyphs.text("".join(piece for piece, _ in pieces)).strip()

    def action_copy_menu(self) -> None:
        """Ask in which form."""
        index, item = self.list.index, self.detail.item
        if index is None:
            return
        session = self.feed.store.session
        number = session.columns["number"][index]
        in_field = (self.detail.has_focus or self.hex.has_focus) and item is not None
        choices = [("row", "the row as text"), ("json", "the exchange as JSON, with its bodies")]
        choices.append(("command", f"the command that shows exchange {number}"))
        conditions = of_row(session, index)
        if in_field and item is not None:
            condition = of_item(item)
            conditions = [condition] if condition else conditions
            choices[:0] = [
                ("value", f"the value of {item.label or 'this line'}"),
                ("hex", "its bytes as hexadecimal"),
                ("dump", "its bytes as a hex dump"),
                ("python", "its bytes for Python"),
            ]
        else:
            choices += [
                ("hex", "the message as hexadecimal"),
                ("dump", "the message as a hex dump"),
                ("python", "the message for Python"),
            ]
        choices.append(("filter", f"a filter: {conditions[0]}"))

        def chosen(form: str) -> None:
            index = session.index_of(number)  # rows may have gone meanwhile
            if index is None:
                self.tell(f"exchange {number} is no longer kept", "warning")
                return
            text = self._copy(form, index, conditions[0], in_field)
            if text is not None:
                self.put_on_clipboard(text)

        self.pick("copy", choices, chosen)

    def _copy(self, form: str, index: int, condition: str, in_field: bool) -> str | None:
        item, space = self.detail.item, self.hex.space
        match form:
            case "row":
                return self._row_text()
            case "filter":
                return condition
            case "value":
                return item.text() if item is not None else None
            case "command":
                number = self.feed.store.session.columns["number"][index]
                return f"kafkascope show {self.input_name} {number}"
            case "json":
                return self._json(index)
        if space is None:
            self.tell("no bytes are shown: press r for the other message", "warning")
            return None
        start, end = (item.start, item.end) if in_field and item else (0, len(space.data))
        return copies.octets(space.data[start:end], form, start)

    def _json(self, index: int) -> str | None:
        from kafkascope.captures.errors import CaptureError

        try:
            return copies.as_json(self.feed.store.session, index)
        except CaptureError as error:
            self.tell(str(error), "warning")
            return None

    @property
    def input_name(self) -> str:
        """The input, as a command line wants it."""
        import shlex

        return shlex.quote(self.notes.input or self.source_name)

    # --- exports ----------------------------------------------------------------------------

    def action_export(self) -> None:
        """Ask for a form."""
        marked, shown = len(self.notes.marked), len(self.view_)
        choices = []
        if marked:
            noun = "exchange" if marked == 1 else "exchanges"
            choices += [(f"marked {f}", f"{marked:,} marked {noun}: {t}") for f, t in FORMS]
        noun = "exchange" if shown == 1 else "exchanges"
        noun += self._more("shown")
        choices += [(f"shown {f}", f"{shown:,} shown {noun}: {t}") for f, t in FORMS]

        def chosen(key: str) -> None:
            which, _, form = key.partition(" ")
            self._where(which, form)

        self.pick("export", choices, chosen)

    def action_save(self) -> None:
        """What is shown, as a capture."""
        self._where("shown", "pcapng")

    def action_fixture(self) -> None:
        """What is marked, else the exchange under the cursor, as fixtures."""
        self._where("marked" if self.notes.marked else "this", "fixture")

    def _where(self, which: str, form: str) -> None:
        numbers = self._numbers(which)
        if not numbers:
            self.tell("there is nothing to write")
            return
        name = default_name(self.notes.input or self.source_name, form)

        def answer(text: str) -> None:
            if text:
                self._export(form, Path(text).expanduser(), numbers)

        noun = "exchange" if len(numbers) == 1 else "exchanges"
        self.ask(f"write {len(numbers):,} {noun}{self._more(which)} to", answer, name)

    def _more(self, which: str) -> str:
        """Said where there may be more of what is shown."""
        view = self.view_
        pending = "finding" in view.text and bool(self.findings_pending())
        whole = self.feed.store.progress.done and not view.behind and not pending
        return "" if whole or which != "shown" else " so far"

    def _numbers(self, which: str) -> list[int]:
        if which == "this":
            return [] if self.list.number is None else [self.list.number]
        if which == "marked":
            return sorted(self.notes.marked)
        from kafkascope.tui.data.masks import column

        found: list[int] = column(self.feed.store.session, "number")[self.view_.indexes()].tolist()
        return found

    def _export(self, form: str, path: Path, numbers: list[int]) -> None:
        if self._job is not None:
            self.tell("another export is being written; ctrl+c stops it", "warning")
            return
        job = Job(form, path, numbers, self.feed.store, self.notes)
        why = job.refusal()
        if why:
            self.tell(why, "warning")
            return
        self._job = job
        self.busy_with = f"writing {path.name}"
        self.say()

        def run() -> None:
            told = time.monotonic()
            try:
                for done in job.run():
                    if time.monotonic() - told > TOLD:
                        told = time.monotonic()
                        share = 100 * done // max(1, len(numbers))
                        text = f"writing {path.name} {share} %"
                        self.post_message(self.Exported(job, text, False, False))
            except Exception as error:  # the outermost guard of the thread: it tells
                self.post_message(self.Exported(job, f"{path}: {error}", True, True))
                return
            self.post_message(self.Exported(job, job.told(), False, True))

        threading.Thread(target=run, daemon=True).start()

    def on_sharing_exported(self, event: Exported) -> None:
        """So far, or done."""
        if event.job is not self._job:
            return
        self.busy_with = "" if event.done else event.text
        if event.done:
            self._job = None
            self.tell(event.text, "warning" if event.failed else "information")
        self.say()

    def stop_export(self) -> None:
        """What is written stays."""
        if self._job is not None:
            self._job.stopped = True
