"""Late topic names: replaces ids by names in output that is already written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from kafkascope.analyzer.topics import TopicNames, short_id

SHORT_ID: Final = re.compile(r"[\w-]{8}\?")
"""What may stand for a topic without a name: `topics.short_id`."""
SHORT_SIZE: Final = 9
MOST_IDS: Final = 100_000
"""Ids that are remembered; of more, all names that are known in the end are looked for."""


class Late:
    """Remembers which ids stand for names in an output, and from which offset on."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._ids: set[str] = set()
        self._first: int | None = None

    def saw(self, nameless: Sequence[str], at: int) -> None:
        """Note what stands for topics without a name in what is written at offset `at`."""
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
