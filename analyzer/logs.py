"""Log records as lines for people. Apart from `terminal`: few commands log, and all write lines."""

from __future__ import annotations

import logging
from typing import IO

from kafkascope.analyzer.terminal import PROGRAM, for_log, indented


class Formatter(logging.Formatter):
    """Formats log records after the program's name; traffic in them starts no new line."""

    def __init__(self) -> None:
        super().__init__(PROGRAM + "%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The message in one line, a traceback below it."""
        return for_log(indented(super().format(record)))


def log_to(stream: IO[str], level: int) -> None:
    """Log records as lines of a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Formatter())
    logging.basicConfig(level=level, handlers=[handler])
