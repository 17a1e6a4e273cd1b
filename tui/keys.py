"""The type of a key, the keys of every board, and tables of keys for people. The other keys are
declared by the controllers (`controllers.table` puts them together) and by the boards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from textual.binding import Binding, BindingType


class Hint(NamedTuple):
    """A key in the footer of a pane."""

    pane: str
    """`list`, `detail`, `hex`, of a board `table` or `tab`; `filter`, `prompt`."""
    rank: int
    """Its place in the order of use; the first ones are shown where the terminal is narrow."""
    text: str
    """What it does there, in a word or two; `{enter}`: where Enter leads on that board."""


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
    hints: tuple[Hint, ...] = ()

    @property
    def bound(self) -> str:
        """The action for Textual, of a key that a controller declares."""
        return self.action if self.action.startswith("app.") else f"run('{self.id}')"


BOARD_KEYS: Final = (
    Key(
        "board.open",
        "enter",
        "Enter",
        "open_line",
        "Open the line: its exchanges, or what is nearest to it",
        (Hint("table", 1, "{enter}"), Hint("tab", 1, "exchanges")),
    ),
    Key(
        "board.tab",
        "R",
        "R",
        "tab(1)",
        "Next tab of the lower pane",
        (Hint("table", 4, "next tab"), Hint("tab", 3, "next tab")),
    ),
    Key("board.sort", "o", "o", "sort", "Sort by a column", (Hint("table", 7, "sort"),)),
    Key("board.reverse", "v", "v", "reverse", "Reverse the order"),
    Key(
        "board.limit",
        "L",
        "L",
        "limit",
        "Apply the filter to this screen, or remove it",
        (Hint("table", 6, "apply filter"),),
    ),
    Key(
        "board.prepare",
        "a",
        "a",
        "prepare",
        "Put the filter of the line into the filter box",
        (Hint("tab", 4, "filter by line"), Hint("table", 8, "filter by line")),
    ),
    Key("board.copy", "y", "y", "copy_line", "Copy the line", (Hint("tab", 6, "copy"),)),
    Key(
        "board.command",
        "Y",
        "Y",
        "copy_command",
        "Copy the command that prints this table",
        (Hint("table", 9, "copy command"),),
    ),
)
MOVES: Final = (
    ("arrows j k", "Move by one line"),
    ("PgUp PgDn space", "Move by one page"),
    ("g G Home End", "Go to the first line, the last line"),
    ("left right h l", "Collapse or expand a node; move by one byte"),
    ("z Z", "Collapse all nodes, expand all nodes"),
)
BOX_KEYS: Final = (
    Key("", "", "Tab", "", "Complete the word", (Hint("filter", 1, "complete"),)),
    Key("", "", "Down", "", "Choose a completion", (Hint("filter", 2, "choose"),)),
    Key(
        "",
        "",
        "Enter",
        "",
        "Apply the filter",
        (Hint("filter", 3, "apply"), Hint("prompt", 1, "confirm")),
    ),
    Key(
        "",
        "",
        "Esc",
        "",
        "Leave the box",
        (Hint("filter", 4, "cancel"), Hint("prompt", 2, "cancel")),
    ),
)
"""Keys of the boxes in which all others type; Textual's inputs and the controllers handle them."""
HELP_KEY: Final = "? help"
"""Always in the footer, with the key that leads back."""


def footer(keys: Iterable[Key], pane: str, width: int, *, enter: str = "", always: str = "") -> str:
    """Return the keys of a pane in the order of use, as many as fit before those that are `always`
    there."""
    hints = sorted(
        (hint.rank, f"{key.shown} {text}   ")
        for key in keys
        for hint in key.hints
        if hint.pane == pane and (text := hint.text.format(enter=enter))
    )
    text = " "
    for _, hint in hints:
        if len(text) + len(hint) + len(always) <= width:
            text += hint
    return f"{text}{always}".rstrip()


ONLY_LIST: Final = ("list.", "detail.", "filter.from", "copy.", "pane.open")
"""How ids of keys begin that help does not name where a board is shown."""


def bindings(keys: Iterable[Key]) -> list[BindingType]:
    """Return the bindings of keys that a widget declares for its own actions."""
    return [Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in keys]


def of_list(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """Return (keys for people, what they do) of the list of exchanges."""
    found = [(key.shown, key.help) for key in keys]
    return [*found[:5], *MOVES, *found[5:]]


def of_list_alone(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """Return (keys for people, what they do) of the keys that no board has."""
    return [(key.shown, key.help) for key in keys if key.id.startswith(ONLY_LIST)]


def of_all_screens(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """Return (keys for people, what they do) of the keys that work on every screen."""
    found = [(key.shown, key.help) for key in keys if not key.id.startswith(ONLY_LIST)]
    return [*MOVES, *found]
