"""Print the tables of docs/spark.md, between its marks, from their schemas: `make docs`."""

from __future__ import annotations

from pathlib import Path

from kafkascope.analyzer.pipeline.tables.schemas import TABLES

TARGET = Path(__file__).parent / "spark.md"
BEGIN, END = "<!-- tables: printed by docs/print_spark.py -->\n", "<!-- end of tables -->\n"
SHORT = {"timestamp[us, tz=UTC]": "timestamp", "int64": "bigint", "int32": "int"}


def tables() -> str:
    """All tables, a column a line."""
    lines: list[str] = []
    for table in TABLES.values():
        lines += [
            "",
            f"### {table.name}",
            "",
            table.text,
            "",
            "| column | type | |",
            "|---|---|---|",
        ]
        for each in table.columns:
            kind = (
                str(each.type).replace("item: ", "").replace("timestamp[us, tz=UTC]", "timestamp")
            )
            text = each.text.replace("|", "\\|")
            lines.append(f"| `{each.name}` | {SHORT.get(kind, kind)} | {text} |")
    return "\n".join(lines)[1:] + "\n\n"


def document() -> str:
    """The document with today's tables."""
    head, _, rest = TARGET.read_text().partition(BEGIN)
    return head + BEGIN + tables() + END + rest.partition(END)[2]


if __name__ == "__main__":
    TARGET.write_text(document())
