"""Writes docs/keys.md from the tables that bind the keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from kafkascope.tui.controllers.table import KEYS
from kafkascope.tui.keys import BOARD_KEYS, MOVES, Key
from kafkascope.tui.screens import SCREENS, board_class

TARGET: Final = Path(__file__).parent / "keys.md"
WIDTH: Final = 130
HEAD: Final = """# Keys of the terminal UI
"""
INTRODUCTION: Final = """
`kafkascope open INPUT`, or `kafkascope INPUT` on a terminal; `kafkascope open --attach` and
`kafkascope proxy --open` for a running proxy. `?` lists the keys of the screen that is shown, F1
says what the pane with the focus is good for, `:` or ctrl+p finds everything by name. `i` takes an
exchange out of the list, and out of screens that are limited to it (`L`); `name-topic` in the
palette gives a topic id the name that the capture does not tell. Both are kept beside the capture,
with marks and comments. Nothing needs a mouse; with one, a click moves, a double click opens, a
click on a title orders, the wheel scrolls, and the lines between panes are dragged. In the list
`*` is a mark, `◆` says that a finding of severity error is about the row, `◇` a warning. The list
holds as many exchanges of a file as take some 400 MB, a million and a half or more, and says so;
of live traffic the last million.
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

`$XDG_CONFIG_HOME/kafkascope/colours.toml`: a filter and a style a line, both in quotes. The first
filter that wants a row colours it.

    "@slow" = "bold mark"
    'topic contains ".dlq"' = "error"
    "client == legacy-job" = "black on #e69f00"
    "finding" = "underline"
"""
PAINT: Final = """
Filters are [those of everywhere](filter.md), with saved ones and those that read messages: only
rows that are drawn are held against them. A style is made of `bold`, `italic`, `underline`,
`reverse`, `strike`, `dim`, of colours (`red`, `#e69f00`, behind `on` for the ground) and of the
names `error`, `note`, `label`, `mark`, `good`, `wait`, `bar`, whose colours can be read on light
and dark grounds and told apart by everybody. Letters and signs in front of results stay; with
`NO_COLOR` only what is no colour is left of a style, and on the cursor's line a style with a
ground has no colours. What is wrong in the file is said in one line, and the other rules hold. In
the palette (`:`) "read the colour rules again" takes over a change.
"""
BROWSER: Final = """
`kafkascope open INPUT --web` (extra `web`) prints an address for a browser on this machine, until
ctrl+c. Each tab is a UI with a reader of its own, with the same keys, mouse and clipboard; it ends
when the tab is closed. The address ends with a token that no other user of the machine knows, in
place of a login; pages of other sites are refused, and nothing is loaded from the network.
Exports and marks are written where kafkascope runs. A file that grows is followed; stdin, `-i` and
`--attach` are for terminals. On another machine: `--web --web-port 8000` there, `ssh -L
8000:127.0.0.1:8000 MACHINE` here, and the printed address in the browser here. ctrl+w, ctrl+t and
ctrl+n stay the browser's; no key needs them.
"""
LAST: Final = """
What cannot be followed (an unknown id, theme or setting) is said when the program starts.
`NO_COLOR` turns colours off; nothing is told by colour alone. ctrl+o lists the files that were
opened, the last one first. Filters with names are in filters.toml beside the settings:
`@slow = latency > 1s` in the filter box keeps one, `@slow` stands for it from then on, alone or
within others, in the box and in `-Y`, and `@slow =` forgets it ([more](filter.md#names)).
"""


def markdown() -> str:
    """The page."""
    out = [HEAD, fill(INTRODUCTION.strip(), WIDTH), "", "## Everywhere", "", *_table(KEYS)]
    out += ["", "## Screens 2 to 9", "", *_table(BOARD_KEYS)]
    for number in SCREENS:
        kind = board_class(number)
        out += ["", f"### {number} {kind.TITLE}", "", fill(kind.HELP, WIDTH)]
        out += ["", f"As text: `{kind.COMMAND}`".replace("{}", "INPUT")]
        if kind.KEYS:
            out += ["", *_table(kind.KEYS)]
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
    lines = ["| key | does | id |", "|---|---|---|"]
    if keys is KEYS:
        lines += [f"| {shown} | {text} | |" for shown, text in MOVES]
    return lines + [f"| `{key.shown}` | {key.help} | `{key.id}` |" for key in keys]


if __name__ == "__main__":
    TARGET.write_text(markdown())
