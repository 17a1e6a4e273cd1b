"""The control channel of a served capture, on stdin and stdout (docs/control.md)."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafkascope.proxy import answers

MOST_NOTICES: Final = 100


class Channel:
    """Answers requests until stdin ends."""

    def __init__(
        self,
        bootstrap: str,
        nodes: Mapping[int, str],
        notices: deque[str],
        stop: Callable[[], None],
    ) -> None:
        """`nodes`: the listener of each. `notices`: what was said so far; grows."""
        self._bootstrap = bootstrap
        self._nodes = nodes
        self._notices = notices
        self._stop = stop
        self._started_ns = time.time_ns()

    async def run(self) -> None:
        """Answer until stdin ends; then stop what is served."""
        try:
            reader, writer = await answers.standard_pipes()
            while line := await reader.readline():
                writer.write(self.respond(line))
                await writer.drain()
        except (OSError, ValueError):
            pass  # it left, sent a line without end, or has given us no pipes
        finally:
            self._stop()

    def respond(self, line: bytes) -> bytes:
        """Return the line that answers a line."""
        request, refusal = answers.read(line)
        return refusal or answers.response(request, lambda: self._do(request))

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("do"):
            case "status":
                return {
                    "protocol": answers.PROTOCOL,
                    "pid": os.getpid(),
                    "version": answers.release(),
                    "started_ns": self._started_ns,
                    "bootstrap": self._bootstrap,
                    "mode": "serve",
                    "nodes": {str(node): {"listener": at} for node, at in self._nodes.items()},
                    "notices": list(self._notices),
                }
            case "stop":
                self._stop()
                return {}
            case other:
                raise ValueError(f"unknown command {other!r} for a served capture")
