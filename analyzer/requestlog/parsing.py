"""Parses lines of the request logger, whatever the release that wrote them."""

from __future__ import annotations

from kafkascope.analyzer.requestlog.fields import NotUnderstood
from kafkascope.analyzer.requestlog.jsonline import document_of, json_bodies, parse_json
from kafkascope.analyzer.requestlog.model import NO_TIME, Completed, LoggedBody, LogLine, Unparsed
from kafkascope.analyzer.requestlog.textline import parse_text
from kafkascope.analyzer.requestlog.times import LogClock
from kafkascope.captures.formats.text import MARKER


def completed_of(line: LogLine, written_ns: int) -> Completed:
    """Return the completed request of a line whose time is known; `NotUnderstood`."""
    parse = parse_json if is_json(line) else parse_text
    return parse(line.message, written_ns, line.level)


def bodies_of(line: LogLine) -> tuple[LoggedBody, LoggedBody]:
    """Return both bodies of a line that `completed_of` has parsed."""
    if is_json(line):
        return json_bodies(document_of(line.message))
    completed = parse_text(line.message, 0, line.level)
    return completed.request, completed.response


def is_json(line: LogLine) -> bool:
    return line.message.startswith(b'{"', len(MARKER))


def parse(line: LogLine | Unparsed, clock: LogClock) -> Completed | Unparsed:
    """Return the completed request of a line, or why nothing of it can be used."""
    if isinstance(line, Unparsed):
        return line
    written_ns = clock.at(line.time or line.arrived, line.arrived)
    if written_ns is None:
        return Unparsed(line.offset, line.number, NO_TIME)
    try:
        return completed_of(line, written_ns)
    except NotUnderstood as error:
        return Unparsed(line.offset, line.number, str(error))
