"""CSV for spreadsheets: a line per exchange or per record, lists joined by semicolons, UTC."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from analyzer.export.late import Late
from analyzer.records import Problem, record_lines
from analyzer.rows import result, to_json, unnamed
from dissectors.jsonform import loads

if TYPE_CHECKING:
    from analyzer.export import Table
    from analyzer.model import Exchange
    from analyzer.rows import Row
    from analyzer.topics import TopicNames

RECORD_COLUMNS: Final = (
    "exchange",
    "source",
    "topic",
    "topic_id",
    "partition",
    "offset",
    "time",
    "key",
    "value",
    "headers",
    "codec",
    "magic",
    "producer_id",
    "producer_epoch",
    "sequence",
    "transactional",
    "control",
)

LEFT_OUT: Final = frozenset({"schema"})


class Export:
    """See `analyzer.export.Writer`; bodies do not fit into a table, so `full` changes nothing."""

    def __init__(self, out: BinaryIO, names: TopicNames, table: Table, full: bool) -> None:
        self._out = out
        self._names = names
        self._records = table == "records"
        self._late = Late(names)
        self._at = 0
        self._columns: list[str] = []
        self.problems: list[Problem] = []
        if self._records:
            self._columns = list(RECORD_COLUMNS)
            self._write([self._columns])

    def _write(self, lines: list[list[Any]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        self._at += self._out.write(text.getvalue().encode("utf-8", "backslashreplace"))

    def add(self, exchange: Exchange, row: Row) -> None:
        """Write the exchange, or its records, as lines."""
        if row.topic_ids and unnamed(row):
            self._late.saw(row.topic_ids, self._at)
        if self._records:
            for lines in record_lines(exchange, self._names, self.problems):
                values = [loads(line) for line in lines.splitlines()]
                self._write([[_cell(v[name]) for name in RECORD_COLUMNS] for v in values])
            return
        value = to_json(row) | {"result": result(row)}
        if not self._columns:
            self._columns = [name for name in value if name not in LEFT_OUT]
            self._write([self._columns])
        self._write([[_cell(value[name]) for name in self._columns]])

    def finish(self) -> None:
        """Replace ids by names that came late."""
        known = self._late.known()
        if known:
            # Cells may hold line feeds, but none of ours: values are of one line each.
            self._late.rewrite(self._out, lambda line: self._renamed(line, known))

    def _renamed(self, line: bytes, known: dict[str, str]) -> bytes:
        if b"?" not in line:
            return line
        (cells,) = csv.reader([line.decode()])
        for column, name in enumerate(self._columns):
            if name in ("topic", "topics", "errors", "result"):
                for old, new in known.items():
                    cells[column] = cells[column].replace(old, new)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """One line of text for any value of a row."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _one_line(value)
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return "base64:" + value["base64"]
        return _one_line(" ".join(str(each) for each in value.values()))
    if isinstance(value, list | tuple):
        return ";".join(str(_cell(each)) for each in value)
    return value


def _one_line(text: str) -> str:
    r"""Line breaks as \n and \r, so that a line of the file is a line of the table."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
