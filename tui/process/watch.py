"""The state of a running proxy, kept up to date from its control channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

from kafkascope.tui.process.control import Control, ControlError

RETRY_S: Final = 2.0
"""Seconds until a proxy that does not respond is asked again."""


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
