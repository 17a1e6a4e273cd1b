"""The report as Markdown: a ticket of some thirty lines, or all sections without pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kafkascope.analyzer.findings.causes import Cause, apart, names_of
from kafkascope.analyzer.findings.model import exchanges_command
from kafkascope.analyzer.report.collect import COMPLETE, ReportFacts, summary
from kafkascope.analyzer.report.sections import ReportTable, Section
from kafkascope.analyzer.text import plural, safe
from kafkascope.times import iso_ns

_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]<>|#!~&$^]|(?<!\w)[=+-]")
_PARTS: Final = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<open>[(\["']+(?=`))
    | (?P<code>(?<![^\s(\["'])`[^`]+`(?=[)\]"'.,;:!?]*(?:\s|$)))  # of ours: no name is needed
    | (?P<word>\S+)
    """,
    re.VERBOSE,
)
_WORD: Final = re.compile(r"""([(\["']*)(.*?)([)\]"'.,;:!?]*)""", re.DOTALL)
_PLAIN: Final = re.compile(
    r"""
    [^\W\d_]+(?:[-'’][^\W\d_]+)*  # letters
    | [a-z]\d{1,3}  # p99, v7
    | [+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,6})(?:\.\d+)?%?
    | [-–—·…+=%/]
    |
    """,
    re.VERBOSE,
)
_HASH: Final = re.compile(r"[0-9a-fA-F]{7,}")
"""Texts that code hosts take for a commit."""


# Of a ticket: what is read without scrolling, and pasted into an issue or a chat.
TICKET_LINES: Final = 30


def ticket(facts: ReportFacts, redacted: str) -> str:
    """Return the summary and the causes: as many as fit with fix and evidence, the others with
    their symptom, the rest counted."""
    names = facts.words
    head = [*_head(facts), *[f"- {_text(sentence)}" for sentence in summary(facts, causes=0)], ""]
    command = _code(f"kafkascope report {names} -o report.md --full")
    gaps = [f"- {_text(each)}" for each in facts.gaps[:2]]
    tail = [*gaps, "", f"All sections: {command}. {redacted}"]
    trouble, _ = apart(facts.causes)
    room = TICKET_LINES - len(head) - len(tail)
    shown = trouble[: len(trouble) if len(trouble) <= room else room - 1]
    spare = room - len(shown) - (len(shown) < len(trouble))
    out: list[str] = []
    for cause in shown:
        symptom, *rest = _cause(cause, names)
        spare -= len(rest)
        out += [symptom, *(rest if spare >= 0 else [])]
    if len(shown) < len(trouble):
        more = plural(len(trouble) - len(shown), "more finding")
        out.append(f"- {more}: {_code(f'kafkascope check {names}')}")
    return "\n".join([*head, *out, *tail, ""])


def _head(facts: ReportFacts) -> list[str]:
    """Return the title, and when and how much."""
    out = [f"# Kafka traffic: {', '.join(map(_code, facts.inputs))}", ""]
    if facts.span.first_ns is not None:
        counts = f"{facts.connections:,} connections"
        counts += "." if facts.of_logs else f", {facts.packets:,} packets."
        exchanges = f"{facts.lasted}: {facts.span.exchanges:,} exchanges"
        out += [f"{iso_ns(facts.span.first_ns)}, {exchanges}, {counts}", ""]
    return out


def _cause(cause: Cause, names: str) -> list[str]:
    """Return a cause as an item of a list: symptom, consequences, fix, evidence."""
    finding = cause.finding
    out = [f"- **{finding.severity}**: {_text(finding.text)} ({plural(finding.count, 'event')})"]
    if cause.consequences:
        out.append(f"  Consequences: {_text(cause.therefore())}")
    out.append(f"  {_text(finding.advice)}")
    if finding.filter:
        out.append(f"  {_code(exchanges_command(finding, names))}")
    return out


def markdown(facts: ReportFacts, parts: list[Section], redacted: str) -> str:
    """Return all sections."""
    names = facts.words
    out = [*_head(facts), *[f"- {_text(sentence)}" for sentence in summary(facts)]]
    out += ["", "## Findings", ""]
    trouble, chats = apart(facts.causes)
    if not facts.causes:
        out += ["No findings.", ""]
    for cause in trouble:
        out += _cause(cause, names)
        out += [
            f"  - **{each.severity}**: {_text(each.text)} ({plural(each.count, 'event')})"
            for each in cause.consequences
        ]
    if chats:
        out.append(f"- **chat**: normal, but often mistaken for problems: {_text(names_of(chats))}")
    out.append("")
    for part in parts:
        out += [f"## {part.title}", "", _text(part.says), ""]
        for text in part.texts:
            out += _block(text)
        for table in part.tables:
            out += [f"**{_text(table.caption)}**", "", *_table(table), ""]
        out += [f"Reproduce with: {_code(part.command)}", ""]
    out += ["## Completeness", ""]
    out += [f"- {_text(each)}" for each in facts.remarks or [COMPLETE]]
    return "\n".join([*out, "", redacted, ""])


def _text(text: str) -> str:
    """Text that no renderer takes for HTML, a link, a mention or an issue.

    Words and numbers are text, all else is code: hosts, `@team`, `#12` and `www.` become links
    wherever they stand free, and no escape keeps them from it.
    """
    parts = []
    for found in _PARTS.finditer(safe(text)):
        match found.lastgroup:
            case "code":
                parts.append(_code(found[0][1:-1]))
            case "word":
                parts.append(_word(found[0]))
            case _:
                parts.append(_escape(found[0]))
    return "".join(parts)


def _word(word: str) -> str:
    found = _WORD.fullmatch(word)
    assert found is not None  # every word has a middle, empty or not
    before, middle, behind = found.groups()
    if _PLAIN.fullmatch(middle) and not _HASH.fullmatch(middle):
        return _escape(word)
    return _escape(before) + _code(middle) + _escape(behind)


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def _code(text: str) -> str:
    """As code, whatever backticks there are in it."""
    text = safe(text)
    fence = _fence(text)
    room = " " if len(fence) > 1 or not text.strip() else ""
    return f"{fence}{room}{text}{room}{fence}"


def _fence(text: str, least: int = 1) -> str:
    """Return more backticks than there are in a row in a text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _cell(text: str) -> str:
    """The same inside of a table, where a bar ends a cell even in code."""
    return _text(text).replace("|", "\\|")


def _block(text: str) -> list[str]:
    fence = _fence(text, 3)
    return [fence, *map(safe, text.splitlines()), fence, ""]


def _table(table: ReportTable) -> Iterable[str]:
    yield "| " + " | ".join(_cell(title) for title in table.titles) + " |"
    yield "|" + "|".join("---:" if right else "---" for right in table.right) + "|"
    for row in table.rows:
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
    if table.left_out:
        yield ""
        yield f"{table.left_out:,} more rows: see the command below."
