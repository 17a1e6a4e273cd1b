"""CSV for spreadsheets: a line per exchange or per record, lists joined by semicolons, UTC."""

from __future__ import annotations

import csv
import io
from typing import Any, BinaryIO, Final

from kafkascope.analyzer.exchanges.record_columns import RECORD_COLUMNS, decoded_text
from kafkascope.analyzer.exchanges.records import BY_SCHEMA, Chosen, Problem, record_lines
from kafkascope.analyzer.exchanges.rows import Row, nameless_topics, result, to_json
from kafkascope.analyzer.export import ExportOptions
from kafkascope.analyzer.export.late import Late
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.spreadsheet import as_text, csv_line, one_line
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.jsonform import dumps, loads

LEFT_OUT: Final = frozenset({"schema"})


class CsvExport:
    """See `analyzer.export.Writer`; bodies do not fit into a table, so `full` changes nothing."""

    def __init__(self, out: BinaryIO, names: TopicNames, options: ExportOptions) -> None:
        self._out = out
        self._names = names
        self._raw = options.raw
        self._records = options.table == "records"
        self._payloads = options.payloads
        self._late = Late(names)
        self._at = 0
        self._columns: list[str] = []
        self.problems: list[Problem] = []
        if self._records:
            self._columns = list(options.columns or RECORD_COLUMNS)
            self._write([self._columns])

    def _write(self, lines: list[list[Any]]) -> None:
        text = "".join(csv_line(cells, raw=self._raw) for cells in lines)
        self._at += self._out.write(text.encode())

    def add(self, exchange: Exchange, row: Row, chosen: Chosen | None = None) -> None:
        """Write the exchange, or its chosen records, as lines."""
        self._late.saw(nameless_topics(row), self._at)
        if self._records:
            for lines in record_lines(exchange, self._names, self.problems, self._payloads, chosen):
                values = [loads(line) for line in lines.splitlines()]
                self._write([[_record_cell(v, name) for name in self._columns] for v in values])
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
            # Cells may hold line feeds, but these do not: their values are single lines.
            self._late.rewrite(self._out, lambda line: self._renamed(line, known))

    def _renamed(self, line: bytes, known: dict[str, str]) -> bytes:
        if b"?" not in line:
            return line
        (cells,) = csv.reader([line.decode()])
        for column, name in enumerate(self._columns):
            if name in ("topic", "topics", "implied_topics", "errors", "result"):
                cells[column] = self._cell_renamed(cells[column], known)
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue().encode()

    def _cell_renamed(self, cell: str, known: dict[str, str]) -> str:
        """Return a cell with names in place of ids; both may look like formulas."""
        found = [old for old in known if old in cell]
        if not found:
            return cell
        if cell.startswith(tuple(f"'{old}" for old in found)):
            cell = cell[1:]
        for old in found:
            cell = cell.replace(old, one_line(known[old]))
        return as_text(cell, raw=self._raw)


def _record_cell(record: dict[str, Any], name: str) -> Any:
    if name in BY_SCHEMA:
        return dumps(record[name]).decode() if name in record else ""
    if name in record:
        return _cell(record[name])
    return decoded_text(record, name, "")


def _cell(value: Any) -> Any:
    """Return the cell for any value of a row."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return "base64:" + value["base64"]
        if value.keys() == {"left_out"}:
            return f"(left out: {value['left_out']})"
        return " ".join(str(each) for each in value.values())
    if isinstance(value, list | tuple):
        return ";".join(str(_cell(each)) for each in value)
    return value
