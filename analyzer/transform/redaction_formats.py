"""Formats inside bytes fields, with what `Redaction` makes of their texts: for bodies that stay
readable after their names were changed. Bytes of a format that is not here go.

    subscription, assignment    int16 version | message of consumers or of Connect workers
    user data                   of sticky assignors and of Streams members
    principal, address          of an Envelope
    node                        what is in a node of ZooKeeper: JSON
    metrics                     of clients: an empty message takes their place
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
from kafkascope.analyzer.transform.names.znodes import renamed_node
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded.groups import (
    CONNECT_ASSIGNMENT,
    CONNECT_SUBSCRIPTION,
    STICKY_USER_DATA,
)
from kafkascope.dissectors.embedded.table import FORMATS, Format
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.layout import Layout, resolve
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.registry import message, read_layout, write_layout
from kafkascope.dissectors.schema import Message

Change: TypeAlias = Callable[[Layout, Body], Body]
Around: TypeAlias = Mapping[str, Any]
FormatWriter: TypeAlias = Callable[[bytes, Change, Pseudonyms, Around], bytes]
"""(bytes, what becomes of a body, names, the struct around) -> the bytes to write; `DissectError`
when they are of another format."""


def _whole(declared: Message, version: int, value: bytes, at: int, change: Change) -> bytes:
    """A message that fills the bytes from `at` on; what stands before it stays."""
    layout = resolve(declared, min(version, declared.versions.high))
    body, end = read_layout(layout, value, at)
    if end < len(value):
        raise Malformed(f"{len(value) - end} bytes left over", offset=end)
    return value[:at] + write_layout(layout, change(layout, body))


def _versioned(declared: Message, value: bytes, change: Change) -> bytes:
    return _whole(declared, _number(">h", value), value, 2, change)


def _number(form: str, value: bytes) -> int:
    if len(value) < struct.calcsize(form):
        raise Truncated("the version is missing")
    (version,) = struct.unpack_from(form, value)
    return int(version)


def _subscription(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    return _first(
        lambda: _versioned(message("ConsumerProtocolSubscription"), value, change),
        lambda: _versioned(CONNECT_SUBSCRIPTION, value, change),
    )


def _assignment(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    return _first(
        lambda: _versioned(message("ConsumerProtocolAssignment"), value, change),
        lambda: _versioned(CONNECT_ASSIGNMENT, value, change),
    )


def _allocation(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    return _versioned(CONNECT_ASSIGNMENT, value, change)


def _user_data(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    if len(value) == 4 and not value[0]:
        return value  # the generation of a cooperative assignor
    streams = message("SubscriptionInfoData")
    return _first(
        lambda: _whole(streams, _number(">i", value), value, 0, change),
        lambda: _whole(STICKY_USER_DATA, 1, value, 0, change),
        lambda: _whole(STICKY_USER_DATA, 0, value, 0, change),
    )


def _first(*ways: Callable[[], bytes]) -> bytes:
    """What the first of them gives that fits."""
    for way in ways[:-1]:
        try:
            return way()
        except DissectError:
            continue
    return ways[-1]()


def _principal(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    return _versioned(message("DefaultPrincipalData"), value, change)


def _address(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    if len(value) not in (4, 16):
        raise Malformed(f"an address has 4 or 16 bytes, not {len(value)}")
    return ip_address(names.host(str(ip_address(value)))).packed


def _metrics(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    return compress(around.get("compression_type", 0), b"")


WRITERS: Final[dict[Format, FormatWriter]] = {
    "subscription": _subscription,
    "assignment": _assignment,
    "allocation": _allocation,
    "user data": _user_data,
    "principal": _principal,
    "address": _address,
    "metrics": _metrics,
    "node": lambda value, change, names, around: renamed_node(names, value),
}
"""Format -> how its bytes are written anew; others go."""


def writer_of(message: str, field: str) -> FormatWriter | None:
    """How the bytes of a field are written anew; None when they go."""
    form = FORMATS.get((message, field))
    return WRITERS.get(form) if form is not None else None
