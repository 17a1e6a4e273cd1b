"""A cause as a block of lines for people: symptom, time, consequences, evidence, fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.findings.causes import Cause
from kafkascope.analyzer.findings.commands import connections_command, exchanges_command
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import packed, safe, wrapped

SIGNS: Final = {"error": "!", "warning": "?", "note": "~", "chat": "~"}
INDENT: Final = "    "
UNBROKEN: Final = 10_000
"""Columns where nobody's terminal breaks lines."""
_WORD: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"]|")+')
"""A word of a filter; blanks inside a string belong to it."""


def block(cause: Cause, times: Times, width: int, source: str) -> Iterator[tuple[str, str]]:
    """Yield (line, style): symptom, count and time, consequences, evidence, fix. `source`: the
    inputs as words of a shell, for the commands that show the evidence."""
    finding = cause.finding
    for part in wrapped(f"{finding.severity}: {finding.text}", width, hanging=INDENT):
        yield part, SIGNS[finding.severity]
    when = ""
    if finding.first_ns is not None:
        when = f", {times.text(finding.first_ns)}"
        if finding.last_ns not in (None, finding.first_ns):
            when += f" to {times.text(finding.last_ns or 0)}"
    parts = [f"{finding.name}, {finding.count:,} x{when}".split()]
    if cause.consequences:
        parts.append(f"consequences: {cause.therefore()}".split())
    if finding.filter:
        parts.append(_unbroken(exchanges_command(finding, source)))
    if finding.connects:
        parts.append(_unbroken(connections_command(finding, source)))
    parts.append(f"fix: {finding.advice}".split())
    if finding.link:
        parts.append(f"more: kafkascope error {finding.link}".split())
    for words in parts:
        for part in packed(words, width, indent=INDENT, hanging=INDENT * 2):
            yield part, ""


def _unbroken(command: str) -> list[str]:
    """Return a command as words that lines may break between: those of its filter, where a shell
    takes a line break inside the quotes as a blank. It can be copied as it is printed."""
    head, option, text = command.partition(" -Y ")
    first, *rest = _WORD.findall(safe(text))
    return [f"evidence: {safe(head)}{option}{first}", *rest]
