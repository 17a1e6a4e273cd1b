"""The keys of the program as a table: bindings, the help screen and docs/keys.md come from it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Key(NamedTuple):
    """An action by its id."""

    id: str
    keys: str
    """As Textual names them, separated by commas."""
    shown: str
    """For people."""
    action: str
    help: str


SCREENS: Final = (
    "exchanges",
    "connections",
    "clients: libraries, API versions, what breaks on a release",
    "topics: partitions, writers, readers",
    "groups: timeline, members, delivery",
    "latency: waits apart, histogram, over time",
    "findings: what check says",
    "live: rates; a proxy's rules and held frames",
)
KEYS: Final = (
    Key("filter.focus", "slash", "/", "filter", "filter; Enter applies, Esc leaves and clears"),
    Key("list.find", "ctrl+f", "ctrl+f", "find", "find; again: in fields and records, in bytes"),
    Key("list.find_next", "n", "n", "find_next(1)", "next match"),
    Key("list.find_previous", "N", "N", "find_next(-1)", "match before"),
    Key("list.goto", "ctrl+g", "ctrl+g", "goto", "go to a number or a time"),
    Key(
        "app.palette",
        "colon,ctrl+p",
        ": ctrl+p",
        "command_palette",
        "commands by name; a number goes",
    ),
    Key("pane.open", "enter", "Enter", "open", "open the detail; in a tree fold"),
    Key("pane.next", "tab", "tab", "pane(1)", "next pane"),
    Key("pane.previous", "shift+tab", "shift+tab", "pane(-1)", "pane before"),
    Key("pane.zoom", "backslash", "\\", "zoom", "this pane alone, and back"),
    Key("pane.layout", "vertical_line", "|", "layout", "panes below, beside, without bytes"),
    Key("pane.larger", "plus", "+", "resize(1)", "more room for the list"),
    Key("pane.smaller", "minus", "-", "resize(-1)", "less room for the list"),
    Key("pane.wider", "less_than_sign", "<", "widen(1)", "wider bytes"),
    Key("pane.narrower", "greater_than_sign", ">", "widen(-1)", "narrower bytes"),
    Key("pane.reset", "equals_sign", "=", "resize(0)", "usual sizes"),
    Key("detail.side", "r", "r", "side", "request or response"),
    Key("detail.tab", "R", "R", "tab", "next tab: request, response, records, context, packets"),
    Key("detail.space", "b", "b", "space", "other bytes: on the wire, decompressed"),
    Key("list.connection_next", "right_square_bracket", "]", "connection(1)", "next on connection"),
    Key("list.connection_previous", "left_square_bracket", "[", "connection(-1)", "one before it"),
    Key("list.error_next", "e", "e", "error(1)", "next error or missing answer"),
    Key("list.error_previous", "E", "E", "error(-1)", "error before"),
    Key("list.mark", "m", "m", "mark", "mark, unmark"),
    Key("list.marked", "M", "M", "only_marked", "only what is marked, and back"),
    Key("list.mark_next", "apostrophe", "'", "next_mark(1)", "next mark"),
    Key("list.mark_previous", "quotation_mark", '"', "next_mark(-1)", "mark before"),
    Key("list.ignore", "i", "i", "ignore", "ignore the exchange; among ignored ones: no more"),
    Key("list.ignored", "I", "I", "only_ignored", "only what is ignored, and back"),
    Key("list.comment", "semicolon", ";", "comment", "comment on the exchange"),
    Key("filter.from_value", "a", "a", "from_value", "filter from the value under the cursor"),
    Key("list.column", "A", "A", "column", "a field as a column, and away again"),
    Key("list.follow", "f", "f", "follow", "follow connection, client, group, partition, producer"),
    Key(
        "list.tail",
        "F",
        "F",
        "tail",
        "stay on the newest row, as live lists do, and stop",
    ),
    Key("list.sort", "o", "o", "sort", "order by a column; a click on a title does so, too"),
    Key("list.reverse", "v", "v", "reverse", "the other way round"),
    Key("list.time", "t", "t", "time", "next time format"),
    Key("list.reference", "T", "T", "reference", "times count from this exchange"),
    Key("copy.value", "y", "y", "copy", "copy the line or value (OSC 52)"),
    Key("copy.menu", "c", "c", "copy_menu", "copy as filter, row, JSON, hex, Python bytes"),
    Key("list.export", "x", "x", "export", "export: capture, JSON Lines, CSV, fixtures"),
    Key("list.save", "w", "w", "save", "save what is shown as a capture"),
    Key("list.fixture", "X", "X", "fixture", "what is marked as fixtures for tests"),
    Key("list.diff", "D", "D", "diff", "how two marked exchanges differ"),
    Key("app.decode_as", "d", "d", "decode_as", "ports to decode as Kafka"),
    *(
        Key(f"screen.{number}", str(number), str(number), f"screen({number})", title)
        for number, title in enumerate(SCREENS, 1)
    ),
    Key("app.stop", "ctrl+c", "ctrl+c", "stop", "stop loading; what is there stays"),
    Key("app.open", "ctrl+o", "ctrl+o", "open_file", "open another file, or one of the last"),
    Key("app.reload", "ctrl+r", "ctrl+r", "reload", "read the input again"),
    Key("app.help", "question_mark", "?", "help", "the keys of this screen, searchable"),
    Key("app.about", "f1", "F1", "about", "what the pane with the focus is good for"),
    Key("app.back", "q", "q", "leave", "back; on the first screen quit"),
    Key("app.quit", "Q,ctrl+q", "Q", "quit", "quit"),
)
LIST_ACTIONS: Final = frozenset(
    key.action.partition("(")[0]
    for key in KEYS
    if key.id.startswith(("list.", "detail.", "copy.")) or key.id in ("pane.open", "pane.layout")
) - {"find_next", "time"}
"""Actions about the list of exchanges: nothing happens while another screen is there."""
MOVES: Final = (
    ("arrows j k", "move"),
    ("PgUp PgDn space", "a page"),
    ("g G Home End", "first, last"),
    ("left right h l", "in a tree close, open; in bytes one byte"),
    ("z Z", "in a tree close all, open all"),
)


def rows() -> list[tuple[str, str]]:
    """(keys for people, what they do) of the list of exchanges."""
    found = [(key.shown, key.help) for key in KEYS]
    return [*found[:5], *MOVES, *found[5:]]


ONLY_LIST: Final = ("list.", "detail.", "filter.from", "copy.", "pane.open")


def everywhere() -> list[tuple[str, str]]:
    """The same of what works on all screens."""
    found = [(key.shown, key.help) for key in KEYS if not key.id.startswith(ONLY_LIST)]
    return [*MOVES, *found]


def lines() -> list[str]:
    """The same as text."""
    return [f"{shown:<16} {text}" for shown, text in rows()]
