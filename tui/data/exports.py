"""Writes exchanges to files, with the writers of the commands. Knows no screens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.text import plural
from kafkascope.captures.errors import CaptureError
from kafkascope.private import PrivateFile
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.notes import Notes

FORMS: Final = {
    "pcapng": ("capture (pcapng), with handshakes and comments", "-cut.pcapng"),
    "jsonl": ("JSON Lines, one row per exchange", ".jsonl"),
    "full": ("JSON Lines with bodies and records", "-full.jsonl"),
    "csv": ("CSV for spreadsheets", ".csv"),
    "records": ("records, CSV", "-records.csv"),
    "fixture": ("fixture folder for interop tests, values hidden", "-fixtures"),
}
"""Form -> what it is, and how names of its files end."""


def default_name(source: str, form: str) -> str:
    """Return the name of a file in the working directory, after the input."""
    stem = Path(source).name or "kafkascope"
    for suffix in (".gz", ".zst", ".pcapng", ".pcap"):
        stem = stem.removesuffix(suffix)
    return (stem if stem not in ("", "-") else "kafkascope") + FORMS[form][1]


class Job:
    """Writes one export."""

    def __init__(
        self, form: str, path: Path, numbers: list[int], store: Store, notes: Notes
    ) -> None:
        self.form, self.path = form, path
        self.stopped = False
        self.missing = 0
        """How many exchanges have no bytes any more."""
        self.written = 0
        self._numbers, self._store, self._notes = numbers, store, notes

    def refusal(self) -> str:
        """Return why the export must not be written; empty when it may."""
        if self.path.exists():
            if self.form == "fixture" and self.path.is_dir() and not any(self.path.iterdir()):
                return ""
            return f"{self.path} already exists: choose another name"
        if not self.path.parent.is_dir():
            return f"no such folder: {self.path.parent}"
        return ""

    def summary(self) -> str:
        text = f"{plural(self.written, 'exchange')} written to {self.path}"
        if self.stopped:
            text += ", stopped early"
        if self.missing:
            text += f"; the bytes of {self.missing:,} are no longer available"
        return text

    def run(self) -> Iterator[int]:
        """Write, and yield from time to time how many exchanges were seen; `OSError`."""
        writers = {"pcapng": self._capture, "fixture": self._fixture}
        return writers.get(self.form, self._lines)()

    def _exchanges(self) -> Iterator[tuple[int, Exchange]]:
        for seen, number in enumerate(self._numbers):
            if self.stopped:
                return
            try:
                exchange = self._store.exchange(number)
                if exchange is None:
                    raise CaptureError("gone")
            except CaptureError:
                self.missing += 1
                continue
            self.written += 1
            yield seen, exchange

    def _lines(self) -> Iterator[int]:
        from kafkascope.analyzer.export import ExportOptions, TableName, open_writer

        names = self._store.session.context.names
        form = "csv" if self.form in ("csv", "records") else "jsonl"
        with PrivateFile(self.path) as out:
            table: TableName = "records" if self.form == "records" else "exchanges"
            writer = open_writer(form, out, names, ExportOptions(table, self.form == "full"))
            for seen, exchange in self._exchanges():
                writer.add(exchange, row_of(exchange, names))
                yield seen
            writer.finish()

    def _capture(self) -> Iterator[int]:
        from kafkascope.analyzer.transform.cut import Cutting

        cutting = Cutting()
        for seen, exchange in self._exchanges():
            cutting.add(exchange)
            yield seen
        for end in list(self._store.ends):
            cutting.ended(*end)
        cutting.add_others()
        comments = dict.fromkeys(self._notes.marked, "marked")
        for number, text in self._notes.comments.items():
            comments[number] = f"marked; {text}" if number in comments else text
        with PrivateFile(self.path) as file:
            cutting.write(file, self._store.read, comments=comments)

    def _fixture(self) -> Iterator[int]:
        from kafkascope.analyzer.fixtures.folder import write_folder
        from kafkascope.analyzer.fixtures.make import Making
        from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
        from kafkascope.analyzer.transform.redaction import Redaction

        redaction = Redaction("values", Pseudonyms(same_length=True))
        captures = [self._notes.input] if self._notes.input else []
        making = Making(redaction, captures=captures)
        for seen, exchange in self._exchanges():
            making.add(exchange)
            yield seen
        write_folder(making.fixtures(), self.path, "values")
