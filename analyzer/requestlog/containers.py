"""Finds lines of the request logger in what surrounds them: container runtimes, JSON layouts,
patterns of operators, lines of other loggers. State without I/O: blocks of a file in, lines out.

    docker, containerd, CRI-O: parts of a line, joined    kubectl, compose: a prefix
    ECS, GELF, JsonLayout, shippers, journals: JSON       log4j: any pattern
    logfmt, CSV, JSON after a prefix: a quoted message

What stands before `Completed request:` is not parsed by a grammar of its own: the last time stamp
there is the broker's, an earlier one with a zone is the runtime's, the last level is the line's.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from kafkascope.analyzer.requestlog.limits import LIMITS, RequestLogLimits
from kafkascope.analyzer.requestlog.model import (
    CUT,
    NOT_UNDERSTOOD,
    SEVERAL,
    TOO_LONG,
    LogLine,
    Unparsed,
)
from kafkascope.analyzer.requestlog.times import has_zone, instant, instant_of, stamps_in
from kafkascope.captures.formats.text import MARKER

_CRI: Final = re.compile(rb"(\d{4}-\d\d-\d\dT[!-~]{8,24}) (stdout|stderr) ([FP])(?:\S*) ", re.A)
_LEVEL: Final = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;]{0,20}m")
"""log4j's `%highlight`, compose, stern."""
_TIMES: Final = (
    *("@timestamp", "time", "timestamp", "ts", "date", "timeMillis"),
    *("TimeGenerated", "__REALTIME_TIMESTAMP"),
)
"""Names of times in JSON; the last two are Azure's and journald's."""
_DOCKER: Final = {"log", "stream", "time"}
"""Fields of docker's json-file driver, beside `attrs`. Fluent Bit and fluentd have others, and join
parts."""
# Levels of a JSON document in which a message is looked for.
_DEEPEST: Final = 8
_DATE: Final = re.compile(rb"\d{4}-\d\d-\d\d[T ]")
_BEGIN: Final = re.compile(rb'(?:\W{0,2}|\{"@timestamp":")\d{4}-\d\d-\d\d[T ]')
_AGAIN: Final = re.compile(rb"\[?\d{4}-\d\d-\d\d[T ]\d\d:")
_END: Final = b";totalTime:"
"""Stands near the end of each message in a text form."""


class _Origin(NamedTuple):
    """Where a line begins, and when a container runtime got it."""

    offset: int
    number: int
    arrived: str = ""


class LineReader:
    """Lines of the request logger in a file, block by block."""

    def __init__(self, limits: RequestLogLimits = LIMITS) -> None:
        self._limits = limits
        self._out: list[LogLine | Unparsed] = []
        self._end = 0
        """Offset after the line that is read."""
        self._number = 1
        self._rest = bytearray()
        """Start of a line whose end has not come."""
        self._too_long = False
        self._parts: dict[str, tuple[_Origin, bytearray]] = {}
        """Parts of lines that a container runtime has split, by stream."""
        self._open: LogLine | None = None
        """A text line without its end: texts of old releases may hold line feeds."""
        self._more = bytearray()
        """Lines after it."""

    def feed(self, block: bytes) -> list[LogLine | Unparsed]:
        """Return the lines that end in a block."""
        self._rest += block
        if b"\n" in block:
            *ended, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            for line in ended:
                self._line(line, 1)
        if self._too_long or len(self._rest) > self._limits.line_bytes:
            if MARKER in self._rest and not self._too_long:
                self._out.append(Unparsed(self._end, self._number, TOO_LONG))
            self._end += len(self._rest)
            self._too_long = True
            self._rest.clear()
        return self._taken()

    def finish(self) -> list[LogLine | Unparsed]:
        """Return what is left at the end of the file: its last line may be whole."""
        if self._rest:
            self._line(bytes(self._rest), 0)
        for stream in list(self._parts):
            self._cut(stream)
        self._close()
        return self._taken()

    def _taken(self) -> list[LogLine | Unparsed]:
        out, self._out = self._out, []
        return out

    def _line(self, line: bytes, feed: int) -> None:
        """Read a line, after which are `feed` bytes."""
        begin, self._end = self._end, self._end + len(line) + feed
        # Of most lines of other loggers no more is read than this.
        if not self._too_long and (MARKER in line or self._parts or self._open):
            self._unwrap(line, _Origin(begin, self._number), 0)
        self._too_long = False
        self._number += 1

    def _unwrap(self, line: bytes, origin: _Origin, depth: int) -> None:
        """Read a line without the wrappings of a container runtime and of a JSON layout inside
        it."""
        if line.startswith(b"[{") and line.count(MARKER) > 1:
            self._out.append(Unparsed(*origin[:2], SEVERAL))
        elif depth < 3 and line.startswith(b"{"):
            self._json(line, origin, depth + 1)
        elif depth < 3 and (match := _CRI.match(line)):
            time, stream, flag = (part.decode() for part in match.groups())
            origin = origin._replace(arrived=time)
            self._part(stream, line[match.end() :], flag == "F", origin, depth + 1)
        else:
            begin = _last_event(line, self._limits)
            if begin:
                self._out.append(Unparsed(*origin[:2], CUT))
                if not depth:
                    origin = origin._replace(offset=origin.offset + begin)
            self._event(line[begin:].removesuffix(b"\r"), origin, depth)

    def _json(self, line: bytes, origin: _Origin, depth: int) -> None:
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            if MARKER in line:
                whole = line.rstrip().endswith(b"}")
                self._out.append(Unparsed(*origin[:2], NOT_UNDERSTOOD if whole else CUT))
            return
        if type(document) is dict:
            self._document(document, origin, depth)

    def _document(self, document: dict[str, Any], origin: _Origin, depth: int) -> None:
        """Read the line in a JSON document."""
        log, stream = document.get("log"), document.get("stream")
        if type(log) is str and type(stream) is str and document.keys() - {"attrs"} == _DOCKER:
            text = log.encode("utf-8", "replace")
            part = text.removesuffix(b"\n")
            origin = origin._replace(arrived=_instant(document) or origin.arrived)
            self._part(stream, part, part != text, origin, depth)
            return
        message, inner, time = _message(document, "", 0)
        if message:
            text = message.removesuffix("\n").encode("utf-8", "replace")
            if text.startswith(MARKER):
                stamp, level = time or origin.arrived, _level(inner)
                self._out.append(self._log_line(text, stamp, level, origin))
            else:
                origin = origin._replace(arrived=time or origin.arrived)
                self._unwrap(text, origin, depth)
        elif count := str(document).count(MARKER.decode()):
            self._out.append(Unparsed(*origin[:2], SEVERAL if count > 1 else NOT_UNDERSTOOD))

    def _part(self, stream: str, text: bytes, ended: bool, origin: _Origin, depth: int) -> None:
        """Join parts; read the whole."""
        # After a part whose rest is lost (a rotated file, a restart) the next line begins.
        if stream in self._parts and _BEGIN.match(text):
            self._cut(stream)
        if stream not in self._parts:
            if ended:
                self._unwrap(text, origin, depth)
                return
            if MARKER not in text:
                return  # the message begins in the first part, or it is none of ours
            if len(self._parts) >= self._limits.streams:
                self._cut(next(iter(self._parts)))
            self._parts[stream] = origin, bytearray()
        origin, whole = self._parts[stream]
        whole += text
        if sum(len(waiting) for _, waiting in self._parts.values()) > self._limits.line_bytes:
            self._cut(stream, TOO_LONG)
        elif ended:
            del self._parts[stream]
            self._unwrap(bytes(whole), origin, depth)

    def _cut(self, stream: str, reason: str = CUT) -> None:
        """Drop the parts of a stream."""
        origin, _ = self._parts.pop(stream)
        self._out.append(Unparsed(*origin[:2], reason))

    def _event(self, text: bytes, origin: _Origin, depth: int) -> None:
        """Read an event that log4j wrote as text."""
        if b"\x1b" in text:
            text = _COLOUR.sub(b"", text)
        at = text.find(MARKER)
        if self._open is not None:
            short = len(self._more) < self._limits.line_bytes
            if at < 0 and short and not _DATE.search(text, 0, 64):
                self._more += b"\n" + text
                self._open = self._open._replace(size=self._end - self._open.offset)
                if _END not in text:
                    return
            self._close()
        if at < 0:
            return
        prefix = text[max(0, at - self._limits.prefix_bytes) : at].decode("ascii", "replace")
        stamps = stamps_in(prefix)
        levels = _LEVEL.findall(prefix) or _LEVEL.findall(prefix.upper())
        if len(stamps) > 1 and has_zone(stamps[0]):
            origin = origin._replace(arrived=stamps[0])
        if depth < 3 and (document := _behind(text, at)):
            arrived = next(filter(has_zone, stamps), origin.arrived)
            self._document(document, origin._replace(arrived=arrived), depth + 1)
            return
        time, level = stamps[-1] if stamps else "", levels[-1] if levels else ""
        line = self._log_line(_unquoted(text, at), time, level, origin)
        if line.message.startswith(b'{"', len(MARKER)) or _END in line.message:
            self._out.append(line)
        else:
            self._open = line

    def _log_line(self, message: bytes, time: str, level: str, origin: _Origin) -> LogLine:
        offset, number, arrived = origin
        return LogLine(offset, self._end - offset, number, message, time, level, arrived)

    def _close(self) -> None:
        """Put out the line that had no end, with what was after it."""
        if self._open is not None:
            self._out.append(self._open._replace(message=self._open.message + self._more))
            self._open, self._more = None, bytearray()


def _last_event(text: bytes, limits: RequestLogLimits) -> int:
    """Return where the last event in a line begins. There are two where a broker was killed in the
    middle of the first, and wrote on after it."""
    first = text.find(MARKER)
    if text.find(MARKER, first + 1) < 0:
        return 0
    last = text.rfind(MARKER)
    stamps = list(_AGAIN.finditer(text, max(first, last - limits.prefix_bytes), last))
    return stamps[-1].start() if stamps else 0


def _message(document: dict[str, Any], time: str, depth: int) -> tuple[str, dict[str, Any], str]:
    """Return the message in a document, the object that it is a field of, and its time as text;
    "" without one. Of several the longest is whole: GELF has a `short_message`."""
    time = _instant(document) or time
    marker = MARKER.decode()
    texts = [value for value in document.values() if type(value) is str and marker in value]
    if texts:
        return max(texts, key=len), document, time
    inner = [value for value in document.values() if type(value) is dict]
    for value in inner if depth < _DEEPEST else ():
        found = _message(value, time, depth + 1)
        if found[0]:
            return found
    return "", document, time


def _behind(text: bytes, at: int) -> dict[str, Any] | None:
    """Return the JSON document after a prefix, which holds the message at `at`."""
    begin = text.find(b'{"', 0, at)
    if begin < 0:
        return None
    document: dict[str, Any] | None = None
    with suppress(ValueError, RecursionError):
        document, _ = json.JSONDecoder().raw_decode(text[begin:].decode("utf-8", "replace"))
    return document


def _unquoted(text: bytes, at: int) -> bytes:
    """Return the message at `at`, without the quoting of logfmt or CSV around it."""
    if text.startswith(b'{""', at + len(MARKER)):
        return text[at:].replace(b'""', b'"')
    if text.startswith(b'{\\"', at + len(MARKER)):  # log4j's %enc{%m}{JSON} without quotes
        end = text.rfind(b"}") + 1
        with suppress(ValueError):
            message = json.loads(b'"' + text[at:end] + b'"')
            return str(message).encode("utf-8", "surrogateescape")
    if text[at - 1 : at] == b'"':
        with suppress(ValueError):
            quoted = text[at - 1 :].decode("utf-8", "surrogateescape")
            message, _ = json.JSONDecoder().raw_decode(quoted)
            return str(message).encode("utf-8", "surrogateescape")
    return text[at:]


def _instant(document: dict[str, Any]) -> str:
    """Return the time stamp of a JSON event, as text."""
    for name in _TIMES:
        value = document.get(name)
        if type(value) is str and (stamps := stamps_in(value[:64])):
            return stamps[0]
        if time := instant_of(value):
            return time
    moment = document.get("instant")
    if type(moment) is dict:
        seconds, nanos = moment.get("epochSecond"), moment.get("nanoOfSecond", 0)
    else:  # of Google's layout
        seconds, nanos = document.get("timestampSeconds"), document.get("timestampNanos", 0)
    return instant(seconds, nanos) if type(seconds) is int and type(nanos) is int else ""


def _level(document: dict[str, Any]) -> str:
    log = document.get("log")
    for fields in (document, log if type(log) is dict else {}):
        for name in ("log.level", "level", "severity"):
            value = fields.get(name)
            if type(value) is str:
                return value[:16].upper()
    return ""
