"""JSON Lines: exchange/1, with bodies when `full`, or record/1."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkascope.analyzer.exchanges.batch_json import RecordLines
from kafkascope.analyzer.exchanges.full import full_pieces
from kafkascope.analyzer.exchanges.pairs import Item, Rows, is_named
from kafkascope.analyzer.exchanges.record_columns import json_value
from kafkascope.analyzer.exchanges.records import Chosen, Problem, record_lines
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.export.late import LinesExport, Quick
from kafkascope.analyzer.export.pair_lines import PairLines
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.text import json_safe
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.jsonform import dumps, loads

# Quotes are escaped inside a JSON string, so this cannot be part of a record's value.
_TOPIC = re.compile(rb'("topic":)"([\w-]{8}\?)"')
_TOPICS = re.compile(rb'("(?:implied_)?topics":\[)("[^"\]]*\?"[^\]]*)\]')


class JsonLinesExport(LinesExport):
    """See `analyzer.export.Writer`."""

    def add_records(self, lines: bytes) -> None:
        self.put(json_safe(self._narrowed(lines)), (), ())

    def quick(self, rows: Rows) -> Quick:
        names, payloads = self._names, self._options.payloads
        if self._records:
            records = RecordLines(names, payloads).text

            def lines_of(item: Item) -> bytes | None:
                lines = records(item)
                return None if lines is None else self._narrowed(lines)

        elif self._options.full:
            lines_of = PairLines(rows, names, payloads).of
        else:

            def lines_of(item: Item) -> bytes | None:
                return rows.json([item]) if is_named(item, names) else None

        def safe(item: Item) -> bytes | None:
            lines = lines_of(item)
            return None if lines is None else json_safe(lines)

        return safe

    def shaped(
        self,
        row: Row,
        exchange: Exchange,
        names: TopicNames,
        problems: list[Problem],
        chosen: Chosen | None = None,
    ) -> Iterator[bytes]:
        payloads = self._options.payloads
        if self._records:
            for lines in record_lines(exchange, names, problems, payloads, chosen):
                yield json_safe(self._narrowed(lines))
        elif self._options.full:
            yield from map(json_safe, full_pieces(row, exchange, names, problems, payloads))
        else:
            yield json_safe(json_of_row(row) + b"\n")

    def _narrowed(self, lines: bytes) -> bytes:
        columns = self._options.columns
        if not columns:
            return lines
        records = map(loads, lines.splitlines())
        objects = ({name: json_value(each, name) for name in columns} for each in records)
        return b"".join(dumps(each) + b"\n" for each in objects)

    def finish(self) -> None:
        known = {old.encode(): json_safe(dumps(new)) for old, new in self._late.known().items()}
        if not known:
            return

        def topic(found: re.Match[bytes]) -> bytes:
            new = known.get(found[2])
            return found[0] if new is None else found[1] + new

        def topics(found: re.Match[bytes]) -> bytes:
            parts = [known.get(part.strip(b'"'), part) for part in found[2].split(b",")]
            return found[1] + b",".join(dict.fromkeys(parts)) + b"]"

        self._late.rewrite(
            self._out,
            lambda line: _TOPICS.sub(topics, _TOPIC.sub(topic, line)) if b'?"' in line else line,
        )
