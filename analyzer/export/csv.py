"""CSV for spreadsheets: a line per exchange or per record, lists joined by semicolons, UTC."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final

from kafkascope.analyzer.exchanges.batch_json import RecordLines
from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.pairs import Rows, is_named
from kafkascope.analyzer.exchanges.record_columns import RECORD_COLUMNS, decoded_text
from kafkascope.analyzer.exchanges.records import BY_SCHEMA, Chosen, Problem, record_lines
from kafkascope.analyzer.exchanges.rows import Row, to_json
from kafkascope.analyzer.export import ExportOptions
from kafkascope.analyzer.export.late import SHORT_ID, SHORT_SIZE, LinesExport, Quick
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.cells import as_text, csv_line, one_line
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.jsonform import dumps, loads

# Characters of a cell that is read again; Python's own limit is 128 KB, and records may be larger.
MOST_CELL: Final = 1 << 30


class CsvExport(LinesExport):
    """See `analyzer.export.Writer`; bodies do not fit into a table, so `full` changes nothing."""

    def __init__(self, out: BinaryIO, names: TopicNames, options: ExportOptions) -> None:
        super().__init__(out, names, options)
        self._columns = list(options.columns or RECORD_COLUMNS) if self._records else _columns()
        self._begun = self._records
        """Whether the names of columns are written, which those of exchanges are with the first."""
        if self._records:
            self._write(self._text(self._columns))

    def _text(self, cells: Iterable[Any]) -> bytes:
        return csv_line(cells, raw=self._options.raw).encode()

    def add_records(self, lines: bytes) -> None:
        self.put(lines, (), ())

    def put(self, lines: bytes, nameless: Sequence[str], problems: Iterable[Problem]) -> None:
        if not self._begun:
            self._begun = True
            self._write(self._text(self._columns))
        if self._records:
            records = map(loads, lines.splitlines())
            lines = b"".join(
                self._text([_record_cell(each, name) for name in self._columns]) for each in records
            )
        super().put(lines, nameless, problems)

    def shaped(
        self,
        row: Row,
        exchange: Exchange,
        names: TopicNames,
        problems: list[Problem],
        chosen: Chosen | None = None,
    ) -> Iterator[bytes]:
        """Yield the line of the exchange, or its records as JSON."""
        if self._records:
            yield from record_lines(exchange, names, problems, self._options.payloads, chosen)
        else:
            yield self._line(row)

    def _line(self, row: Row) -> bytes:
        value = to_json(row) | {"result": result(row)}
        return self._text([_cell(value[name]) for name in self._columns])

    def quick(self, rows: Rows) -> Quick:
        if self._records:
            return RecordLines(self._names, self._options.payloads).text
        return lambda item: (
            self._line(rows.row_in_passing(item)) if is_named(item, self._names) else None
        )

    def finish(self) -> None:
        known = self._late.known()
        if known:
            before = csv.field_size_limit(MOST_CELL)
            try:
                # Cells may hold line feeds, but these do not: their values are single lines.
                self._late.rewrite(self._out, lambda line: self._renamed(line, known))
            finally:
                csv.field_size_limit(before)

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
        if not any(old in known for old in SHORT_ID.findall(cell)):
            return cell
        if cell[:1] == "'" and cell[1 : 1 + SHORT_SIZE] in known:
            cell = cell[1:]
        cell = SHORT_ID.sub(lambda found: one_line(known.get(found[0], found[0])), cell)
        return as_text(cell, raw=self._options.raw)


def _columns() -> list[str]:
    return [*(name for each in columns_of(Row) for name in each.json), "result"]


def _record_cell(record: dict[str, Any], name: str) -> Any:
    if name in BY_SCHEMA:
        return dumps(record[name]).decode() if name in record else ""
    if name in record:
        return _cell(record[name])
    return decoded_text(record, name, "")


def _cell(value: Any) -> Any:
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
