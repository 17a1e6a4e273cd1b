"""State that outlives a process: each class names its fields, dumps and loads them.

`kafkascope spark --follow` ends a process after each batch while connections are still open. A dump
consists of plain values, values of the models (`Frame`, `Piece`, ...) and `Connection`s;
`analyzer.pipeline.state` writes it as JSON.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias

Dump: TypeAlias = dict[str, Any]
"""Values by the names of fields."""


class Resumable:
    """Base of classes whose state goes to another process. Arguments of `__init__` (a connection, a
    context) are no part of it, unless they are named in `STATE`."""

    __slots__ = ()

    STATE: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that make up the state: values, or `Resumable`s that `__init__` makes.
    A subclass with other parts adds them in `dump` and `load`."""

    def dump(self) -> Dump:
        """Return the state. It shares lists with this object: write it before anything changes."""
        values = ((name, getattr(self, name)) for name in self.STATE)
        return {
            name: value.dump() if isinstance(value, Resumable) else value for name, value in values
        }

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave; returns the object itself."""
        for name in self.STATE:
            part = getattr(self, name)
            if isinstance(part, Resumable):
                part.load(state[name])
            else:
                setattr(self, name, state[name])
        return self
