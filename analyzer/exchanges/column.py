"""What a column of a row is: its kind, its meaning, and how each output spells it.

The class `Row` declares its columns with these nouns, and everything that has to know all columns
asks `columns_of`: exchange/1, the table of exchanges, sessions, filters, documents. Imports nothing
of ours.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, NamedTuple

Part = Literal["head", "body"]
"""What tells a column: headers and times, or bodies, which are read later."""

NONE: Final = -1
"""In a stored column of numbers: there is none."""


class Kind(NamedTuple):
    """The values of a column. Expressions have `{}` in the place of the value."""

    arrow: str
    """Type in tables, as `pipeline.tables.schemas` names it."""
    filter: str
    """Type in the filter language."""
    many: bool = False
    """A tuple of values in the order of the wire, each once."""
    json: str = "{}"
    """Expression of the JSON value."""
    table: str = "{}"
    """Expression of the value in tables."""
    load: str = "{}"
    """Expression of the value of what tables have."""
    pack: str = "{}"
    """Expression of what a session stores."""
    empty: Any = None
    """What stands in rows of which nothing is known."""

    @property
    def numbered(self) -> bool:
        """Whether a session stores the number itself, not the place of the value in a list."""
        return not self.many and self.arrow.startswith("int")


class Asked(NamedTuple):
    """The field of the filter language that asks for a column."""

    name: str
    example: str
    aliases: tuple[str, ...] = ()
    """Wireshark's names among them."""
    doc: str = ""
    """Empty: the meaning of the column."""
    truth: bool = False
    """The field alone asks whether it is more than nothing, not whether it is there."""
    cost: Literal["", "i", "s"] = ""
    """Empty: by what tells the column."""


class RowColumn(NamedTuple):
    """A column of `Row`; stands in the annotation of its attribute."""

    kind: Kind
    text: str
    """What it means, in a few words."""
    asked: Asked | None = None
    told_by: Part | None = None
    """None: sessions do not store it."""
    absent: int = NONE
    """What a stored column of numbers has where there is none."""
    json: dict[str, str] | None = None
    """Names in exchange/1 and their expressions; None: its own name, as the kind says."""
    table: str | None = ""
    """Name in tables; empty: its own; None: it is in none."""


class Named(NamedTuple):
    """A column and its attribute."""

    name: str
    column: RowColumn

    @property
    def json(self) -> dict[str, str]:
        """Names in exchange/1, with expressions of a row."""
        found = self.column.json
        found = {self.name: self.column.kind.json} if found is None else found
        return {name: text.format(*[f"row.{self.name}"] * 3) for name, text in found.items()}

    @property
    def table(self) -> dict[str, str]:
        """Its name in tables, with the expression of a row; empty where it is in none."""
        name = self.column.table
        if name is None:
            return {}
        return {name or self.name: self.column.kind.table.format(f"row.{self.name}")}


@cache
def columns_of(declared: type) -> tuple[Named, ...]:
    """The columns that a class declares, in order."""
    return tuple(
        Named(name, each)
        for name, hint in declared.__annotations__.items()
        for each in getattr(hint, "__metadata__", ())
        if isinstance(each, RowColumn)
    )


INT: Final = Kind("int64", "int")
INT32: Final = Kind("int32", "int")
SIZE: Final = Kind("int64", "size")
DURATION: Final = Kind("int64", "duration")
"""Nanoseconds."""
TIME: Final = Kind("int64", "time")
"""Nanoseconds since 1970, UTC."""
TEXT: Final = Kind("string", "string", empty="")
FLAG: Final = Kind("bool", "bool", empty=False)
TEXTS: Final = Kind("strings", "string", many=True, load="tuple({})", empty=())
INTS: Final = Kind("int64s", "int", many=True, load="tuple({})", empty=())
INTS32: Final = Kind("int32s", "int", many=True, load="tuple({})", empty=())
_PRINTED: Final = "[str(each) for each in {}]"
UUIDS: Final = Kind(
    "strings",
    "uuid",
    many=True,
    json=_PRINTED,
    table=_PRINTED,
    load="tuple([Uuid.parse(each) for each in {}])",
    empty=(),
)
