"""The brokers of a cluster as listeners of mitmproxy: which there have to be. No I/O but the
choice of a free port.

A response may name any address as a broker's. Where these lead is judged when something connects
(`addon`), as our own proxy does.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkascope.proxy.relay.context import Context

# Listeners that a cluster may make mitmproxy open.
MOST_NODES: Final = 500


def free_port(host: str) -> int:
    """Return a port that is free now; `OSError` when there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


class ListenerPlan:
    """The listeners for the brokers behind one mode of mitmproxy: see `endpoints.Directory`."""

    def __init__(
        self, scheme: str, host: str, advertised: str = "", port: Callable[[str], int] = free_port
    ) -> None:
        """`scheme`: tcp or tls, as the user's mode has it. `host`: where that listens, "" for all
        addresses. `advertised`: the host for clients in place of the address they came to."""
        self.generation = 0
        self._scheme = scheme
        self._host = host
        self._advertised = advertised
        self._port = port
        self._ports: dict[int, int] = {}
        self._known: dict[int, tuple[str, int]] = {}

    def advertise(self, context: Context, node_id: int, host: str, port: int) -> tuple[str, int]:
        """The address that leads to a broker through mitmproxy."""
        if node_id not in self._ports:
            if len(self._ports) >= MOST_NODES:
                raise OSError(f"more than {MOST_NODES} brokers")
            self._ports[node_id] = self._port(self._host)
        if self._known.get(node_id) != (host, port):
            self._known[node_id] = (host, port)
            self.generation += 1
        return self._advertised or context.advertise_host, self._ports[node_id]

    def listed(self, context: Context, node_ids: frozenset[int]) -> None:
        """Nothing: a listener stays when its broker goes, it may come back."""

    def brokers(self, context: Context) -> list[tuple[int, str, int]]:
        """All brokers that are known, with our addresses."""
        return [
            (node_id, *self.advertise(context, node_id, *known))
            for node_id, known in tuple(self._known.items())
        ]

    def specs(self) -> list[str]:
        """The modes that mitmproxy has to have for them."""
        at = f"{self._host}:" if self._host else ""
        return [
            f"reverse:{self._scheme}://{_address(host, port)}@{at}{self._ports[node_id]}"
            for node_id, (host, port) in self._known.items()
        ]


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
