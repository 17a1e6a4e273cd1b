"""Text in place of packets: lines that a program wrote. Who reads it splits it; no I/O.

A file of text is known by its first bytes alone, and by a word of the request log that Kafka's
brokers write: lines of other loggers may stand before it.
"""

from __future__ import annotations

import re
from typing import Final

from kafkascope.captures.formats.records import CaptureRecord, Format, Found, Interface

# Begins the message of each line of a broker's request log, in every release since 0.8.
MARKER: Final = b"Completed request:"
TEXT: Final = "request-log"
"""Name of the format."""
# Bytes of a text that are looked at for a request: a starting broker prints its configuration, some
# 40 KB, before its first request.
LOOKED_BYTES: Final = 1 << 18
_MESSAGE: Final = MARKER + rb'(?:\{\\*"|RequestHeader\(|\{api_key=| ?Name:)'
"""How messages go on: the JSON form, also inside other JSON, and three text forms."""
_EVENT: Final = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d.{0,80}\b(?:TRACE|DEBUG|INFO|WARN|ERROR)\b"
_BROKER_LOGGER: Final = (
    rb"(?<![\w.])(?:state\.change\.logger|kafka\.(?:cluster|controller|coordinator|log|network|raft"
    rb"|request|security|server|utils|zk)\.\w|org\.apache\.kafka\.(?:common\.utils|controller"
    rb"|coordinator|image|metadata|network|raft|security|server|storage)\.\w)"
)
"""A broker's own loggers. Those of clients, Connect and Streams have other names."""
_STAMPED: Final = re.compile(rb"[\[{]?[^\n]{0,80}?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
"""How a line of a logger begins."""
_PRINTED: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:[\t\r\n\x1b\x20-\x7e]|[\xc2-\xf4][\x80-\xbf]{0,3}){1,12}"
)
"""ASCII and UTF-8, of which the last character may be cut."""


def is_text(head: bytes) -> bool:
    """Return whether first bytes are those of a text."""
    return _PRINTED.fullmatch(head[:12]) is not None and b"\0" not in head


def is_log(head: bytes, *, sure: bool = True) -> bool:
    """Return whether a text holds lines of a request log, or, where that need not be `sure`, those
    of any logger: a container's first request may come after hundreds of KB of its start."""
    if not is_text(head):
        return False
    if re.search(_MESSAGE, head):
        return True
    return not sure and (_STAMPED.match(head) is not None or _is_of_broker(head))


def _is_of_broker(head: bytes) -> bool:
    # Compiled where they are needed: every start of the program imports this module.
    event, logger = re.compile(_EVENT), re.compile(_BROKER_LOGGER)
    return any(event.search(line, 0, 200) and logger.search(line) for line in head.split(b"\n"))


class Text(Format):
    """The bytes of a text, as they come: each piece is a record."""

    header = 0
    backs = False
    numbered = False
    uniform = False

    def __init__(self, file: int) -> None:
        super().__init__([Interface(file, 0, -1, "", "", 0, 1, 1, 0)])
        self._end = 0

    def walk(self, buffer: bytearray, at: int, end: int) -> tuple[list[int], int]:
        self._end = end
        return [at] if end > at else [], end

    def record_size(self, buffer: bytearray, at: int, end: int) -> int:
        return 1

    def search(self, data: bytearray, final: bool, damaged: int = 0) -> Found:
        return Found(None, len(data))

    def record(self, buffer: bytearray, at: int) -> CaptureRecord:
        return CaptureRecord(0, self.interfaces[0], at, self._end - at, self._end - at)
