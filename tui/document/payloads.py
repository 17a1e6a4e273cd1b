"""Keys and values of records as lines: the fields that their schemas tell, each with its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.analyzer.render.payloads import (
    EXPLAINED,
    error_text,
    has_places,
    piece_text,
    pieces_below,
    schema_title,
)
from kafkascope.analyzer.text import escaped
from kafkascope.schemas.model import Piece, is_unread
from kafkascope.tui.data.decoding import ONE
from kafkascope.tui.document.tree import SHOWN, Item, Space
from kafkascope.tui.limits import LIMITS

if TYPE_CHECKING:
    from kafkascope.dissectors.codec.tree import Node
    from kafkascope.dissectors.records.records import Header
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.framing import Side


class PayloadLines:
    """Makes the lines below the keys and values of one records field."""

    def __init__(self, payloads: Payloads, topic: str | None, spaces: list[Space]) -> None:
        """`spaces`: those of the tree; payloads that are compressed add one."""
        self._payloads, self._topic, self._spaces = payloads, topic, spaces

    def slow(self, record: Node) -> bool:
        """Return whether decoding a record may query a schema registry, or wait for another
        query."""
        headers = headers_of(record)
        return ONE.locked() or any(
            isinstance(child.value, bytes)
            and not self._payloads.ready(_side(child), child.value, headers)
            for child in record.children
            if child.name in ("key", "value")
        )

    def describe(self, item: Item, node: Node, headers: list[Header]) -> None:
        """Say on the line of a key or value how it was written, and put its fields below."""
        data = node.value
        if not isinstance(data, bytes) or len(data) > LIMITS.payload_bytes:
            return
        with ONE:
            decoded = self._payloads.decode(self._topic, _side(node), data, headers)
            if decoded is None:
                return
            found, whole = decoded.found, None
            if found is not None and len(found.data) <= EXPLAINED:
                whole = found.codec.explain(found.data)
        item.value = f"{schema_title(decoded)} {item.value}"
        start = node.end - len(data)
        if decoded.error is not None:
            at = min(start + decoded.error.offset, item.end)
            text = error_text(decoded.error)
            item.adopt([Item("", f"! {text}", at, item.end, item.space, kind="error")])
        if found is None:
            return
        if whole is None:
            text = f"more than {EXPLAINED >> 10} KB: the tab Records has its fields"
            item.adopt([Item("", text, item.start, item.end, item.space, kind="note")])
            return
        space, start = item.space, start + found.at
        if not has_places(decoded, data):
            self._spaces.append(Space("Unpacked", found.data))
            space, start = len(self._spaces) - 1, 0
        if whole.pieces:
            item.adopt(_lines(pieces_below(whole), 0, start, space))
        elif decoded.error is None:
            item.adopt([_line(whole, start, space)])


def headers_of(record: Node) -> list[Header]:
    pairs = (child.children for child in record.children if child.name.startswith("header["))
    return [(name.value, value.value) for name, value in pairs]


def _side(node: Node) -> Side:
    return "key" if node.name == "key" else "value"


def _lines(pieces: list[Piece], first: int, start: int, space: int) -> list[Item]:
    """Return the lines of pieces from one on, and one that makes those of the rest."""
    stop = first + SHOWN
    items = [_line(each, start, space) for each in pieces[first:stop]]
    if stop < len(pieces):
        begin, end = start + pieces[stop].begin, start + pieces[-1].end
        rest = Item("", f"... {len(pieces) - stop:,} more", begin, end, space, kind="note")
        rest.make = lambda: _lines(pieces, stop, start, space)
        items.append(rest)
    return items


def _line(piece: Piece, start: int, space: int) -> Item:
    value = piece.value
    item = Item(
        escaped(piece.name),
        piece_text(piece),
        start + piece.begin,
        start + piece.end,
        space,
        kind="error" if is_unread(piece) else "",
        raw=value if isinstance(value, str) else None,
    )
    below = pieces_below(piece)
    if below:
        item.make = lambda: _lines(below, 0, start, space)
    return item
