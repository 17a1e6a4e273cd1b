"""Columns of a row: their kind, their meaning, and how each output writes them.

The class `Row` declares its columns with these types, and all code that has to know every column
calls `columns_of`: exchange/1, the table of exchanges, sessions, filters, documents. Imports
nothing from this project.
"""

from __future__ import annotations

from dataclasses import field, fields
from functools import cache, partial
from typing import Any, Final, Literal, NamedTuple

Part = Literal["head", "body"]
"""Source of a column: headers and times, or bodies, which are read later."""

# Value for "none" in a stored column of numbers.
NONE: Final = -1


class Kind(NamedTuple):
    """The values of a column. Expressions have `{}` in place of the value."""

    arrow: str
    """Type in tables, as `pipeline.tables.schemas` names it."""
    filter: str
    """Type in the filter language."""
    many: bool = False
    """Whether the value is a tuple, in the order of the wire, without duplicates."""
    json: str = "{}"
    """Expression of the JSON value."""
    table: str = "{}"
    """Expression of the value in tables."""
    empty: Any = None
    """Value in rows where nothing is known."""

    @property
    def numbered(self) -> bool:
        """Whether a session stores the number itself, not the index of the value in a list."""
        return not self.many and self.arrow.startswith("int")


class FilterField(NamedTuple):
    """The field of the filter language for a column."""

    name: str
    example: str
    aliases: tuple[str, ...] = ()
    """Other names, Wireshark's among them."""
    doc: str = ""
    """Empty for the meaning of the column."""
    truth: bool = False
    """Whether the field alone tests for more than zero, not for presence."""
    cost: Literal["", "i", "s"] = ""
    """Empty when it follows from the source of the column."""


class RowColumn(NamedTuple):
    """A column of `Row`."""

    kind: Kind
    text: str
    """Meaning in a few words."""
    asked: FilterField | None = None
    told_by: Part | None = None
    """None when sessions do not store it."""
    absent: int = NONE
    """Value for "none" in a stored column of numbers."""
    json: dict[str, str] | None = None
    """Names in exchange/1 and their expressions; None for the column's own name and the kind's
    expression."""
    table: str | None = ""
    """Name in tables; empty for the column's own name, None when tables lack it."""
    own: bool = False
    """Whether most rows have a value of their own; that of others repeats from row to row."""


class Named(NamedTuple):
    """A column and the name of its attribute."""

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
        """Its name in tables, with the expression of a row; empty where tables lack it."""
        name = self.column.table
        if name is None:
            return {}
        return {name or self.name: self.column.kind.table.format(*[f"row.{self.name}"] * 3)}


def column(kind: Kind, text: str, asked: FilterField | None = None, **more: Any) -> Any:
    """Declare an attribute of `Row` as a column; see `RowColumn`."""
    return field(metadata={"column": RowColumn(kind, text, asked, **more)})


head: Final = partial(column, told_by="head")
body: Final = partial(column, told_by="body")


@cache
def columns_of(declared: type[Any]) -> tuple[Named, ...]:
    """Return the columns that a class declares, in order."""
    return tuple(Named(each.name, each.metadata["column"]) for each in fields(declared))


INT: Final = Kind("int64", "int")
INT32: Final = Kind("int32", "int")
SIZE: Final = Kind("int64", "size")
DURATION: Final = Kind("int64", "duration")
"""Nanoseconds."""
TIME: Final = Kind("int64", "time")
"""Nanoseconds since 1970, UTC."""
TEXT: Final = Kind("string", "string", empty="")
FLAG: Final = Kind("bool", "bool", empty=False)
TEXTS: Final = Kind("strings", "string", many=True, empty=())
INTS: Final = Kind("int64s", "int", many=True, empty=())
INTS32: Final = Kind("int32s", "int", many=True, empty=())
_PRINTED: Final = "[str(each) for each in {}]"
UUIDS: Final = Kind("strings", "uuid", many=True, json=_PRINTED, table=_PRINTED, empty=())
