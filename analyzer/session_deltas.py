"""What a `Session` has grown by: so that one process reads and another one shows.

A delta is plain data (bytes of columns, new values of tables) that pickles fast; applying all of
them in order makes a session equal to the one they were taken from.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import Any, Final, TypeAlias

from analyzer.columns import Frames, Table
from analyzer.session import Session

Delta: TypeAlias = dict[str, Any]

_DERIVED: Final = frozenset({"_index", "_late", "_connection_index"})
"""Made again by whoever applies: their entries do not come in order."""
SHARE: Final = 4
"""When there are too many rows, one in so many goes: the oldest ones."""


class Growth:
    """Remembers how much of a session was taken."""

    def __init__(self, session: Session, *, forget: bool = False) -> None:
        """`forget`: what was taken is needed here no more; rows go, tables stay."""
        self._session = session
        self._forget = forget
        self._taken: dict[str, int] = {}
        self._names = len(session.context.names)
        self._dropped = 0

    def take(self, limit: int = 0) -> Delta:
        """What is new since the last time. `limit`: rows that are kept at most, where input has no
        end; whoever applies the deltas drops the same ones."""
        out: Delta = {"drop": self._dropped} if self._dropped else {}
        self._dropped = 0
        self._all(out)
        names = self._session.context.names.all()
        out["names"] = _tail(names, len(names) - self._names)
        self._names = len(names)
        if self._forget:
            self._session.forget()
            for name in [*self._taken]:
                if not isinstance(getattr(self._session, name, None), Table | list):
                    del self._taken[name]
        if limit and len(self._session) > limit:
            self._dropped = max(1, limit // SHARE)
            self._session.drop(self._dropped)
            self._recount()
        return out

    def _recount(self) -> None:
        """All that is there was taken."""
        self._taken.clear()
        out: Delta = {}
        self._all(out)

    def _all(self, out: Delta) -> None:
        for name, value in vars(self._session).items():
            if name in _DERIVED:
                continue
            if isinstance(value, Frames):
                for part in Frames.__slots__:
                    self._add(out, f"{name}.{part}", getattr(value, part))
            else:
                self._add(out, name, value)

    def _add(self, out: Delta, name: str, value: Any) -> None:
        if isinstance(value, Table):
            value = value.values
        if not isinstance(value, array | bytearray | list | dict):
            return
        # `Frames` has one end before the first frame; every session has it.
        since = self._taken.get(name, 1 if name == "_frames._ends" else 0)
        size = len(value)
        if size == since:
            return
        self._taken[name] = size
        if isinstance(value, array):
            out[name] = value[since:].tobytes()
        elif isinstance(value, dict):
            out[name] = _tail(value, size - since)
        else:
            out[name] = bytes(value[since:]) if isinstance(value, bytearray) else value[since:]


def _tail(entries: dict[Any, Any], count: int) -> list[tuple[Any, Any]]:
    """The last entries of a dict, in order, without a walk over the others."""
    return list(islice(reversed(entries.items()), max(0, count)))[::-1]


def apply(delta: Delta, session: Session) -> None:
    """Grow a session by what was taken of another one."""
    session.drop(delta.get("drop", 0))
    begun, filled = len(session), session.filled
    for topic_id, topic in delta["names"]:
        session.context.names.learn(topic_id, topic)
    for name, new in delta.items():
        if name in ("names", "drop"):
            continue
        owner, _, part = name.partition(".")
        column = getattr(session, owner)
        if part:
            column = getattr(column, part)
        if isinstance(column, Table):
            for value in new:
                column.number(value)
        elif isinstance(column, array):
            column.frombytes(new)
        elif isinstance(column, dict):
            column.update(new)
        else:
            column += new
    session.rows_told += len(session) - begun
    session.rows_filled += session.filled - filled
    session._index_rows()
