"""Names that came late: in what was written already, ids give way to names."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import BinaryIO

from kafkascope.analyzer.exchanges.rows import Row, nameless
from kafkascope.analyzer.topics import TopicNames


class Late:
    """Remembers from where on, and which, ids stand for names in an output."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._ids: set[str] = set()
        self._first: int | None = None

    def saw(self, row: Row, at: int) -> None:
        """What is written of a row at offset `at` has ids in the place of names that it lacks."""
        if new := nameless(row):
            self._ids.update(new)
            if self._first is None:
                self._first = at

    def known(self) -> dict[str, str]:
        """What was written for a topic -> its name, for those that have one by now."""
        found = {each: self._names.late(each) for each in self._ids}
        return {each: name for each, name in found.items() if name != each}

    def rewrite(self, out: BinaryIO, change: Callable[[bytes], bytes]) -> None:
        """Put `change(line)` for each line from the first one with such an id on; for files whose
        lines are whole in themselves."""
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
