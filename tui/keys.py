"""The type of a key, the keys of every board, the footers, and tables of keys for people. The other
keys are declared in `controllers.table` and by the boards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """A key and its action, which the settings know by its id."""

    id: str
    keys: str
    """Names of Textual's, separated by commas."""
    action: str
    """The method that is called, with its arguments: `marks.next_mark(-1)` of a controller,
    `sort` of a board; after `app.`, an action of Textual's."""
    help: str
    label: str = ""
    """What help and documentation call the keys, if not by Textual's names."""

    @property
    def shown(self) -> str:
        """What help and documentation call the keys."""
        return self.label or self.keys

    @property
    def bound(self) -> str:
        """The action for Textual, of a key of a controller."""
        return self.action if self.action.startswith("app.") else f"run('{self.id}')"


BOARD_KEYS: Final = (
    Key(
        "board.open",
        "enter",
        "open_line",
        "Open the line: its exchanges, or what is nearest to it",
        "Enter",
    ),
    Key("board.tab", "R", "tab(1)", "Next tab of the lower pane"),
    Key("board.sort", "o", "sort", "Sort by a column"),
    Key("board.reverse", "v", "reverse", "Reverse the order"),
    Key("board.limit", "L", "limit", "Apply the filter to this screen, or remove it"),
    Key("board.prepare", "a", "prepare", "Put the filter of the line into the filter box"),
    Key("board.copy", "y", "copy_line", "Copy the line"),
    Key("board.command", "Y", "copy_command", "Copy the command that prints this table"),
)
MOVES: Final = (
    ("arrows j k", "Move by one line"),
    ("PgUp PgDn space", "Move by one page"),
    ("g G Home End", "Go to the first line, the last line"),
    ("left right h l", "Collapse or expand a node; move by one byte"),
    ("z Z", "Collapse all nodes, expand all nodes"),
)
HELP_KEY: Final = "? help"
"""Always in the footer, with the key that leads back."""
FOOTER: Final[dict[str, dict[str, str]]] = {
    "list": {
        "pane.open": "details",
        "filter.focus": "filter",
        "list.error_next": "next error",
        "list.follow": "follow",
        "filter.from_value": "filter by value",
        "list.mark": "mark",
        "list.sort": "sort",
        "list.find": "find",
        "list.time": "time format",
        "list.export": "export",
        "app.palette": "commands",
    },
    "detail": {
        "detail.side": "request/response",
        "filter.from_value": "filter by value",
        "detail.tab": "next tab",
        "pane.next": "next pane",
        "detail.space": "other bytes",
        "copy.value": "copy",
        "pane.zoom": "maximize",
    },
    "hex": {
        "pane.next": "next pane",
        "copy.value": "copy",
        "detail.side": "request/response",
        "detail.space": "other bytes",
    },
    "table": {
        "board.open": "{enter}",
        "live.hold": "hold",
        "live.add_rule": "add rule",
        "pane.next": "details",
        "live.release": "release",
        "live.drop": "drop",
        "clients.release": "release",
        "connections.by": "by client",
        "findings.turn": "consequences",
        "groups.zoom": "zoom",
        "latency.by": "group by",
        "latency.waits": "waits",
        "board.tab": "next tab",
        "filter.focus": "filter",
        "board.limit": "apply filter",
        "board.sort": "sort",
        "board.prepare": "filter by line",
        "board.command": "copy command",
    },
    "tab": {
        "board.open": "exchanges",
        "live.add_rule": "add rule",
        "live.drop": "remove rule",
        "pane.next": "table",
        "groups.zoom": "zoom",
        "board.tab": "next tab",
        "board.prepare": "filter by line",
        "pane.zoom": "maximize",
        "board.copy": "copy",
    },
}
"""Pane -> keys by their ids, in the order of use, with what they do there in a word or two; the
first ones are shown where the terminal is narrow. `{enter}`: where Enter leads on that board."""
BOXES: Final[dict[str, dict[str, str]]] = {
    "filter": {"Tab": "complete", "Down": "choose", "Enter": "apply", "Esc": "cancel"},
    "prompt": {"Enter": "confirm", "Esc": "cancel"},
}
"""Boxes in which all other keys type -> keys that Textual's inputs and the controllers handle."""
ONLY_LIST: Final = ("list.", "detail.", "filter.from", "copy.", "pane.open")
"""How ids of keys begin that help does not name where a board is shown."""


def footer(keys: Iterable[Key], pane: str, width: int, *, enter: str = "", always: str = "") -> str:
    """Return the keys of a pane in the order of use, as many as fit before those that are `always`
    there."""
    shown = {key.id: key.shown for key in keys} | {name: name for name in BOXES.get(pane, ())}
    text = " "
    for id_, does in (FOOTER | BOXES)[pane].items():
        does = does.format(enter=enter)
        hint = f"{shown.get(id_)} {does}   "
        if id_ in shown and does and len(text) + len(hint) + len(always) <= width:
            text += hint
    return f"{text}{always}".rstrip()


def bindings(keys: Iterable[Key]) -> list[BindingType]:
    """Return the bindings of keys that a widget declares for its own actions."""
    return [Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in keys]


Rows = list[tuple[str, str]]
"""Keys as people read them, and what they do."""


def of_list(keys: Iterable[Key]) -> Rows:
    """Return the keys of the list of exchanges."""
    rows = [(key.shown, key.help) for key in keys]
    return [*rows[:5], *MOVES, *rows[5:]]


def of_list_only(keys: Iterable[Key]) -> Rows:
    """Return the keys that no board has."""
    return [(key.shown, key.help) for key in keys if key.id.startswith(ONLY_LIST)]


def of_all_screens(keys: Iterable[Key]) -> Rows:
    """Return the keys that work on every screen."""
    rows = [(key.shown, key.help) for key in keys if not key.id.startswith(ONLY_LIST)]
    return [*MOVES, *rows]
