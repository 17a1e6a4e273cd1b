"""Causes as workflow commands of GitHub Actions, which shows them as annotations of the run.

    ::error title=kafkascope%3A unknown-topic::client orders asked for topic oders ...

A command ends at its line: what could begin another one is escaped as the runner's toolkit does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kafkascope.analyzer.checks.blocks import UNBROKEN, block
from kafkascope.analyzer.findings.causes import Cause
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import safe

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
