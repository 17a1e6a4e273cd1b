"""Which exchanges are shown, and in which order: all, or those that a filter selects, by columns
where these suffice, else in slices so that keys never wait. They are shown by number, unless
another order is wanted."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.filter.bind import fields_of
from kafkascope.analyzer.filter.fields import DECODED
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.language import bind, compile_query
from kafkascope.analyzer.session.session import Session
from kafkascope.tui.data.decisions import Decisions
from kafkascope.tui.data.store import Store
from kafkascope.tui.stack import Order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kafkascope.analyzer.filter.backends.columns import Query
# Rows whose columns are filtered together where messages have to be read.
PIECE: Final = 1 << 16
# Seconds between two sorts of a list that grows.
AGAIN: Final = 1.0

# Rows that are inserted one by one; for more, the end is sorted again.
FEW: Final = 256
# Rows from which sorting with numpy saves more time than loading it takes.
MANY: Final = 50_000


class Numbered:
    """Keeps indexes of rows in the order of numbers. Few come out of it: exchanges that were left
    behind by others."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rows = array("I")
        self.moved = False
        """Whether rows were inserted before others; whoever reads it resets it."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> int:
        return self._rows[place]

    def indexes(self) -> NDArray[np.int64]:
        """Return a copy of all indexes."""
        import numpy as np

        return np.array(self._rows, dtype=np.int64)

    def place_of(self, index: int) -> int:
        """Return the place of a row, or of the first one after it."""
        numbers = self._session.columns["number"]
        if index >= len(numbers):
            return len(self._rows)
        return bisect_left(self._rows, numbers[index], key=numbers.__getitem__)

    def extend(self, indexes: Sequence[int]) -> None:
        if not len(indexes):
            return
        new, rows, number = self._sorted(indexes), self._rows, self._session.columns["number"]
        last = number[rows[-1]] if rows else -1
        late = bisect_left(new, last, key=number.__getitem__)
        if late:
            self.moved = True
            self._insert(new[:late])
        rows.extend(new[late:])

    def _insert(self, late: array[int]) -> None:
        rows, numbers = self._rows, self._session.columns["number"]
        at = bisect_left(rows, numbers[late[0]], key=numbers.__getitem__)
        if len(late) > FEW or len(rows) - at < FEW:
            rows[at:] = self._sorted(rows[at:] + late)
            return
        for index in late:
            rows.insert(bisect_left(rows, numbers[index], at, key=numbers.__getitem__), index)

    def _sorted(self, indexes: Sequence[int]) -> array[int]:
        numbers = self._session.columns["number"]
        if len(indexes) < MANY:
            return array("I", sorted(indexes, key=numbers.__getitem__))
        import numpy as np

        found = np.array(indexes, dtype=np.uint32)
        order = np.argsort(np.array(numbers)[found], kind="stable")
        return array("I", found[order].tobytes())

    def remove(self, index: int) -> None:
        at = self.place_of(index)
        if self._rows[at : at + 1] == array("I", [index]):
            del self._rows[at]

    def drop(self, count: int) -> None:
        """Follow a session that has dropped its oldest rows: the others have smaller indexes."""
        import numpy as np

        rows = np.array(self._rows, dtype=np.uint32)
        self._rows = array("I", (rows[rows >= count] - np.uint32(count)).tobytes())


class View:
    """Keeps indexes of the store's rows, in the order in which they are shown."""

    def __init__(self, store: Store, text: str = "", known: Known = NOTHING) -> None:
        """`FilterError` when the text is no filter."""
        self.store = store
        self.text = text.strip()
        self.order: Order | None = None
        self._known = known
        bound = bind(self.text)
        self._hides = "ignored" not in fields_of(bound)
        """Whether exchanges that the user ignores are left out."""
        self._decisions: Decisions | None = None
        """What decides in a thread, where keys and values are decoded."""
        self._again: deque[int] = deque()
        """Numbers of rows that are decided once more."""
        self._query = self._compiled()
        self.fast = self._query is None or self._query.cost == "fast"
        """Whether no message has to be read for the filter."""
        self._shown = array("Q")
        """Rows matching the filter, in the order in which they came."""
        self._numbered: Numbered | None = None
        """The same rows by number; made when first wanted."""
        self._placed = 0
        """How many of them are there."""
        self._seen = 0
        self._dropped = store.session.dropped
        self._open: list[int] = []
        """Rows of the piece at hand whose messages have to be read, the next one last."""
        self._piece: tuple[int, NDArray[np.bool_]] | None = None
        self._names = len(store.session.context.names)
        self._sorted: NDArray[np.int64] | None = None
        self._sorted_rows = 0
        self._sorted_at = 0.0
        self.revision = 0
        """Changes when rows that came before are selected anew, or are not any more."""
        self._anew = False
        """Whether that moved rows since somebody asked."""

    @property
    def filter_text(self) -> str:
        """The whole filter: what was typed, without exchanges that are ignored."""
        if not (self._hides and self._known.ignored):
            return self.text
        return f"({self.text}) and not ignored" if self.text else "not ignored"

    def _compiled(self) -> Query | None:
        text = self.filter_text
        query = compile_query(text, self._known) if text else None
        decoding, bound = self._known.decoding, None if query is None else query.bound
        self.close()
        self._decisions = None
        if query is not None and decoding is not None and fields_of(bound) & DECODED:
            self._decisions = Decisions(self.store, query, decoding)
        self._again.clear()
        return query

    def close(self) -> None:
        """Let go of the thread that decides."""
        if self._decisions is not None:
            self._decisions.close()

    def _compile_again(self) -> None:
        """Make the filter anew; rows that were decided stay so."""
        before = self._decisions
        self._query = self._compiled()
        if before is not None and self._decisions is not None:
            self._decisions.follow(before)

    def __len__(self) -> int:
        return len(self._by_number) if self._sorted is None else self._sorted_rows

    def __getitem__(self, place: int) -> int:
        return self._by_number[place] if self._sorted is None else int(self._sorted[place])

    @property
    def arrived(self) -> int:
        """How many rows came matching the filter."""
        return len(self.store) if self._query is None else len(self._shown)

    def arrival(self, place: int) -> int:
        """Return one of these rows, in the order in which they came."""
        return place if self._query is None else self._shown[place]

    @property
    def _by_number(self) -> Numbered:
        numbered = self._numbered
        if numbered is None:
            numbered, self._placed = Numbered(self.store.session), 0
            self._numbered = numbered
        arrived = self.arrived
        if self._placed < arrived and self._dropped == self.store.session.dropped:
            new = range(self._placed, arrived)
            numbered.extend(new if self._query is None else self._shown[self._placed :])
            self._placed = arrived
        return numbered

    def has_reordered(self) -> bool:
        """Return whether rows have moved since the last call."""
        numbered = self._by_number
        found, numbered.moved = numbered.moved or self._anew, False
        self._anew = False
        return found and self._sorted is None

    @property
    def scanned(self) -> float:
        """The share of the rows that were filtered."""
        return 1.0 if self._query is None else self._seen / max(1, len(self.store))

    @property
    def behind(self) -> bool:
        """Whether rows are left for `advance`."""
        return self._query is not None and self._seen < len(self.store)

    def array(self) -> NDArray[np.int64]:
        """Return a copy of the indexes that are shown, in their order."""
        return self.indexes() if self._sorted is None else self._sorted.copy()

    def indexes(self) -> NDArray[np.int64]:
        """Return a copy of the indexes that are shown, by number."""
        return self._by_number.indexes()

    def place_of(self, index: int) -> int:
        """Return the place of a row, or of the first one after it."""
        if self._sorted is not None:
            import numpy as np

            found = np.flatnonzero(self._sorted == index)
            return int(found[0]) if len(found) else 0
        return self._by_number.place_of(index)

    def advance(self, seconds: float) -> bool:
        """Filter and sort more rows, for `seconds` at most; return whether anything changed."""
        changed = self._follow_ring()
        if self._query is not None:
            changed |= self._late_names()
            if self._seen < len(self.store):
                before = self._seen
                self._filter(time.monotonic() + seconds)
                changed |= self._decisions is None or self._seen != before
            changed |= self._revise()
        return self._sort() or changed

    def _filter(self, until: float) -> None:
        assert self._query is not None
        query, session = self._query, self.store.session
        while self._seen < len(self.store):
            if self._piece is None:
                size = len(self.store)
                end = size if self.fast else min(size, self._seen + PIECE)
                yes, maybe = query.settle(session, self._seen, end)
                self._piece = self._seen, yes
                self._open = maybe.nonzero()[0][::-1].tolist()
                self._want()
            begin, yes = self._piece
            while self._open:
                place = self._open[-1]
                chosen = self._decide(begin + place)
                if chosen is not None:
                    yes[place] = chosen
                    self._open.pop()
                    place += 1
                if chosen is None or (time.monotonic() > until and self._open):
                    # What is decided shows at once.
                    self._take(begin, yes[:place])
                    self._piece = begin + place, yes[place:]
                    self._open = [other - place for other in self._open]
                    return
            self._take(begin, yes)
            self._piece = None
            if time.monotonic() > until:
                return

    def _want(self) -> None:
        """Have the rows of the piece decided that are open, where that is done beside this."""
        if self._decisions is not None and self._piece is not None:
            begin, numbers = self._piece[0], self.store.session.columns["number"]
            self._decisions.want([numbers[begin + place] for place in reversed(self._open)])

    def _decide(self, index: int) -> bool | None:
        """Return whether a row is selected; None: that is not decided yet."""
        session = self.store.session
        if self._decisions is not None:
            return self._decisions.take(session.columns["number"][index])
        assert self._query is not None
        return self._query.decide(session, index)

    def _revise(self) -> bool:
        """Decide once more about rows that lacked a schema which is known by now; return whether
        any is selected, or left out, in place of before."""
        decisions, session = self._decisions, self.store.session
        if decisions is None or self._open:
            return False
        if not self._again:
            self._again.extend(decisions.revise())
        changed = False
        while self._again and (chosen := decisions.take(self._again[0])) is not None:
            index = session.index_of(self._again.popleft())
            if index is None:
                continue
            at, shown = self._find(index)
            if chosen != shown:
                changed = True
                if chosen:
                    self._shown.insert(at, index)
                else:
                    del self._shown[at]
        if changed:
            self._numbered, self._sorted_at, self._sorted_rows = None, 0.0, 0
            self.revision += 1
            self._anew = True
        return changed

    def selects(self, index: int) -> bool | None:
        """Return whether a row is selected; None: that is not decided yet."""
        if self._query is None:
            return True
        if index >= self._seen:
            return None
        return self._find(index)[1]

    def _find(self, index: int) -> tuple[int, bool]:
        """Return the place of a row among those that match, or where it would be; and whether it
        is there."""
        at = bisect_left(self._shown, index)
        return at, self._shown[at : at + 1] == array("Q", [index])

    def _take(self, begin: int, yes: NDArray[np.bool_]) -> None:
        found = yes.nonzero()[0].astype("uint64") + begin
        self._shown.frombytes(found.tobytes())
        self._seen = begin + len(yes)

    def _late_names(self) -> bool:
        """Filter again, once all is read, if topics got their names late."""
        names = len(self.store.session.context.names)
        if not self.store.progress.done or names == self._names or not self.fast:
            return False
        self._names = names
        self._start_again()
        return True

    def _start_again(self) -> None:
        self._query = self._compiled()
        self._shown, self._seen, self._piece, self._open = array("Q"), 0, None, []
        self._numbered = None
        self.revision += 1

    def noted(self) -> None:
        """Filter again after marks, comments or findings have changed."""
        if self._query is not None:
            self._start_again()

    def hide(self, index: int) -> None:
        """Take out a row that is ignored from now on."""
        if not self._hides:
            return
        if self._query is None:
            self._start_again()
        else:
            self._compile_again()
            self._piece, self._open = None, []
            self.revision += 1
            numbered = self._by_number
            at, shown = self._find(index)
            if shown:
                del self._shown[at]
                numbered.remove(index)
                self._placed -= 1
        if self._sorted is not None:
            self._sorted = self._sorted[self._sorted != index]
            self._sorted_rows = len(self._sorted)

    def _follow_ring(self) -> bool:
        """Follow a store that has dropped its oldest rows: the others have smaller indexes."""
        gone = self.store.session.dropped - self._dropped
        if not gone:
            return False
        self._dropped += gone
        # Unless they were dropped before anybody saw them, the first ones of all have places.
        if self._numbered is not None:
            self._numbered.drop(gone)
            lost = gone if self._query is None else bisect_left(self._shown, gone)
            self._placed = max(0, self._placed - lost)
        kept = self._shown[bisect_left(self._shown, gone) :]
        self._shown = array("Q", [index - gone for index in kept])
        if self._query is not None:
            # Tables have other numbers now.
            self._compile_again()
            self._seen = max(0, self._seen - gone)
            self._piece, self._open = None, []
        if self._sorted is not None:
            self._sorted_at = 0.0
            self._sorted_rows = 0
        return True

    # --- order ------------------------------------------------------------------------------

    def sort(self, order: Order | None) -> None:
        """Sort; None: the order of the capture."""
        self.order, self._sorted, self._sorted_rows = order, None, 0
        self._sorted_at = 0.0
        self._sort()

    def _sort(self) -> bool:
        if self.order is None:
            return False
        rows = len(self.store) if self._query is None else len(self._shown)
        settled = self.store.progress.done and not self.behind
        if rows == self._sorted_rows and self._sorted is not None:
            return False
        if not settled and time.monotonic() - self._sorted_at < AGAIN:
            return False
        from kafkascope.tui.data.columns import ordered

        wanted = None if self._query is None else self._shown
        self._sorted = ordered(self.store.session, self.order, wanted, rows)
        self._sorted_rows, self._sorted_at = rows, time.monotonic()
        return True
