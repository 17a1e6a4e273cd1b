"""State that outlives a process: each class names its fields, dumps and loads them.

`kafkascope spark --follow` ends a process after each batch while connections are still open. A dump
consists of plain values, values of the models (`Frame`, `Piece`, ...) and `Connection`s;
`analyzer.pipeline.state` writes it as JSON.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Final, Self, TypeAlias

Dump: TypeAlias = dict[str, Any]
"""Values by the names of fields."""
TRANSIENT: Final = {"transient": True}
"""Metadata of a dataclass's field that is no part of the state."""


class Resumable:
    """Base of classes whose state goes to another process. Arguments of `__init__` (a connection, a
    context) are no part of it, unless they are named in `STATE`."""

    __slots__ = ()

    STATE: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that make up the state: values, or `Resumable`s that `__init__` makes. Of
    a dataclass that names none, all but the `TRANSIENT` ones. A subclass with other parts adds them
    in `dump` and `load`."""

    def dump(self) -> Dump:
        """Return the state. It shares lists with this object: write it before anything changes."""
        kind: Any = type(self)
        values = ((name, getattr(self, name)) for name in _names(kind))
        return {
            name: value.dump() if isinstance(value, Resumable) else value for name, value in values
        }

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave; returns the object itself."""
        kind: Any = type(self)
        for name in _names(kind):
            part = getattr(self, name)
            if isinstance(part, Resumable):
                part.load(state[name])
            else:
                setattr(self, name, state[name])
        return self


@cache
def _names(kind: Any) -> tuple[str, ...]:
    if kind.STATE or not is_dataclass(kind):
        named: tuple[str, ...] = kind.STATE
        return named
    return tuple(each.name for each in fields(kind) if each.metadata != TRANSIENT)
