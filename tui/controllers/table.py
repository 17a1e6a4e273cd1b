"""The keys that controllers handle, in the order in which help and docs/keys.md list them."""

from __future__ import annotations

from typing import Final

from kafkascope.tui.boards import board_of
from kafkascope.tui.keys import BOARD_KEYS, Key
from kafkascope.tui.screens import SCREENS, TABS

KEYS: Final = (
    Key(
        "filter.focus", "slash", "filter.focus", "Filter exchanges; Enter applies, Esc cancels", "/"
    ),
    Key("list.find", "ctrl+f", "search.find", "Find; again: in fields and records, in bytes"),
    Key("list.find_next", "n", "search.find_next(1)", "Next match"),
    Key("list.find_previous", "N", "search.find_next(-1)", "Previous match"),
    Key("list.goto", "ctrl+g", "search.ask_where", "Go to a number or a time"),
    Key(
        "app.palette",
        "colon,ctrl+p",
        "app.command_palette",
        "Command palette; a number goes to that exchange",
        ": ctrl+p",
    ),
    Key("pane.open", "enter", "panes.open", "Open the details of the exchange", "Enter"),
    Key("pane.next", "tab", "panes.cycle(1)", "Next pane"),
    Key("pane.previous", "shift+tab", "panes.cycle(-1)", "Previous pane"),
    Key("pane.zoom", "backslash", "panes.zoom", "Maximize this pane, or restore all", "\\"),
    Key(
        "pane.layout", "vertical_line", "panes.layout", "Panes below, beside, or without bytes", "|"
    ),
    Key("pane.larger", "plus", "panes.resize(1)", "Enlarge the list", "+"),
    Key("pane.smaller", "minus", "panes.resize(-1)", "Shrink the list", "-"),
    Key("pane.wider", "less_than_sign", "panes.widen(1)", "Widen the bytes pane", "<"),
    Key("pane.narrower", "greater_than_sign", "panes.widen(-1)", "Narrow the bytes pane", ">"),
    Key("pane.reset", "equals_sign", "panes.resize(0)", "Reset the sizes of the panes", "="),
    Key("detail.side", "r", "inspector.side", "Switch between request and response"),
    Key(
        "detail.tab",
        "R",
        "inspector.next_tab",
        "Next tab: request, response, records, context, packets",
    ),
    Key(
        "detail.space",
        "b",
        "inspector.next_space",
        "Switch between bytes on the wire and decompressed bytes",
    ),
    Key(
        "list.connection_next",
        "right_square_bracket",
        "search.connection(1)",
        "Next exchange on this connection",
        "]",
    ),
    Key(
        "list.connection_previous",
        "left_square_bracket",
        "search.connection(-1)",
        "Previous exchange on this connection",
        "[",
    ),
    Key("list.error_next", "e", "search.error(1)", "Next error or missing response"),
    Key("list.error_previous", "E", "search.error(-1)", "Previous error or missing response"),
    Key("list.mark", "m", "marks.mark", "Toggle the mark"),
    Key("list.marked", "M", "marks.only_marked", "Show only marked exchanges, or all"),
    Key("list.mark_next", "apostrophe", "marks.next_mark(1)", "Next mark", "'"),
    Key("list.mark_previous", "quotation_mark", "marks.next_mark(-1)", "Previous mark", '"'),
    Key("list.ignore", "i", "marks.ignore", "Toggle ignore"),
    Key("list.ignored", "I", "marks.only_ignored", "Show only ignored exchanges, or all others"),
    Key("list.comment", "semicolon", "marks.comment", "Comment on the exchange", ";"),
    Key("filter.from_value", "a", "values.filter", "Filter by the value under the cursor"),
    Key("list.column", "A", "values.column", "Toggle a column"),
    Key(
        "list.follow",
        "f",
        "values.follow",
        "Follow a connection, client, group, partition, producer",
    ),
    Key("list.tail", "F", "order.tail", "Follow the newest exchange, or stop"),
    Key("list.sort", "o", "order.sort", "Sort by a column"),
    Key("list.reverse", "v", "order.reverse", "Reverse the order"),
    Key("list.time", "t", "order.time", "Next time format"),
    Key("list.reference", "T", "order.reference", "Count times from this exchange"),
    Key("copy.value", "y", "sharing.copy", "Copy the line or value (OSC 52)"),
    Key("copy.menu", "c", "sharing.menu", "Copy as filter, row, JSON, hex, Python bytes"),
    Key("list.export", "x", "sharing.export", "Export as capture, JSON Lines, CSV, fixtures"),
    Key(
        "list.save",
        "w",
        "sharing.ask_where('shown', 'pcapng')",
        "Save the shown exchanges as a capture",
    ),
    Key("list.fixture", "X", "sharing.fixture", "Save marked exchanges as test fixtures"),
    Key("list.diff", "D", "marks.compare", "Compare two marked exchanges"),
    Key("app.decode_as", "d", "inputs.ask_ports", "Decode more ports as Kafka"),
    *(
        Key(
            f"screen.{number}",
            str(number),
            f"navigation.show_screen({number})",
            f"Show {tab.about}",
        )
        for number, tab in TABS.items()
    ),
    Key("app.stop", "ctrl+c", "inputs.stop", "Stop reading, searching or exporting"),
    Key("app.open", "ctrl+o", "inputs.ask_file", "Open another file or a recent one"),
    Key("app.reload", "ctrl+r", "inputs.reopen('')", "Read the input again"),
    Key(
        "app.help",
        "question_mark",
        "help.keys",
        "Keys of this screen; type to search all screens",
        "?",
    ),
    Key("app.about", "f1", "help.about", "Explain the focused pane", "F1"),
    Key("app.back", "q", "app.leave", "Go back; at the root quit"),
    Key("app.quit", "Q,ctrl+q", "app.quit", "Quit", "Q"),
)
FIRST: Final = frozenset({"app.stop", "pane.next", "pane.previous", "list.find", "filter.focus"})
"""Keys that are handled before those of the widget with the focus and before Textual's own, so that
keys which follow at once go where the focus is by then."""
BELOW: Final = FIRST - {"app.stop"}
"""Those of them that do nothing below a dialog."""
SILENT: Final = frozenset({"app.quit", "pane.open", "app.stop"})
"""Keys that need no command in the palette, or have one of Textual's."""
LIST_ONLY: Final = frozenset(
    key.id
    for key in KEYS
    if key.id.startswith(("list.", "detail.", "copy.", "pane.open", "pane.layout"))
) - {"list.find_next", "list.find_previous", "list.time"}
"""Keys about the list of exchanges: they do nothing while another screen is there."""


def all_ids() -> list[str]:
    """Return the ids of all keys, for the config file."""
    boards = [key for number in SCREENS for key in board_of(number).keys]
    return [key.id for key in (*KEYS, *BOARD_KEYS, *boards)]
