"""Requests to the control socket of a running proxy. Knows nothing of the proxy but where its
socket is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from kafkascope.tui.limits import LIMITS

# Seconds for a response.
TIMEOUT_S: Final = 5.0


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
                self.path, limit=LIMITS.control_line_bytes
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
            reader, writer = await asyncio.open_unix_connection(
                self.path, limit=LIMITS.control_line_bytes
            )
            writer.write(b'{"do":"watch"}\n')
            while line := await asyncio.wait_for(reader.readline(), TIMEOUT_S):
                event = json.loads(line)
                if isinstance(event, dict) and event.get("event") == "state":
                    yield event
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


# Seconds until a proxy that does not respond is asked again.
RETRY_S: Final = 2.0


class ProxyWatch:
    """Holds the last state that a proxy has sent. `control` steers it."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.state: dict[str, Any] = {}
        self.connections: list[dict[str, Any]] = []
        self.problem = ""
        """Why the proxy does not respond; empty while it does."""
        self.version = 0
        """Changes with the state."""
        self._started = False

    @property
    def status(self) -> dict[str, Any]:
        """The addresses, the counts and the notices of the proxy; empty until it responds."""
        status: dict[str, Any] = self.state.get("status", {})
        return status

    @property
    def notices(self) -> list[str]:
        """What the proxy reported on stderr, as sentences."""
        return [str(text) for text in self.status.get("notices") or ()]

    def start(self, run: Callable[..., object]) -> None:
        """Begin to watch, once; `run` is Textual's `run_worker`."""
        if not self._started:
            self._started = True
            run(self._follow(), group="watch", exit_on_error=False)

    async def _follow(self) -> None:
        while True:
            try:
                async with aclosing(self.control.states()) as states:
                    async for state in states:
                        connections = (await self.control.ask("connections"))["connections"]
                        self._set(state, connections, "")
            except ControlError as error:
                left: dict[str, Any] = {
                    key: self.state[key] for key in ("status", "metrics") if key in self.state
                }
                self._set(left, [], str(error))
            await asyncio.sleep(RETRY_S)

    def _set(self, state: dict[str, Any], connections: list[dict[str, Any]], problem: str) -> None:
        self.state, self.connections, self.problem = state, connections, problem
        self.version += 1
