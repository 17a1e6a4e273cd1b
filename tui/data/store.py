"""The rows of an input: a session, the last column of the list as text, and how far reading is."""

from __future__ import annotations

import re
import time
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.tampering import effects_of
from kafkascope.analyzer.exchanges.columns import Kept, Read, grown
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import nameless
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.inputs.spool import NotKept
from kafkascope.captures.model import Packet
from kafkascope.tui.limits import LIMITS

T = TypeVar("T")

BAD_STATES: Final = frozenset({2, 4})
"""Indexes in `analyzer.session_packing.STATES` of lost and orphan."""

PERIOD: Final = 0.1
# Seconds of each `PERIOD` that may go into rows before their turn.
SPENT: Final = 0.03
# Seconds until a row is read again that was being moved.
MOVE_S: Final = 0.005


class Texts:
    """A packed list of strings: a million of them take no more memory than their bytes."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends = array("b", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        octets = self._data[self._ends[index] : self._ends[index + 1]]
        return octets.decode("utf-8", "surrogatepass")

    def rows_with(self, pattern: re.Pattern[bytes]) -> list[int]:
        """Return the numbers of texts with a match of a pattern; one across two does not count."""
        found: list[int] = []
        at, size = 0, len(self._data)
        while at < size and (match := pattern.search(self._data, at)):
            row = bisect_right(self._ends, match.start()) - 1
            end = self._ends[row + 1]
            if match.end() <= end:
                found.append(row)
                at = end
            else:
                at = match.start() + 1
        return found

    def drop(self, count: int) -> None:
        gone = self._ends[min(count, len(self))]
        del self._data[:gone], self._ends[:count]
        self._ends = array(self._ends.typecode, [end - gone for end in self._ends])

    def extend(self, texts: Sequence[str]) -> None:
        ends = []
        for text in texts:
            self._data += text.encode("utf-8", "surrogatepass")
            ends.append(len(self._data))
        self._ends = grown(self._ends, ends)


@dataclass
class Progress:
    """How far reading is."""

    read: int = 0
    size: int = 0
    done: bool = False
    following: bool = False
    """Whether the reader waits for more of an input that is still being written."""
    stopped: bool = False
    """Whether the user stopped it."""
    failure: str = ""
    """Why there will be no more rows; empty while all is well."""
    code: int = 0
    """Exit code of the failure."""
    ring: bool = False
    """Whether old rows are dropped when there are too many."""
    rows: int = 0
    """Rows that came, including those that were dropped."""
    recent: deque[tuple[float, int, int]] = field(default_factory=lambda: deque(maxlen=30))
    """(time, rows, bytes) of the last batches."""
    said: list[str] = field(default_factory=list)
    """Damage."""
    empty: str = ""
    """Why there are no rows, and what to do; empty once there are some."""
    remarks: list[str] = field(default_factory=list)

    def took(self, rows: int) -> None:
        """Take note of a batch; `rows` is how many came so far."""
        self.rows = rows
        self.recent.append((time.monotonic(), self.rows, self.read))

    def rate(self) -> str:
        """Return the exchanges a second of late, for the header; empty while that is unknown."""
        seconds, rows, _ = self._lately()
        if seconds < 0.5:
            return ""
        rate = rows / seconds
        return f" {rate / 1000:.0f}k/s" if rate >= 10_000 else f" {rate:,.0f}/s"

    def left(self) -> str:
        """Return the rate and the seconds that are left; empty while they are unknown."""
        seconds, _, octets = self._lately()
        if seconds < 0.5 or octets <= 0:
            return ""
        return f"{self.rate()}  {(self.size - self.read) * seconds / octets:.0f} s left"

    def _lately(self) -> tuple[float, int, int]:
        """Return seconds, rows and bytes between the first and the last of the recent batches."""
        if not self.recent:
            return 0.0, 0, 0
        (begun, rows, octets), (end, more, further) = self.recent[0], self.recent[-1]
        return end - begun, more - rows, further - octets


class Budget:
    """Limits the time for rows before their turn, to `SPENT` in each `PERIOD`."""

    def __init__(self) -> None:
        self._window = self._spent = 0.0

    def left(self) -> bool:
        now = time.monotonic()
        if now - self._window > PERIOD:
            self._window, self._spent = now, 0.0
        return self._spent <= SPENT

    def took(self, seconds: float) -> None:
        self._spent += seconds


class Store:
    """Keeps the rows; the feed appends, the screens read."""

    def __init__(
        self,
        read: Read | None = None,
        context: Context | None = None,
        find: Callable[[set[int]], list[Packet]] | None = None,
        places: Kept | None = None,
        plaintext: Callable[[], Kept] | None = None,
    ) -> None:
        """`read` reads bytes of the input again, `find` packets by their numbers; `places` and
        `plaintext` are as in `Session`."""
        self.session = Session(context or Context(), read or _nothing, places, plaintext)
        self.texts = Texts()
        """The last column of rows."""
        self.decided: dict[int, bool] = {}
        """Whether the errors of exchanges are expected, by number, where findings have decided."""
        self.budget = Budget()
        self.waiting = False
        """Whether a row was asked for that takes too long now: ask again soon."""
        self._moves = 0
        """Counts begins and ends of dropping rows: odd while rows are dropped."""
        self.ends: deque[tuple[int, int | None, str, int]] = deque(maxlen=LIMITS.connection_ends)
        """(connection, side, how, when) of ends of connections."""
        self.progress = Progress()
        self.read = read or _nothing
        self.find = find

    def __len__(self) -> int:
        return len(self.session)

    def add(self, exchange: Exchange) -> None:
        """Add an exchange that this process has read."""
        self.texts.extend(self.session.extend([exchange]))

    @contextmanager
    def dropping(self, count: int) -> Iterator[None]:
        """Drop what belongs to the oldest rows, which the body drops from the session."""
        if not count:
            yield
            return
        self._moves += 1
        try:
            self.texts.drop(count)
            yield
        finally:
            self._moves += 1

    def exchange(self, number: int) -> Exchange | None:
        """Return an exchange by its number, also in threads while rows are dropped; None if it is
        not kept. `CaptureError` when its bytes are not."""

        def read() -> Exchange | None:
            index = self.session.index_of(number)
            return None if index is None else self.session.exchange(index)

        return self.steady(read)

    def steady(self, read: Callable[[], T]) -> T:
        """Call what reads the columns of a row in a thread, again if rows were dropped
        meanwhile."""
        while True:
            moves = self._moves
            try:
                found = read()
            except Exception:
                # Of columns that are just being shortened nothing fits.
                if moves == self._moves and not moves % 2:
                    raise
            else:
                if moves == self._moves and not moves % 2:
                    return found
            time.sleep(MOVE_S)

    def result(self, index: int) -> str:
        """Return the last column, with names of topics that came later."""
        session = self.session
        names = session.tables["topics"].values[session.columns["topics"][index]]
        if any(map(nameless, names)):
            try:
                return result(session.row(index))
            except CaptureError:
                pass  # its bytes are gone
        return self.texts[index]

    def deeds(self, index: int) -> list[str]:
        """Return what rules of the proxy that recorded an exchange did to it."""
        noted = self.session.remarks_by_row.get(self.session.dropped + index)
        return [] if noted is None else effects_of(noted[1])

    def is_expected(self, index: int) -> bool:
        """Return whether the errors of an exchange are expected, by what is known so far."""
        decided = self.decided.get(self.session.columns["number"][index])
        return bool(self.session.value("expected", index) if decided is None else decided)


def _nothing(file: int, at: int, size: int) -> bytes:
    raise NotKept("bytes not kept")
