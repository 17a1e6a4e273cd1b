"""Files of lines, in which ids are replaced by names of topics that come late."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import BinaryIO, Final, TypeAlias

from kafkascope.analyzer.exchanges.pairs import Item, Rows
from kafkascope.analyzer.exchanges.records import Chosen, Problem
from kafkascope.analyzer.exchanges.rows import Row, nameless_topics
from kafkascope.analyzer.export import ExportOptions
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames, short_id

SHORT_ID: Final = re.compile(r"[\w-]{8}\?")
"""What may stand for a topic without a name: `topics.short_id`."""
SHORT_SIZE: Final = 9
# Ids that are remembered; of more, all names that are known in the end are looked for.
MOST_IDS: Final = 100_000
Quick: TypeAlias = "Callable[[Item], bytes | None]"


class Late:
    """Remembers which topic ids an output has in place of names, and from which offset on."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._ids: set[str] = set()
        self._first: int | None = None

    def saw(self, nameless: Sequence[str], at: int) -> None:
        """Note the short ids of topics without a name in what is written at offset `at`."""
        if nameless:
            if len(self._ids) <= MOST_IDS:
                self._ids.update(nameless)
            if self._first is None:
                self._first = at

    def known(self) -> dict[str, str]:
        """Return the names that came late, by the ids that were written for them."""
        if len(self._ids) > MOST_IDS:
            return {short_id(each): name for each, name in self._names.all().items()}
        found = {each: self._names.late(each) for each in self._ids}
        return {each: name for each, name in found.items() if name != each}

    def rewrite(self, out: BinaryIO, change: Callable[[bytes], bytes]) -> None:
        """Replace each line by `change(line)` from the first one with such an id on; for files
        whose lines are independent of each other."""
        if self._first is None or not (out.seekable() and out.readable()):
            return
        with TemporaryFile() as rest:
            out.seek(self._first)
            for line in out:
                rest.write(change(line))
            rest.seek(0)
            out.seek(self._first)
            shutil.copyfileobj(rest, out, 1 << 20)
            out.truncate()


class LinesExport:
    """Writes exchanges or records as lines: see `analyzer.export.Writer`."""

    def __init__(self, out: BinaryIO, names: TopicNames, options: ExportOptions) -> None:
        self._out = out
        self._names = names
        self._options = options
        self._records = options.table == "records"
        self._quick: Quick | None = None
        self._late = Late(names)
        self._at = 0
        self.problems: list[Problem] = []

    def _write(self, data: bytes) -> None:
        self._at += self._out.write(data)

    def add(self, exchange: Exchange, row: Row, chosen: Chosen | None = None) -> None:
        """Write the exchange, or its chosen records, as lines."""
        nameless = nameless_topics(row) if row.topics or row.implied_topics else ()
        for data in self.shaped(row, exchange, self._names, self.problems, chosen):
            self.put(data, nameless, ())

    def add_batch(self, rows: Rows, items: list[Item]) -> None:
        """Write exchanges as they were read: most need no object of one."""
        if self._quick is None:
            self._quick = self.quick(rows)
        for item in items:
            lines = self._quick(item)
            if lines is not None:
                self.put(lines, (), ())
                continue
            row, exchange = rows.both(item)
            if not (self._records and row.forwarded):
                self.add(exchange, row)

    def quick(self, rows: Rows) -> Quick:
        """Return what gives the lines of an exchange as it was read; None from it: `add` has to
        write them."""
        raise NotImplementedError

    def shaped(
        self,
        row: Row,
        exchange: Exchange,
        names: TopicNames,
        problems: list[Problem],
        chosen: Chosen | None = None,
    ) -> Iterator[bytes]:
        """Yield what is written of an exchange, in pieces, with the names that a process knows."""
        raise NotImplementedError

    def put(self, lines: bytes, nameless: Sequence[str], problems: Iterable[Problem]) -> None:
        self._late.saw(nameless, self._at)
        self._write(lines)
        self.problems += problems
