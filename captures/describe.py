"""Describe one packet for people, down to TCP, with scapy: for a few packets on screen, not in
bulk."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

from kafkascope.captures.model import Packet
from kafkascope.captures.packets.link import LINK_TYPES

_LAYERS: Final = {
    0: ("scapy.layers.l2", "Loopback"),
    1: ("scapy.layers.l2", "Ether"),
    9: ("scapy.layers.ppp", "PPP"),
    51: ("scapy.layers.ppp", "PPPoE"),
    108: ("scapy.layers.l2", "Loopback"),
    105: ("scapy.layers.dot11", "Dot11"),
    113: ("scapy.layers.l2", "CookedLinux"),
    127: ("scapy.layers.dot11", "RadioTap"),
    276: ("scapy.layers.l2", "CookedLinuxV2"),
}
"""LINKTYPE_ number -> where scapy keeps its layer."""
# A list of packets between backslashes; its elements are drawn below it, behind a bar.
_EMPTY: Final = re.compile(r"^ *\\\w+ *\\\n(?! *\|)", re.MULTILINE)


def describe(packet: Packet) -> str:
    """Return lines with the packet's headers, field by field, and the size of the payload."""
    title = (
        f"packet {packet.number}: {packet.length} bytes on the wire, {len(packet.data)} captured"
    )
    layers = _layer(packet)
    if layers is None:
        name = LINK_TYPES.get(packet.link_type, (f"link type {packet.link_type}", None))[0]
        return f"{title}\n  {name}: not dissected\n"
    try:
        return f"{title}\n{_text_of(layers)}"
    finally:
        _take_apart(layers)


def _text_of(layers: Any) -> str:
    payload = layers
    while payload.payload:
        above, payload = payload, payload.payload
        # What nobody dissects may be a part of a segment: in a fragment, or in a tunnel.
        if payload.name in ("TCP", "Raw"):
            above = payload if payload.name == "TCP" else above
            size = len(above.payload)
            _take_apart(above)
            return f"{_shown(layers)}payload: {size} bytes\n"
    return _shown(layers)


def _shown(layers: Any) -> str:
    """Return what scapy shows, without lists that are empty: `\\options   \\`."""
    return _EMPTY.sub("", layers.show(dump=True))


def _take_apart(layers: Any) -> None:
    """Part each layer from the one below: together they are a circle, and each holds its data."""
    while layers.payload:
        inner = layers.payload
        layers.remove_payload()
        layers = inner


def _layer(packet: Packet) -> Any:
    from importlib import import_module

    logging.getLogger("scapy.runtime").setLevel(logging.ERROR)  # it warns of missing routes
    import_module("scapy.layers.inet")
    import_module("scapy.layers.inet6")
    data = bytes(packet.data)
    if packet.link_type in (12, 14, 101, 228, 229) and data:
        six = data[0] >> 4 == 6
        module, name = ("scapy.layers.inet6", "IPv6") if six else ("scapy.layers.inet", "IP")
    elif packet.link_type in _LAYERS:
        module, name = _LAYERS[packet.link_type]
    else:
        return None
    return getattr(import_module(module), name)(data)
