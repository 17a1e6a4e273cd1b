"""State that all parts of a connection share: its ends, the current event and the actions it led
to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.proxy.rules.verdicts import Action

if TYPE_CHECKING:
    from kafkascope.captures.model import Endpoint
    from kafkascope.proxy.hub import Hub, Tap


class Context:
    """Shared by the parts of one connection between a client and a broker."""

    __slots__ = (
        "__weakref__",  # scripts keep something for each
        "advertise_host",
        "broker",
        "cause",
        "client",
        "client_id",
        "hub",
        "now_ns",
        "number",
        "opaque",
        "out",
        "over",
        "tap",
        "via",
    )

    def __init__(self, hub: Hub, number: int, client: Endpoint, broker: Endpoint) -> None:
        self.hub = hub
        self.number = number
        self.client = client
        self.broker = broker
        self.advertise_host = ""
        """Our address that this client connected to."""
        self.via = ""
        """The load balancer whose PROXY protocol header named the client."""
        self.client_id: str | None = None
        """Of the last request that was looked at."""
        self.tap: Tap | None = None
        """Where the connection is recorded."""
        self.now_ns = 0
        """When the event being handled came."""
        self.out: list[Action] = []
        """What is to be done about it, in order."""
        self.opaque = False
        """Framing is lost: between frames all bytes of both directions pass unread."""
        self.over = False
        self.cause = ""
        """Why the connection ended."""

    def ended_by(self, cause: str) -> None:
        """Record why the connection ends; the first cause counts."""
        self.cause = self.cause or cause
