"""Writes docs/keys.md from the tables that bind the keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from textwrap import fill as filled
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from kafkascope.tui.boards import board_of
from kafkascope.tui.controllers.table import KEYS
from kafkascope.tui.keys import BOARD_KEYS, MOVES, Key
from kafkascope.tui.screens import SCREENS, TABS

TARGET: Final = Path(__file__).parent / "keys.md"
WIDTH: Final = 130
# No line ends inside an option such as --web-port.
fill = partial(filled, break_on_hyphens=False)
HEAD: Final = """# Keys of the terminal UI
"""
INTRODUCTION: Final = """
`kafkascope open INPUT`, or `kafkascope INPUT` on a terminal; `kafkascope open --attach` and
`kafkascope proxy --open` for a running proxy. `?` lists the keys of the current screen and searches
those of all screens, F1 explains the focused pane, `:` or ctrl+p finds every command by name. The
footer shows the most useful keys of the focused pane. [screens.md](screens.md) has a picture of
each screen.
"""
VIEWS: Final = """
The bar below the header has a tab for each screen; Live and ZooKeeper appear when there is
something to show. Enter goes in: from a finding to its exchanges, from a client to its connections,
from a group to its timeline, from an exchange to its details. Esc or `q` goes back and restores
filter, order, row, pane and scroll position. Every way to another view is on this one stack: Enter,
tabs, filters, jumps of the palette. Selecting a tab that is on the stack with the same filter goes
back to it. At the root `q` quits and Esc removes the filter; `Q` quits from everywhere. Esc in the
filter box cancels what was typed.

The filter always applies to the exchanges. The other screens show everything until `L` applies the
filter to them; the text beside the filter says whether it is applied.
"""
MARKS: Final = """
`i` removes an exchange from the list, and from screens to which the filter is applied. "Name a
topic id" in the palette names an id whose name is not in the capture. Both are saved beside the
capture, with marks and comments. A mouse is optional: a click moves, a double click opens, a click
on a title sorts, the wheel scrolls, and the lines between panes can be dragged. In the list `*` is
a mark, `◆` a row that belongs to a finding of severity error, `◇` of severity warning. The list
holds the exchanges of a file up to about 400 MB of memory, 1.5 million or more, and says so when it
is full; of live traffic the last million.
"""
SETTINGS: Final = """## Settings

`$XDG_CONFIG_HOME/kafkascope/config.toml`, usually `~/.config/kafkascope/config.toml`:

    theme = "kafkascope-light"     # or kafkascope, or one of Textual's: nord, ansi-dark, ...
    times = "a"                    # as -t
    plain = false                  # ASCII only

    [keys]
    "list.mark" = "m,ctrl+k"       # by the ids above; several keys with commas
    "board.sort" = "s"
"""
COLOURS: Final = """## Colours of rows

`$XDG_CONFIG_HOME/kafkascope/colours.toml`: one filter and style a line, both in quotes. The first
matching filter colours the row.

    "@slow" = "bold mark"
    'topic contains ".dlq"' = "error"
    "client == legacy-job" = "black on #e69f00"
    "finding" = "underline"
"""
PAINT: Final = """
Filters are [display filters](filter.md), including saved filters and those that decode messages:
only visible rows are matched. A style consists of `bold`, `italic`, `underline`, `reverse`,
`strike`, `dim`, colours (`red`, `#e69f00`; after `on` for the background) and the names `error`,
`note`, `label`, `mark`, `good`, `wait`, `bar`, whose colours are readable on light and dark
backgrounds and safe for colour-blind readers. Letters and signs in front of results stay; with
`NO_COLOR` only the attributes remain, and on the row under the cursor a style with a background
loses its colours. Errors in the file are reported in one line; the other rules apply. "Reload the
colour rules" in the palette (`:`) applies a change.
"""
BROWSER: Final = """
`kafkascope open INPUT --web` (extra `web`) prints a URL for a browser on this machine and serves
until ctrl+c. Each tab is a UI with its own reader and the same keys, mouse and clipboard; it ends
when the tab is closed. The URL ends with a secret token instead of a login; requests from other
sites are refused, and nothing is loaded from the network. Exports and marks are written where
kafkascope runs. A growing file is followed; stdin, `-i` and `--attach` need a terminal. For a
remote machine: `--web --web-port 8000` there, `ssh -L 8000:127.0.0.1:8000 MACHINE` here, and the
printed URL in the browser here. ctrl+w, ctrl+t and ctrl+n belong to the browser; no key needs them.
"""
LAST: Final = """
Invalid settings (an unknown id, theme or name) are reported at start. `NO_COLOR` turns colours off;
no information depends on colour alone. ctrl+o lists recent files. Saved filters are in filters.toml
beside the settings: `@slow = latency > 1s` in the filter box saves one, `@slow` stands for it from
then on, alone or inside others, in the box and in `-Y`, and `@slow =` deletes it
([more](filter.md#saved-filters)).
"""


def markdown() -> str:
    """The page."""
    out = [HEAD, fill(INTRODUCTION.strip(), WIDTH), "", "## Views", ""]
    for part in (*VIEWS.strip().split("\n\n"), MARKS.strip()):
        out += [fill(part, WIDTH), ""]
    out += ["## Everywhere", "", *_table(KEYS)]
    out += ["", "## Screens 2 to 9, and 0", "", *_table(BOARD_KEYS)]
    for number in SCREENS:
        board = board_of(number)
        out += ["", f"### {number} {TABS[number].title}", "", fill(board.help, WIDTH)]
        out += ["", f"As text: `{board.command}`".replace("{}", "INPUT")]
        if board.keys:
            out += ["", *_table(board.keys)]
    return "\n".join(
        [
            *out,
            "",
            "## In a browser",
            "",
            fill(BROWSER.strip(), WIDTH),
            "",
            SETTINGS,
            fill(LAST.strip(), WIDTH),
            "",
            COLOURS,
            fill(PAINT.strip(), WIDTH),
            "",
        ]
    )


def _table(keys: Iterable[Key]) -> list[str]:
    lines = ["| key | action | id |", "|---|---|---|"]
    if keys is KEYS:
        lines += [f"| {shown} | {text} | |" for shown, text in MOVES]
    return lines + [f"| `{key.shown}` | {key.help} | `{key.id}` |" for key in keys]


if __name__ == "__main__":
    TARGET.write_text(markdown())
