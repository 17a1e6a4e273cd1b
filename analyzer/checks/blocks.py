"""A cause as a block of lines for people: sentence, when, what followed, evidence, advice."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.findings.causes import Cause
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import packed, safe, wrapped

SIGNS: Final = {"error": "!", "warning": "?", "note": "~", "chat": "~"}
INDENT: Final = "    "
UNBROKEN: Final = 10_000
"""Columns where nobody's terminal breaks lines."""
_WORD: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"]|")+')
"""Of a filter: a blank inside of a string is a part of it."""


def block(cause: Cause, times: Times, width: int) -> Iterator[tuple[str, str]]:
    """(line, style): severity and sentence, how often and when, what followed, evidence, advice."""
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
        parts.append(f"therefore: {cause.therefore()}".split())
    if finding.filter:
        # Blanks between the words of a filter mean nothing: it can be copied with its line breaks.
        parts.append(["see:", "-Y", *_WORD.findall(safe(shlex.quote(finding.filter)))])
    if finding.connects:
        command = ["see:", "kafkascope", "stats", "connections", "INPUT", "-Y"]
        parts.append([*command, *_WORD.findall(safe(shlex.quote(finding.connects)))])
    parts.append(f"do: {finding.advice}".split())
    if finding.link:
        parts.append(f"more: kafkascope error {finding.link}".split())
    for words in parts:
        for part in packed(words, width, indent=INDENT, hanging=INDENT * 2):
            yield part, ""
