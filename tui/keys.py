"""The type of a key, and tables of keys for people. Keys are declared by the controllers
(`controllers.table` puts them together) and by the boards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple


class Key(NamedTuple):
    """An action by its id."""

    id: str
    keys: str
    """As Textual names them, separated by commas."""
    shown: str
    """For people."""
    action: str
    """The method that is called, with its arguments: `next_mark(-1)`. Of the board or controller
    that declares the key; after `app.`, an action of Textual's."""
    help: str

    @property
    def bound(self) -> str:
        """The action for Textual, of a key that a controller declares."""
        return self.action if self.action.startswith("app.") else f"run('{self.id}')"


MOVES: Final = (
    ("arrows j k", "move"),
    ("PgUp PgDn space", "a page"),
    ("g G Home End", "first, last"),
    ("left right h l", "in a tree close, open; in bytes one byte"),
    ("z Z", "in a tree close all, open all"),
)
ONLY_LIST: Final = ("list.", "detail.", "filter.from", "copy.", "pane.open")
"""How ids of keys begin that help does not name where a board is shown."""


def of_list(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """(keys for people, what they do) of the list of exchanges."""
    found = [(key.shown, key.help) for key in keys]
    return [*found[:5], *MOVES, *found[5:]]


def of_all_screens(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """The same of the keys that work on every screen."""
    found = [(key.shown, key.help) for key in keys if not key.id.startswith(ONLY_LIST)]
    return [*MOVES, *found]
