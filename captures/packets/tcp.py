"""TCP headers: from a captured record to a `Segment`, and 32-bit sequence arithmetic. Stateless."""

from __future__ import annotations

from struct import unpack_from
from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint, Packet
from kafkascope.captures.packets.ip import CUT, FRAGMENT, MALFORMED, Fragment, payload_of
from kafkascope.captures.packets.link import CUT_SHORT, LINK_TYPES, LINUX_SLL, LINUX_SLL2, NOT_IP
from kafkascope.kernel.headers import fingerprint

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10

END_OF_OPTIONS: Final = 0
NO_OPERATION: Final = 1
WINDOW_SCALE: Final = 3
UNKNOWN: Final = -1

MASK: Final = 0xFFFF_FFFF
NOT_IP_REASON: Final = "not ip"
UNKNOWN_LINK: Final = "unknown link type"

# A distance from here on is negative: no window (RFC 7323: at most 1 GiB) reaches back further,
# while a capture that lost much may jump ahead by more than half the sequence space.
BEHIND: Final = 3 << 30


def distance(start: int, end: int) -> int:
    """Return the bytes from sequence number `start` to `end`, across the wrap-around: from -2**30
    to 3 * 2**30 - 1."""
    ahead = (end - start) & MASK
    return ahead - (1 << 32) if ahead >= BEHIND else ahead


class Segment(NamedTuple):
    """The TCP part of a packet. `flow` is one direction: addresses and ports as they are on the
    wire."""

    packet: int
    time_ns: int
    file: int
    at: int
    """Offset in the file of the payload's first byte."""
    flow: bytes
    """Source address, destination address, source port, destination port: 12 or 36 bytes."""
    seq: int
    ack: int
    flags: int
    payload: bytes | memoryview
    """Payload bytes that were captured."""
    length: int
    """Payload bytes on the wire; more than `len(payload)` when the snaplen cut it."""
    copy: int
    """Equal in exact copies of this segment, and hardly ever in others: see
    `kernel.headers.fingerprint`."""
    interface: int
    """Interface that captured it: its number in the file. Above 32 bits the index of Linux cooked
    v2, or the direction of v1, which has no index: a packet that is forwarded comes in, then goes
    out."""
    window: int = UNKNOWN
    """Receive window as in the header, not scaled; `UNKNOWN` where it was cut off."""
    scale: int = UNKNOWN
    """Window scale of a SYN (RFC 7323); `UNKNOWN` without that option."""


def reverse(flow: bytes) -> bytes:
    """Return the flow of the other direction."""
    half = len(flow) - 4 >> 1
    return flow[half : 2 * half] + flow[:half] + flow[-2:] + flow[-4:-2]


def endpoints(flow: bytes) -> tuple[Endpoint, Endpoint]:
    """Return the source and destination of a flow, spelled for people."""
    half = len(flow) - 4 >> 1
    source_port, destination_port = unpack_from(">HH", flow, 2 * half)
    return (
        Endpoint(host_text(flow[:half]), source_port),
        Endpoint(host_text(flow[half : 2 * half]), destination_port),
    )


def host_text(address: bytes) -> str:
    """Return the text of an address of 4 or 16 bytes, as in `Endpoint`."""
    if len(address) == 4:
        return f"{address[0]}.{address[1]}.{address[2]}.{address[3]}"
    from ipaddress import IPv6Address  # only captures with IPv6 pay for it

    return str(IPv6Address(address))


def segment_of(packet: Packet) -> Segment | str:
    """Return the TCP segment in a record, or the reason why there is none (see `ip`)."""
    number, time_ns, link_type, data, wire, file, at, interface = packet
    link = LINK_TYPES.get(link_type)
    if link is None:
        return UNKNOWN_LINK
    try:
        start = link[1](data)
        found = NOT_IP_REASON if start == NOT_IP else payload_of(data, start, wire)
    except CUT_SHORT:
        return CUT
    if isinstance(found, str):
        return found
    if isinstance(found, Fragment):
        return FRAGMENT
    addresses, header, size, ident = found
    captured = len(data)
    # Window, checksum and options may be cut off: no bytes are lost without them.
    if captured < header + 14:
        return CUT if size >= 20 else MALFORMED
    seq, ack, offset, flags = unpack_from(">4xIIBB", data, header)
    length = size - ((offset >> 4) << 2)
    if length < 0 or offset < 0x50:
        return MALFORMED
    begin = header + size - length
    if link_type == LINUX_SLL2:
        interface |= int.from_bytes(data[4:8], "big") << 32
    elif link_type == LINUX_SLL:
        interface |= int.from_bytes(data[:2], "big") << 32
    window = UNKNOWN
    if captured >= header + 16:
        window = int.from_bytes(data[header + 14 : header + 16], "big")
    if ident <= 0:
        ident = int.from_bytes(data[header + 16 : header + 18], "big")
    flow = addresses + bytes(data[header : header + 4])
    return Segment(
        number,
        time_ns,
        file,
        at + begin,
        flow,
        seq,
        ack,
        flags,
        data[begin : begin + length],
        length,
        fingerprint(flow, seq, ack, ident, length, flags),
        interface,
        window,
        scale_in(data[header + 20 : begin]) if flags & SYN else UNKNOWN,
    )


def scale_in(options: bytes | memoryview) -> int:
    """Return the window scale in the options of a TCP header, at most 14 (RFC 7323, 2.3);
    `UNKNOWN` without one."""
    at = 0
    while at + 2 < len(options) and options[at] != END_OF_OPTIONS:
        if options[at] == WINDOW_SCALE:
            return min(options[at + 2], LIMITS.window_scale)
        at += 1 if options[at] == NO_OPERATION else max(2, options[at + 1])
    return UNKNOWN
