"""Requests to the control socket of a running proxy. Knows nothing of the proxy but where its
socket is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes of a response: a held body may be large."""
TIMEOUT_S: Final = 5.0
"""Seconds for a response."""


class ControlError(Exception):
    """The proxy refuses a request, or does not respond."""


def _unreachable(error: Exception) -> ControlError:
    return ControlError(f"the proxy does not respond: {str(error) or 'no response'}")


class Control:
    """Steers the proxy behind a Unix socket. Connects with the first request, and again when the
    connection was lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._one = asyncio.Lock()

    async def ask(self, do: str, **words: Any) -> dict[str, Any]:
        """Return the response to a request; `ControlError` with a sentence."""
        line = json.dumps({"do": do, **words}, separators=(",", ":")).encode() + b"\n"
        async with self._one:
            try:
                response = await asyncio.wait_for(self._exchange(line), TIMEOUT_S)
            except (OSError, ValueError, TimeoutError) as error:
                await self.close()
                raise _unreachable(error) from error
        if not response.get("ok"):
            raise ControlError(str(response.get("error", "the proxy refused")))
        return response

    async def _exchange(self, line: bytes) -> dict[str, Any]:
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_unix_connection(
                self.path, limit=MAX_LINE
            )
        self._writer.write(line)
        await self._writer.drain()
        received = await self._reader.readline()
        if not received:
            raise ConnectionResetError("it has ended")
        response = json.loads(received)
        if not isinstance(response, dict):
            raise ValueError("its response is not an object")
        return response

    async def states(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the state of the proxy: now, once a second, and when something changes;
        `ControlError` when it ends or tells no state any more."""
        writer = None
        try:
            reader, writer = await asyncio.open_unix_connection(self.path, limit=MAX_LINE)
            writer.write(b'{"do":"watch"}\n')
            while line := await asyncio.wait_for(reader.readline(), TIMEOUT_S):
                told = json.loads(line)
                if isinstance(told, dict) and told.get("event") == "state":
                    yield told
            raise ConnectionResetError("it has ended")
        except (OSError, ValueError, TimeoutError) as error:
            raise _unreachable(error) from error
        finally:
            if writer is not None:
                await _closed(writer)

    async def close(self) -> None:
        """Close the connection; the proxy goes on."""
        writer, self._writer, self._reader = self._writer, None, None
        if writer is not None:
            await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        pass  # the other side left first
