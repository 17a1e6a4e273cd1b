"""What the screens show: a session, the last column of its list as text, and how reading goes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from analyzer.context import Context
from analyzer.session import Session

if TYPE_CHECKING:
    from analyzer.columns import Read
    from analyzer.model import Exchange

BAD_STATES: Final = frozenset({2, 4})
"""Indexes in `analyzer.session.STATES` of lost and orphan."""


class Texts:
    """Strings by number, packed: a million of them take what they are long."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("Q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        octets = self._data[self._ends[index] : self._ends[index + 1]]
        return octets.decode("utf-8", "surrogatepass")

    def extend(self, texts: Sequence[str]) -> None:
        """Append."""
        for text in texts:
            self._data += text.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._data))


@dataclass
class Progress:
    """How far the reader is."""

    read: int = 0
    size: int = 0
    done: bool = False
    stopped: bool = False
    """By the user."""
    failure: str = ""
    """Why there will be no more rows; empty while all is well."""
    code: int = 0
    """Exit code of the failure."""
    said: list[str] = field(default_factory=list)
    """Damage, and remarks about the capture as a whole."""


class Store:
    """Append-only; the feed appends, the screens read."""

    def __init__(self, read: Read | None = None, context: Context | None = None) -> None:
        self.session = Session(context or Context(), read or _nothing)
        self.texts = Texts()
        self.progress = Progress()

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, exchange: Exchange) -> None:
        """Take in one exchange of this process."""
        from analyzer import rows

        row = rows.row_of(exchange, self.session.context.names)
        self.session.add(exchange, row)
        self.texts.extend([rows.result(row)])

    def result(self, index: int) -> str:
        """The last column; with names of topics that were told later."""
        session = self.session
        names = session.topic_lists.values[session.topics[index]]
        if any(name[-1:] == "?" for name in names):
            from analyzer import rows
            from captures.errors import CaptureError

            try:
                return rows.result(session.row(index))
            except CaptureError:
                pass  # its bytes are gone
        return self.texts[index]

    def is_bad(self, index: int) -> bool:
        """Whether the exchange has an error, or no answer although one was due."""
        session = self.session
        if session.states[index] in BAD_STATES:
            return True
        return bool(session.error_lists.values[session.errors[index]])


def _nothing(file: int, at: int, size: int) -> bytes:
    from captures.spool import NotKept

    raise NotKept("bytes not kept")
