"""Names that came late: in what was written already, ids give way to names."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO

from kafkascope.analyzer.topics import short_id

if TYPE_CHECKING:
    from kafkascope.analyzer.topics import TopicNames


class Late:
    """Remembers from where on, and which, ids stand for names in an output."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._ids: set[bytes] = set()
        self._first: int | None = None

    def saw(self, topic_ids: tuple[bytes, ...], at: int) -> None:
        """What is written at offset `at` may have these ids in the place of names."""
        new = [each for each in topic_ids if any(each) and self._names.get(each) is None]
        if new:
            self._ids.update(new)
            if self._first is None:
                self._first = at

    def known(self) -> dict[str, str]:
        """What was written for a topic -> its name, for those that have one by now."""
        found = {each: self._names.get(each) for each in self._ids}
        return {short_id(each): name for each, name in found.items() if name is not None}

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
