"""What a `Session` has grown by: so that one process reads and another one shows.

A delta is plain data (bytes of columns, new values of tables) that pickles fast; applying all of
them in order makes a session equal to the one they were taken from.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import Any, Final, TypeAlias

from analyzer.columns import Frames, Table
from analyzer.session import NONE, Session

Delta: TypeAlias = dict[str, Any]

_DERIVED: Final = frozenset({"_index", "_connection_index"})
"""Made again by `apply`: their entries do not come in order."""


class Growth:
    """Remembers how much of a session was taken."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._taken: dict[str, int] = {}
        self._names = len(session.context.names)

    def take(self) -> Delta:
        """What is new since the last time."""
        out: Delta = {}
        for name, value in vars(self._session).items():
            if name in _DERIVED:
                continue
            if isinstance(value, Frames):
                for part in Frames.__slots__:
                    self._add(out, f"{name}.{part}", getattr(value, part))
            else:
                self._add(out, name, value)
        names = self._session.context.names.all()
        out["names"] = _tail(names, len(names) - self._names)
        self._names = len(names)
        return out

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
    begun = len(session)
    for topic_id, topic in delta["names"]:
        session.context.names.learn(topic_id, topic)
    for name, new in delta.items():
        if name == "names":
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
    index = session._index
    for at in range(begun, len(session)):
        number = session.numbers[at]
        while len(index) <= number:
            index.append(NONE)
        index[number] = at
