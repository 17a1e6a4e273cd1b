"""The nouns of a request log: a line of the request logger, and the completed request in it.

    blocks of a file -> LogLine | Unparsed -> Completed | Unparsed

Bodies are those that a frame of the same API and version gives. Values only. Time is integer
nanoseconds since 1970 UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.layout import Layout
    from kafkascope.dissectors.values import Uuid

Form = Literal["json", "text"]
"""JSON since 2.8, text before."""
Address: TypeAlias = tuple[str, int]
"""Host as `ipaddress` prints it (compressed, without brackets), and port."""

CUT: Final = "cut"
TOO_LONG: Final = "longer than 16 MiB"
TOO_DEEP: Final = "nested too deep"
NOT_UNDERSTOOD: Final = "not understood"
SEVERAL: Final = "with several events (write one a line, as jq -c '.[]' does)"
NO_TIME: Final = "without a time stamp"

NOT_LOGGED: Final = "not in the line"
"""Gap of a body where the broker wrote none: the logger was switched on while the request was in
the broker; a Produce with acks=0 has no response."""
NO_RESPONSES: Final = "lines of this release hold no responses"


class LogLine(NamedTuple):
    """A line of the request logger, without what surrounds it."""

    offset: int
    """Offset of the first byte of the first part, in the uncompressed input."""
    size: int
    """Up to the end of the last part, with all that surrounds it."""
    number: int
    """Number of the first part, from 1 on."""
    message: bytes
    """From `Completed request:` on, with what the pattern writes after it."""
    time: str
    """The broker's time stamp in the form of ISO 8601, mostly without a zone; "" without one."""
    level: str
    """In capitals, "" without one."""
    arrived: str
    """Time stamp of the container runtime, with a zone, "" without one."""


class Unparsed(NamedTuple):
    """A line that begins as one of the request logger, of which nothing can be used."""

    offset: int
    number: int
    reason: str


class BrokerTimes(NamedTuple):
    """Where the time went inside the broker, in ns; None where the form lacks it. Before 2.6 the
    parts overlap."""

    request_queue_ns: int | None
    local_ns: int | None
    remote_ns: int | None
    response_queue_ns: int | None
    send_ns: int | None
    throttle_ns: int | None
    """Since 2.6 what the broker throttles; before, something else: prefer the response's own."""


class LoggedConnection(NamedTuple):
    """The connection of a line. A line of 0.8 has only the client's side."""

    broker: Address | None
    client: Address
    channel: str
    """Kafka's index, which separates connections from the same port: "3" since 1.0, "1-3" since
    4.0, "" before."""


@dataclass(slots=True)
class LoggedBody:
    """One side of a completed request."""

    body: Body | None
    """Set to None by who has read it."""
    layout: Layout | None
    """Layout of the body; of version 0 for an ApiVersions response that fell back."""
    gap: str
    """Why there is no body, or "" if there is one."""
    unknown: tuple[str, ...] = ()
    """Fields that the line does not hold, dotted from the top without indexes
    (`topic_data.partition_data.records`); the body has their defaults. What is below such a field
    is unknown as well."""


class LineHead(NamedTuple):
    """What a line says before the connection, as `Completed` has it."""

    api_key: int
    api_name: str
    api_version: int
    correlation_id: int
    client_id: str | None
    request: LoggedBody
    response: LoggedBody
    record_sizes: dict[tuple[str | Uuid, int], int]


class Completed(NamedTuple):
    """One completed request."""

    form: Form
    written_ns: int
    """Time of the line: when the response was sent."""
    level: str
    total_ns: int
    times: BrokerTimes
    api_key: int
    """-1 where only a name stands in the line, which this program does not know."""
    api_name: str
    """As in the line: PRODUCE, FETCH; class names without `Request` in 0.8 and 0.9."""
    api_version: int
    correlation_id: int
    client_id: str | None
    forwarded: bool
    deprecated: bool
    """Whether 4.0 removes this version, as the line says (3.7 and later)."""
    connection: LoggedConnection
    security_protocol: str
    principal: str
    """With its type: `User:alice`."""
    listener: str
    software_name: str
    software_version: str
    """"" for unknown."""
    request: LoggedBody
    response: LoggedBody
    record_sizes: dict[tuple[str | Uuid, int], int]
    """Bytes of records by topic (name, or id where the body has only that) and partition, of the
    Produce request or the Fetch response."""
    conversions_ns: int
    temporary_bytes: int
