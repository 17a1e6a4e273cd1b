"""JSON Lines: exchange/1, with bodies when `full`, or record/1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from kafkascope.analyzer.exchanges.full import full_pieces
from kafkascope.analyzer.exchanges.record_columns import json_value
from kafkascope.analyzer.exchanges.records import Chosen, Problem, record_lines
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import Row, nameless_topics
from kafkascope.analyzer.export import ExportOptions
from kafkascope.analyzer.export.late import Late
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.text import json_safe
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.jsonform import dumps, loads

# Quotes are escaped inside a JSON string, so this cannot be part of a record's value.
_TOPIC = re.compile(rb'("topic":)"([\w-]{8}\?)"')
_TOPICS = re.compile(rb'("(?:implied_)?topics":\[)("[^"\]]*\?"[^\]]*)\]')


class JsonLinesExport:
    """See `analyzer.export.Writer`."""

    def __init__(self, out: BinaryIO, names: TopicNames, options: ExportOptions) -> None:
        self._out = out
        self._names = names
        self._records = options.table == "records"
        self._full = options.full
        self._payloads = options.payloads
        self._columns = options.columns
        self._late = Late(names)
        self._at = 0
        self.problems: list[Problem] = []
        self.again = None if options.full or self._records else _line

    def add(self, exchange: Exchange, row: Row, chosen: Chosen | None = None) -> None:
        """Write the exchange, or its chosen records, as lines."""
        if row.topics or row.implied_topics:
            self._late.saw(nameless_topics(row), self._at)
        for lines in self.shaped(row, exchange, self._names, self.problems, chosen):
            self._at += self._out.write(lines)

    def add_records(self, lines: bytes) -> None:
        """Write records of Kafka's own files."""
        self._at += self._out.write(json_safe(self._narrowed(lines)))

    def put(self, lines: bytes, nameless: Sequence[str], problems: Iterable[Problem]) -> None:
        """Write what `shaped` gave in another process."""
        self._late.saw(nameless, self._at)
        self._at += self._out.write(lines)
        self.problems += problems

    def shaped(
        self,
        row: Row,
        exchange: Exchange,
        names: TopicNames,
        problems: list[Problem],
        chosen: Chosen | None = None,
    ) -> Iterator[bytes]:
        """Yield what `add` writes, with the names that another process knows."""
        if self._records:
            for lines in record_lines(exchange, names, problems, self._payloads, chosen):
                yield json_safe(self._narrowed(lines))
        elif self._full:
            pieces = full_pieces(row, exchange, names, problems, self._payloads)
            yield from map(json_safe, pieces)
        else:
            yield _line(row)

    def _narrowed(self, lines: bytes) -> bytes:
        """Return records with the chosen columns only."""
        if not self._columns:
            return lines
        records = map(loads, lines.splitlines())
        told = ({name: json_value(each, name) for name in self._columns} for each in records)
        return b"".join(dumps(each) + b"\n" for each in told)

    def finish(self) -> None:
        """Replace ids by names that came late."""
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


def _line(row: Row) -> bytes:
    return json_safe(json_of_row(row) + b"\n")
