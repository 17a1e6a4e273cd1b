"""A cause as a block of lines for people: symptom, time, consequences, evidence, fix; and as a
workflow command of GitHub Actions, which shows it as an annotation of the run.

    ::error title=kafkascope%3A unknown-topic::client orders asked for topic oders ...

A command ends at its line: what could begin another one is escaped as the runner's toolkit does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kafkascope.analyzer.findings.causes import Cause, apart, names_of
from kafkascope.analyzer.findings.model import connections_command, exchanges_command
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import packed, plural, safe, wrapped

SIGNS: Final = {"error": "!", "warning": "?", "note": "~", "chat": "~"}
INDENT: Final = "    "
# Columns where nobody's terminal breaks lines.
UNBROKEN: Final = 10_000
_WORD: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"]|")+')
"""A word of a filter; blanks inside a string belong to it."""


def blocks(
    causes: Sequence[Cause], times: Times, terminal: int | None, source: str, *, chats_too: bool
) -> Iterator[tuple[str, str]]:
    """Yield (line, style) of causes as blocks, and of chats as one line at the end unless
    `chats_too`."""
    width = terminal or UNBROKEN
    shown, chats = (list(causes), []) if chats_too else apart(causes)
    for number, cause in enumerate(shown):
        if number:
            yield "", ""
        yield from block(cause, times, width, source)
    if chats:
        if shown:
            yield "", ""
        names = names_of(chats)
        text = f"chat: normal, though often mistaken for a problem: {names} (show with --all)"
        yield from ((part, SIGNS["chat"]) for part in wrapped(text, width, hanging=INDENT))


def block(cause: Cause, times: Times, width: int, source: str) -> Iterator[tuple[str, str]]:
    """Yield (line, style): symptom, count and time, consequences, evidence, fix. `source`: the
    inputs as words of a shell, for the commands that show the evidence."""
    finding = cause.finding
    for part in wrapped(f"{cause.severity}: {finding.text}", width, hanging=INDENT):
        yield part, SIGNS[cause.severity]
    when = times.behind(finding.first_ns, finding.last_ns)
    parts = (
        f"{finding.name}, {plural(finding.count, 'event')}{when}".split(),
        f"consequences: {cause.therefore()}".split() if cause.consequences else [],
        _unbroken(exchanges_command(finding, source)) if finding.filter else [],
        _unbroken(connections_command(finding, source)) if finding.connects else [],
        f"fix: {finding.advice}".split(),
        f"more: kafkascope error {finding.link}".split() if finding.link else [],
    )
    for words in filter(None, parts):
        for part in packed(words, width, indent=INDENT, hanging=INDENT * 2):
            yield part, ""


def _unbroken(command: str) -> list[str]:
    """Return a command as words that lines may break between: those of its filter, where a shell
    takes a line break inside the quotes as a blank. It can be copied as it is printed."""
    head, option, text = command.partition(" -Y ")
    first, *rest = _WORD.findall(safe(text))
    return [f"evidence: {safe(head)}{option}{first}", *rest]


COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
"""Severity -> command. GitHub shows ten annotations of each kind for a step: chats would only take
the place of others, and so would consequences on their own."""


def commands(causes: Iterable[Cause], times: Times, source: str) -> Iterator[str]:
    """Yield a command for each cause that is no chat, as bad as the worst that followed from it."""
    for cause in causes:
        command = COMMANDS.get(cause.severity)
        if command is not None:
            _, *lines = (safe(line) for line, _ in block(cause, times, UNBROKEN, source))
            message = escaped_data([safe(cause.finding.text), *lines])
            title = escaped_property(f"kafkascope: {cause.finding.name}")
            yield f"::{command} title={title}::{message}"


def escaped_data(lines: Iterable[str]) -> str:
    """Return lines as the message of a command."""
    return "\n".join(lines).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """Return a text as the value of a command's property."""
    return escaped_data([text]).replace(":", "%3A").replace(",", "%2C")
