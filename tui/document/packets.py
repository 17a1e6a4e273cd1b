"""The packets that carried an exchange: their headers, dissected when they are shown, and their
bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import Packet
from kafkascope.tui.document.tree import Item, Space, Tree
from kafkascope.tui.limits import LIMITS

_LAYER: Final = re.compile(r"#+\[ (.*) \]#+")
_PAYLOAD: Final = re.compile(r"payload: (\d+) bytes")


def packet_tree(exchange: Exchange, find: Callable[[set[int]], list[Packet]] | None) -> Tree:
    """Return a line for each packet, its layers below it; `NotKept` when they are gone."""
    sides = [side for side in (exchange.request, exchange.response) if side is not None]
    numbers = sorted({part.packet for side in sides for part in side.frame.parts})
    if find is None:
        return Tree([Item("", "the packets were not kept", kind="note")], [])
    spaces: list[Space] = []
    roots: list[Item] = []
    for packet in find(set(numbers[: LIMITS.packets])):
        layers, headers = _layers(packet)
        # Headers only: what follows may be of other exchanges, and hold a password.
        spaces.append(Space(f"Packet {packet.number}, headers", bytes(packet.data[:headers])))
        text = f"{packet.length} bytes on the wire, {len(packet.data)} captured"
        space = len(spaces) - 1
        roots.append(Item(f"packet {packet.number}", text, 0, headers, space, open=True))
        roots[-1].adopt(layers)
    if len(numbers) > LIMITS.packets:
        roots.append(Item("", f"... {len(numbers) - LIMITS.packets:,} more packets", kind="note"))
    if len(roots) == 1:
        for child in roots[0].children:
            child.open = True
    return Tree(roots or [Item("", "no packet is known", kind="note")], spaces)


def _layers(packet: Packet) -> tuple[list[Item], int]:
    """Return the lines of a packet, and how many bytes its headers have."""
    from kafkascope.captures.describe import describe

    out: list[Item] = []
    headers = 0
    for line in describe(packet).splitlines()[1:]:
        found = _LAYER.match(line.strip())
        payload = _PAYLOAD.match(line)
        if found:
            out.append(Item(found[1]))
        elif payload:
            headers = max(0, len(packet.data) - int(payload[1]))
            out.append(Item("payload", f"{payload[1]} bytes"))
        elif line.startswith(" ") and "=" in line and out:
            name, _, value = line.strip().partition("=")
            out[-1].adopt([Item(name.strip(), value.strip())])
        elif line.strip():
            out.append(Item("", line.strip()))
    return out, headers
