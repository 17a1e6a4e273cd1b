"""The report as Markdown, for tickets and merge requests: the same sections without pictures."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from analyzer.render_cells import duration
from analyzer.report.sections import Section, Table
from analyzer.text import safe
from analyzer.times import iso_ns

if TYPE_CHECKING:
    from analyzer.report.collect import Facts

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#!~])")


def markdown(facts: Facts, parts: list[Section], redacted: str) -> str:
    """The whole file."""
    names = " ".join(shlex.quote(name) for name in facts.inputs)
    out = [f"# Kafka traffic: {_text(', '.join(facts.inputs))}", ""]
    if facts.first_ns is not None:
        span = (facts.last_ns or facts.first_ns) - facts.first_ns
        out += [
            f"{iso_ns(facts.first_ns)}, {duration(span)}: {facts.exchanges:,} exchanges,"
            f" {facts.connections:,} connections, {facts.packets:,} packets.",
            "",
        ]
    out += ["## Findings", ""]
    if not facts.found:
        out += ["Nothing was found that is worth a remark.", ""]
    for finding in facts.found:
        out.append(f"- **{finding.severity}**: {_text(finding.text)} ({finding.count:,} times)")
        out.append(f"  {_text(finding.advice)}")
        if finding.filter:
            out.append(f"  {_code(f'kafkascope open {names} -Y {shlex.quote(finding.filter)}')}")
    out.append("")
    for part in parts:
        out += [f"## {part.title}", "", _text(part.says), ""]
        for text in part.texts:
            out += _block(text)
        for table in part.tables:
            out += [f"**{_text(table.caption)}**", "", *_table(table), ""]
        out += [f"The same: {_code(part.command)}", ""]
    out += ["## How complete it is", ""]
    said = facts.remarks or ["Every packet was whole, and everything that is Kafka was decoded."]
    out += [f"- {_text(each)}" for each in said]
    return "\n".join([*out, "", redacted, ""])


def _text(text: str) -> str:
    """Escaped: names come from traffic, and Markdown may hold HTML."""
    return _SPECIAL.sub(r"\\\1", safe(text))


def _code(text: str) -> str:
    """As code, whatever backticks there are in it."""
    text = safe(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    room = " " if longest else ""
    return f"{fence}{room}{text}{room}{fence}"


def _block(text: str) -> list[str]:
    lines = [safe(line) for line in text.splitlines()]
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *lines, fence, ""]


def _table(table: Table) -> Iterable[str]:
    yield "| " + " | ".join(_text(title) for title in table.titles) + " |"
    yield "|" + "|".join("---:" if right else "---" for right in table.right) + "|"
    for row in table.rows:
        yield "| " + " | ".join(_text(cell) for cell in row) + " |"
    if table.left_out:
        yield ""
        yield f"{table.left_out:,} more lines: see the command below."
