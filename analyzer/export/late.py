"""Late topic names: replaces ids by names in output that is already written."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile
from typing import BinaryIO

from kafkascope.analyzer.topics import TopicNames


class Late:
    """Remembers which ids stand for names in an output, and from which offset on."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._ids: set[str] = set()
        self._first: int | None = None

    def saw(self, nameless: Sequence[str], at: int) -> None:
        """Note what stands for topics without a name in what is written at offset `at`."""
        if nameless:
            self._ids.update(nameless)
            if self._first is None:
                self._first = at

    def known(self) -> dict[str, str]:
        """Return the names that came late, by the ids that were written for them."""
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
