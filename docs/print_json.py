"""Print the table of exchange/1 in docs/json.md, between its marks, from the columns of rows."""

from __future__ import annotations

from pathlib import Path

from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.rows import Row

TARGET = Path(__file__).parent / "json.md"
BEGIN, END = "<!-- exchange/1: printed by docs/print_json.py -->\n", "<!-- end of exchange/1 -->\n"
FORMS = {
    "errors": '`{"code", "name"}` and, where it has one, `topic`, `partition`, `group`, `message`',
    "undecoded": '`{"side", "reason", "offset", "bytes"}` and, where it has one, `text`, `path`; '
    "`surplus`: bytes after the end of a message that did decode",
    "notes": '`{"severity", "text"}`, perhaps `side`',
    "broker_request_queue_ns": '`{"request_queue_ms", "local_ms", "remote_ms", '
    '"response_queue_ms", "send_ms"}`, null for packets',
    "tls": "whether it was resumed; server name that the client requested (SNI); negotiated "
    "protocol (ALPN); subject of the client's certificate",
}
"""What elements of lists of objects look like, and what more there is than one value."""


def table() -> str:
    """A column a line."""
    lines = ["| name | |", "|---|---|", '| `schema` | `"exchange/1"` |']
    for named in columns_of(Row):
        names = ", ".join(f"`{each}`" for each in named.json)
        if names:
            text = "; ".join(filter(None, (named.column.text, FORMS.get(named.name))))
            lines.append(f"| {names} | {text} |")
    return "\n".join(lines) + "\n"


def document() -> str:
    """The document with today's table."""
    head, _, rest = TARGET.read_text().partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    TARGET.write_text(document())
