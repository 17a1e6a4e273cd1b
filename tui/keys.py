"""The type of a key, the keys of every board, and tables of keys for people. The other keys are
declared by the controllers (`controllers.table` puts them together) and by the boards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """A key and its action, which the settings know by its id."""

    id: str
    keys: str
    """Names of Textual's, separated by commas."""
    shown: str
    """What help and documentation call the keys."""
    action: str
    """The method that is called, with its arguments: `next_mark(-1)`. Of the board or controller
    that declares the key; after `app.`, an action of Textual's."""
    help: str

    @property
    def bound(self) -> str:
        """The action for Textual, of a key that a controller declares."""
        return self.action if self.action.startswith("app.") else f"run('{self.id}')"


BOARD_KEYS: Final = (
    Key("board.open", "enter", "Enter", "open_line", "the exchanges behind the line"),
    Key("board.tab", "R", "R", "tab(1)", "next tab of the lower part"),
    Key("board.sort", "o", "o", "sort", "order by a column; a click on a title does so, too"),
    Key("board.reverse", "v", "v", "reverse", "the other way round"),
    Key("board.limit", "L", "L", "limit", "only what the filter shows, or everything"),
    Key("board.prepare", "a", "a", "prepare", "put the line's filter into the filter box"),
    Key("board.copy", "y", "y", "copy_line", "copy the line"),
    Key("board.command", "Y", "Y", "copy_command", "copy the command that prints this table"),
)
MOVES: Final = (
    ("arrows j k", "move"),
    ("PgUp PgDn space", "a page"),
    ("g G Home End", "first, last"),
    ("left right h l", "in a tree close, open; in bytes one byte"),
    ("z Z", "in a tree close all, open all"),
)
ONLY_LIST: Final = ("list.", "detail.", "filter.from", "copy.", "pane.open")
"""How ids of keys begin that help does not name where a board is shown."""


def bindings(keys: Iterable[Key]) -> list[BindingType]:
    """Return the bindings of keys that a widget declares for its own actions."""
    return [Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in keys]


def of_list(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """Return (keys for people, what they do) of the list of exchanges."""
    found = [(key.shown, key.help) for key in keys]
    return [*found[:5], *MOVES, *found[5:]]


def of_all_screens(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """Return (keys for people, what they do) of the keys that work on every screen."""
    found = [(key.shown, key.help) for key in keys if not key.id.startswith(ONLY_LIST)]
    return [*MOVES, *found]
