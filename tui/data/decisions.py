"""Decides, in a thread, which rows a filter about decoded keys and values selects: whoever knows a
schema may have to be asked first, and keys never wait for that."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafkascope.tui.limits import LIMITS

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.backends.columns import Query
    from kafkascope.analyzer.filter.decoded.reading import Decoding
    from kafkascope.tui.data.store import Store

TURN: Final = threading.Lock()
"""Held for a row: the thread of a filter that nobody wants any more ends before the next begins."""


class Decisions:
    """The verdicts of one filter, by numbers of exchanges."""

    def __init__(self, store: Store, query: Query, decoding: Decoding) -> None:
        self._store, self._query, self._decoding = store, query, decoding
        self._lock = threading.Lock()
        self._todo: deque[int] = deque()
        self._found: dict[int, bool] = {}
        """What nobody has taken yet."""
        self._lacking: set[int] = set()
        """Exchanges that were decided without a schema that was needed."""
        self._known = 0
        """How much was known of schemas when the first of these was decided."""
        self._running = False
        self._closed = False

    def want(self, numbers: Iterable[int]) -> None:
        """Decide about exchanges, in this order."""
        with self._lock:
            self._todo.extend(numbers)
            if self._running or not self._todo:
                return
            self._running = True
        # A daemon: what takes long must not keep the program from ending.
        threading.Thread(target=self._run, daemon=True).start()

    def take(self, number: int) -> bool | None:
        """Return the verdict about an exchange that was wanted, once; None: not yet."""
        return self._found.pop(number, None)

    def revise(self) -> list[int]:
        """Decide once more about the exchanges that lacked a schema, if more are known now; return
        them. Call it when nothing else is wanted; `take` has the new verdicts."""
        if not self._lacking or self._decoding.changes == self._known:
            return []
        numbers = sorted(self._lacking)
        self._lacking.clear()
        self.want(numbers)
        return numbers

    def follow(self, before: Decisions) -> None:
        """Take over which exchanges lacked a schema for the same filter."""
        self._lacking |= before._lacking
        self._known = before._known

    def close(self) -> None:
        """Let the thread end: the verdicts are not needed any more."""
        self._closed = True

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._closed or not self._todo:
                    self._running = False
                    return
                number = self._todo.popleft()
            with TURN:
                self._found[number] = False if self._closed else self._decide(number)

    def _decide(self, number: int) -> bool:
        decoding = self._decoding
        known = decoding.changes
        decoding.begin()
        chosen = self._store.steady(lambda: self._chosen(number))
        if decoding.lacked and len(self._lacking) < LIMITS.undecided_rows:
            self._known = min(self._known, known) if self._lacking else known
            self._lacking.add(number)
        return chosen

    def _chosen(self, number: int) -> bool:
        session = self._store.session
        index = session.index_of(number)
        return index is not None and self._query.decide(session, index)
