"""Print the table of docs/tls.md, between its marks, from what `kafkascope tls-keys` prints."""

from __future__ import annotations

from pathlib import Path

from kafkascope.analyzer.commands.tls_keys import METHODS

TARGET = Path(__file__).parent / "tls.md"
BEGIN, END = "<!-- clients: printed by docs/print_tls.py -->\n", "<!-- end of clients -->\n"


def table() -> str:
    """A kind of client a line, and what to type below."""
    lines = ["| `tls-keys` | client | works | does not work | tested |", "|---|---|---|---|---|"]
    for method in METHODS:
        cells = (method.name, method.clients, method.works, method.fails, method.tested)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "What to type, or to write into the program:", ""]
    for method in METHODS:
        lines += [f"    # {method.name}", *(f"    {line}" for line in method.steps), ""]
    return "\n".join(lines)


def document() -> str:
    """The document with today's table."""
    head, _, rest = TARGET.read_text().partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    TARGET.write_text(document())
