"""Deltas: what a `Session` has grown by, so that one process reads and another one displays.

A delta is plain data (arrays of columns, new values of tables) that pickles fast; a session to
which all of them were applied in order equals the original one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.exchanges.columns import Frames, ValueList, grown
from kafkascope.analyzer.session.session import GROWING, Session

Delta: TypeAlias = dict[str, Any]

# With too many rows, the oldest limit / SHARE of them are dropped.
SHARE: Final = 4
# Of input without end, at 1 KB each: with more the oldest rows are dropped, too.
MOST_CONNECTIONS: Final = 200_000


class Growth:
    """Remembers how much of a session was taken."""

    def __init__(self, session: Session, *, forget: bool = False) -> None:
        """With `forget`, taken rows are removed from the session; its tables stay."""
        self._session = session
        self._forget = forget
        self._taken: dict[str, int] = {}
        self._names = len(session.context.names)
        self._dropped = 0

    def take(self, limit: int = 0) -> Delta:
        """Return what is new since the last call. `limit`: the most rows to keep, for input without
        end; `apply` drops the same ones."""
        out: Delta = {"drop": self._dropped} if self._dropped else {}
        self._dropped = 0
        self._all(out)
        names = self._session.context.names.all()
        out["names"] = _tail(names, len(names) - self._names)
        self._names = len(names)
        if self._forget:
            self._session.forget()
            for name, value in self._parts():
                if not isinstance(value, ValueList | list | Frames):
                    self._taken.pop(name, None)
        rows = len(self._session)
        if limit and (rows > limit or len(self._session.connections) > MOST_CONNECTIONS):
            self._dropped = max(1, min(limit, rows) // SHARE)
            self._session.drop(self._dropped)
            self._taken.clear()
            self._all({})  # all that is left counts as taken
        return out

    def _all(self, out: Delta) -> None:
        for name, value in self._parts():
            self._add(out, name, value)

    def _parts(self) -> Iterator[tuple[str, Any]]:
        """Yield all that grows: columns, tables, and the other attributes of the session by
        name."""
        session = self._session
        for name, column in session.columns.items():
            yield f"column {name}", column
        for name, table in session.tables.items():
            yield f"table {name}", table
        for name in GROWING:
            yield name, getattr(session, name)

    def _add(self, out: Delta, name: str, value: Any) -> None:
        if isinstance(value, ValueList):
            value = value.values
        since = self._taken.get(name, 0)
        size = value.end if isinstance(value, Frames) else len(value)
        if size == since:
            return
        self._taken[name] = size
        if isinstance(value, Frames):
            out[name] = value.since(since)
        elif isinstance(value, dict):
            out[name] = _tail(value, size - since)
        else:
            out[name] = value[since:]


def _tail(entries: dict[Any, Any], count: int) -> list[tuple[Any, Any]]:
    """Return the last entries of a dict, in order, without iterating over the others."""
    return list(islice(reversed(entries.items()), max(0, count)))[::-1]


def apply(delta: Delta, session: Session) -> None:
    """Grow a session by the delta of another one."""
    session.drop(delta.get("drop", 0))
    begun = len(session)
    for topic_id, topic in delta["names"]:
        session.context.names.learn(topic_id, topic)
    # First, for threads that read new rows meanwhile.
    session.stored_frames.append(delta.get("stored_frames", b""))
    for name, new in delta.items():
        kind, _, of = name.partition(" ")
        if kind == "column":
            session.columns[of] = grown(session.columns[of], new)
        elif kind == "table":
            for value in new:
                session.tables[of].number(value)
        elif name in GROWING and name != "stored_frames":
            part = getattr(session, name)
            if isinstance(part, dict):
                part.update(new)
            else:
                part += new
    session.rows_appended += len(session) - begun
    session.index_rows()
