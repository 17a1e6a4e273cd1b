"""How the screens steer a running proxy: questions and answers of its control socket. Who connects
decides where the socket is; nothing here knows the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final, Protocol

MAX_LINE: Final = 64 * 1024 * 1024
"""A held body may be large."""
PATIENCE: Final = 5.0
"""Seconds for an answer."""


class ControlError(Exception):
    """The proxy says no, or says nothing."""


class Control(Protocol):
    """A running proxy."""

    async def ask(self, do: str, **words: Any) -> dict[str, Any]:
        """The answer to a request; `ControlError` with a sentence."""

    def states(self) -> AsyncGenerator[dict[str, Any], None]:
        """All about it: now, once a second, and when something changes; `ControlError` at its
        end."""

    async def close(self) -> None:
        """Leave it alone; it goes on."""


class SocketControl:
    """The proxy behind a Unix socket. Connects when it is asked first, and again when it must."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._one = asyncio.Lock()

    async def ask(self, do: str, **words: Any) -> dict[str, Any]:
        """The answer to a request; `ControlError` with a sentence."""
        line = json.dumps({"do": do, **words}, separators=(",", ":")).encode() + b"\n"
        async with self._one:
            try:
                answer = await asyncio.wait_for(self._exchange(line), PATIENCE)
            except (OSError, ValueError, TimeoutError) as error:
                await self.close()
                reason = str(error) or "no answer"
                raise ControlError(f"the proxy does not answer: {reason}") from error
        if not answer.get("ok"):
            raise ControlError(str(answer.get("error", "the proxy refused")))
        return answer

    async def _exchange(self, line: bytes) -> dict[str, Any]:
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_unix_connection(
                self.path, limit=MAX_LINE
            )
        self._writer.write(line)
        await self._writer.drain()
        told = await self._reader.readline()
        if not told:
            raise ConnectionResetError("it has ended")
        answer = json.loads(told)
        if not isinstance(answer, dict):
            raise ValueError("its answer is no object")
        return answer

    async def states(self) -> AsyncGenerator[dict[str, Any], None]:
        """All about it: now, once a second, and when something changes; `ControlError` at its
        end, or when it says nothing any more."""
        writer = None
        try:
            reader, writer = await asyncio.open_unix_connection(self.path, limit=MAX_LINE)
            writer.write(b'{"do":"watch"}\n')
            while line := await asyncio.wait_for(reader.readline(), PATIENCE):
                told = json.loads(line)
                if isinstance(told, dict) and told.get("event") == "state":
                    yield told
            raise ConnectionResetError("it has ended")
        except (OSError, ValueError, TimeoutError) as error:
            reason = str(error) or "no answer"
            raise ControlError(f"the proxy does not answer: {reason}") from error
        finally:
            if writer is not None:
                await _closed(writer)

    async def close(self) -> None:
        """Leave it alone; it goes on."""
        writer, self._writer, self._reader = self._writer, None, None
        if writer is not None:
            await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        pass  # the other side left first
