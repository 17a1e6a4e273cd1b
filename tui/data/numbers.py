"""Statistics for the boards, of everything or of what a filter selects."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.spans import spans
from kafkascope.captures.errors import CaptureError
from kafkascope.tui.data.pipes import messages, start
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.view import View

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.options import SchemaOptions

# Seconds of counting at a time in this process.
SLICE: Final = 0.02
FAILED: Final = "counting failed"


class Numbers:
    """The accumulators of one filter."""

    version = 0
    """Changes when there are new numbers."""
    done = False
    """Whether nothing more is counted."""
    share: int | None = None
    """How many percent of the input were counted, while that is known."""
    following = False
    """Whether all that there is was counted, and more may come."""
    failure = ""
    """Why not all was counted; empty when all is well."""

    def get(self, name: str) -> Any | None:
        """Return an accumulator as it is by now; None as long as it is not there."""
        raise NotImplementedError

    def advance(self) -> None:
        """Take in what there is, for a moment."""
        raise NotImplementedError

    def settle(self) -> None:
        """Take what was counted for all; called when the input is not followed any more."""

    def close(self) -> None:
        """End what counts."""


class ProcessNumbers(Numbers):
    """Numbers that a child process counts, which reads the inputs from their beginning."""

    def __init__(
        self,
        inputs: Sequence[str],
        *,
        ports: Iterable[int] = (),
        legs: str = "client",
        keylog: Sequence[str] = (),
        zone: str = "",
        filter_text: str = "",
        schemas: SchemaOptions | None = None,
        grows: bool = False,
    ) -> None:
        """`schemas`: where schemas of keys and values come from; else the inputs alone. `grows`:
        whether exchanges are numbered as in a file that is being written."""
        options = {
            "inputs": list(inputs),
            "ports": spans(ports),
            "legs": legs,
            "keylog": list(keylog),
            "zone": zone,
            "filter": filter_text,
            "schemas": list(schemas or ()),
            "grows": grows,
        }
        self._process, results = start("kafkascope.tui.data.counter", options)
        self._states: dict[str, bytes] = {}
        self._loaded: dict[str, Any] = {}
        self._newest: dict[str, Any] | None = None
        self._ended = False
        threading.Thread(target=self._receive, args=(results,), daemon=True).start()

    def _receive(self, results: int) -> None:
        for data in messages(results):
            self._newest = pickle.loads(data)  # older states that nobody took are of no use
        self._ended = True

    def advance(self) -> None:
        ended = self._ended  # asked first: the last states come before the end
        newest, self._newest = self._newest, None
        if newest is not None:
            self._states, self._loaded = newest["states"], {}
            self.done, self.following = newest["done"], newest["following"]
            self.share = newest["share"]
            self.version += 1
        elif ended and not self.done:
            # The child died: what it had counted stays.
            self.done, self.following, self.failure = True, False, FAILED
            self.version += 1

    def get(self, name: str) -> Any | None:
        """Return an accumulator as it is by now, loaded from its state when it is first wanted."""
        state = self._states.pop(name, None)  # it may take as much memory as what it becomes
        if state is not None:
            self._loaded[name] = self._load(name, state)
        return self._loaded.get(name)

    def _load(self, name: str, packed: bytes) -> Any:
        from kafkascope.analyzer.findings import Findings
        from kafkascope.analyzer.statistics.accumulators import STATISTICS

        state = pickle.loads(packed)
        if name == Findings.NAME:
            beside: dict[str, Any] = {each: self.get(each) for each in STATISTICS}
            return Findings(beside=beside).load(state)
        return STATISTICS[name]().load(state)

    def settle(self) -> None:
        """Take what was counted for all, and end the child."""
        self.close()
        self.done, self.following = True, False
        self.version += 1

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class StoreNumbers(Numbers):
    """Numbers counted in this process from the store, in slices: for inputs that cannot be read
    twice, and filters that only this process can answer."""

    def __init__(self, store: Store, filter_text: str = "", view: View | None = None) -> None:
        """`view`: counts what it selects, in place of a filter's text."""
        self._store, self._view = store, view
        self._wanted = compile_filter(filter_text)
        self._begin()

    def _begin(self) -> None:
        """Count from the first row on what the view selects now."""
        from kafkascope.analyzer.findings import accumulators
        from kafkascope.analyzer.statistics.feed import Feed

        self._revision = 0 if self._view is None else self._view.revision
        self._counted = accumulators()
        self._feed = Feed(self._counted.values())
        self._next = 0
        """The next row, counted from the first one that ever came."""
        self._told = 0
        """The row at which the version changed last."""

    def advance(self) -> None:
        until = time.monotonic() + SLICE
        if self._revised():
            self._begin()
        session, before = self._store.session, self._next
        # Old rows of a live capture go; what was not counted by then is not counted.
        self._next = max(self._next, session.dropped)
        while self._next - session.dropped < len(session) and time.monotonic() < until:
            index = self._next - session.dropped
            chosen = True if self._view is None else self._view.selects(index)
            if chosen is None:
                break  # that row has not been filtered yet
            self._next += 1
            if not chosen:
                continue
            try:
                exchange = session.exchange(index)
            except CaptureError:
                continue  # its bytes are gone
            row = row_of(exchange, session.context.names)
            if self._wanted(row, exchange):
                self._feed.add(row, exchange)
        self._feed.settle()
        behind = self._next - session.dropped < len(session) or self._revised()
        # Tables are made anew now and then, and when all is counted.
        if self._next != before and (not behind or self._next - self._told > 500):
            self.version += 1
            self._told = self._next
        progress = self._store.progress
        self.done = not behind and progress.done
        self.following = not behind and (progress.following or progress.ring) and not self.done
        self.share = self._share()

    def _revised(self) -> bool:
        return self._view is not None and self._view.revision != self._revision

    def _share(self) -> int | None:
        progress, rows = self._store.progress, len(self._store.session)
        read = 1.0
        if not progress.done:
            if not 0 < progress.read < progress.size:
                return None
            read = progress.read / progress.size
        counted = (self._next - self._store.session.dropped) / max(1, rows)
        return min(99, int(100 * counted * read))

    def get(self, name: str) -> Any | None:
        """Return an accumulator as it is by now; None as long as nothing was counted."""
        return self._counted.get(name) if self.version or self.done else None
