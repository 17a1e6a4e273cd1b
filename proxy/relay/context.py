"""State that all parts of a connection share: its ends, the current event and the actions it led
to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkascope.captures.model import Endpoint
from kafkascope.proxy.hub import Hub, Tap
from kafkascope.proxy.rules.verdicts import Action


# Scripts keep something for each, weakly.
@dataclass(slots=True, eq=False, weakref_slot=True)
class Context:
    """Shared by the parts of one connection between a client and a broker."""

    hub: Hub
    number: int
    client: Endpoint
    broker: Endpoint
    advertise_host: str = ""
    """Our address that this client connected to."""
    via: str = ""
    """The load balancer whose PROXY protocol header named the client."""
    client_id: str | None = None
    """Client id of the last request that was looked at."""
    tap: Tap | None = None
    """Where the connection is recorded."""
    now_ns: int = 0
    """When the event being handled came."""
    out: list[Action] = field(default_factory=list)
    """What is to be done about it, in order."""
    opaque: bool = False
    """Framing is lost: between frames all bytes of both directions pass unread."""
    over: bool = False
    cause: str = ""
    """Why the connection ended."""

    def ended_by(self, cause: str) -> None:
        self.cause = self.cause or cause
