"""Decoded messages as text: an indented tree, optionally with the bytes of each field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kafkascope.analyzer.render.values import PLAIN, Labels, plain_text
from kafkascope.analyzer.text import escaped
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.codec.tree import REST, Node, annotate
from kafkascope.dissectors.embedded.masked_tree import masked_tree
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Layout, Slot
from kafkascope.dissectors.values import Uuid

# Bytes beside a field's name; longer ones stand below it.
HEX_COLUMN: Final = 8
DUMP_WIDTH: Final = 16
_DOTS: Final = bytes(byte if 32 <= byte < 127 else ord(".") for byte in range(256))
"""What stands for each byte in a dump."""
RANGE: Final = ["min_version", "max_version"]
"""Fields of a range of versions, after the one that says of what."""
# Characters of a text in a tree on a terminal.
SHORT_TEXT: Final = 200


def shown(value: Any, *, full: bool = True) -> str:
    if isinstance(value, bytes) and not isinstance(value, Uuid):
        return f"{len(value)} bytes" + (f" {_preview(value)}" if value else "")
    text = plain_text(value)
    if full or not isinstance(value, str) or len(text) <= SHORT_TEXT + 2:
        return text
    return f'{text[: SHORT_TEXT + 1]}"...'


def _preview(value: bytes) -> str:
    """Up to 32 bytes: as text where all of it is text."""
    head = value[:32]
    more = "..." if len(value) > 32 else ""
    if all(32 <= byte < 127 for byte in head):
        return f'"{head.decode("ascii")}"{more}'
    return head.hex(" ") + more


class TreeText:
    """Prints messages of one frame; `inside` gives the lines below a bytes field, by its path."""

    def __init__(
        self,
        data: bytes,
        *,
        show_hex: bool = False,
        mask: bool = False,
        inside: Callable[[Node, str], Iterator[str]] | None = None,
        labels: Labels = PLAIN,
        ranges: bool = False,
    ) -> None:
        """`ranges`: structs of a name with the range of its versions take one line."""
        self.data, self.show_hex, self.mask = data, show_hex, mask
        self.inside, self.labels = inside, labels
        self.ranges = ranges and not show_hex
        self.end = 0
        """Offset after the message that was printed last."""

    def message(self, layout: Layout, at: int) -> Iterator[str]:
        root = (masked_tree if self.mask else annotate)(layout, self.data, at)
        self.end = root.end
        yield from self._line(root, 0, layout.title, leaf=False)
        for child in root.children:
            yield from self._node(child, 1, "", root.value)

    def _node(
        self, node: Node, depth: int, around: str, beside: Any, array: Slot | None = None
    ) -> Iterator[str]:
        """`beside`: the struct that contains the node; `array`: the field that it is an element
        of."""
        slot = node.slot
        if slot is None and node.name == REST:
            text = f"... {node.value:,} more, {node.end - node.start:,} bytes, not shown"
            yield from self._line(node, depth, text, leaf=False)
            return
        path = path_of(around, node.name)
        if not self.show_hex and is_noise(node):
            return
        if is_list(node):
            count = "null" if node.value is None else len(node.value)
            yield from self._line(node, depth, f"{node.name}: {count}", leaf=not node.children)
        elif self.ranges and is_range(node):
            yield f"{'  ' * depth}{self._range(node)}"
            return
        elif is_struct(node):
            yield from self._line(node, depth, node.name, leaf=False)
        else:
            value, of = node.value, slot or array
            label = "" if of is None or node.secret else self.labels.of(of.field, value, beside)
            text = f"{node.name}: {shown(value)}{' ' if label else ''}{label}"
            yield from self._line(node, depth, text, leaf=not node.children)
            if self.inside is not None and isinstance(node.value, bytes) and slot is not None:
                blank = " " * (12 + 3 * HEX_COLUMN) if self.show_hex else ""
                for line in self.inside(node, path):
                    yield f"{blank}{'  ' * (depth + 1)}{line}"
            if not self.show_hex and not _has_fields(node):
                return
        for child in node.children:
            if child.secret and node.secret:
                yield from self._line(child, depth + 1, child.name, leaf=True)
            else:
                inner = node.value if isinstance(node.value, dict) else beside
                of = slot if child.name.startswith("[") else None
                yield from self._node(child, depth + 1, path, inner, of)

    def _range(self, node: Node) -> str:
        """A name with the range of its versions: `Fetch 4-17`."""
        named, low, high = (child for child in node.children if child.slot is not None)
        assert named.slot is not None
        label = self.labels.of(named.slot.field, named.value, node.value)
        name = label or (escaped(named.value) if isinstance(named.value, str) else named.value)
        versions = low.value if low.value == high.value else f"{low.value}-{high.value}"
        return f"{name} {versions}"

    def _line(self, node: Node, depth: int, text: str, *, leaf: bool) -> Iterator[str]:
        if not self.show_hex:
            yield "  " * depth + text
            return
        size = node.end - node.start
        place = f"{node.start}-{node.end - 1}" if size > 1 else str(node.start) if size else "-"
        octets = self.data[node.start : node.end] if leaf else b""
        beside = octets.hex(" ") if len(octets) <= HEX_COLUMN else ""
        if node.secret:
            beside = "** " * min(len(octets), HEX_COLUMN)
        yield f"{place:<11} {beside:<{3 * HEX_COLUMN}}{'  ' * depth}{text}"
        if octets and not beside:
            yield from dump_lines(octets, node.start)


def dump_lines(octets: bytes, at: int) -> Iterator[str]:
    """Offset, sixteen bytes, and what of them is text."""
    for start in range(0, len(octets), DUMP_WIDTH):
        row = octets[start : start + DUMP_WIDTH]
        text = row.translate(_DOTS).decode("ascii")
        yield f"  {at + start:08x}  {row.hex(' '):<{3 * DUMP_WIDTH}} {text}"


def is_noise(node: Node) -> bool:
    """Lengths, counts, markers and empty tagged sections: bytes, but no news."""
    if node.slot is not None or node.name.startswith("["):
        return False
    if node.name == "_tagged_fields":
        return all(is_noise(child) for child in node.children)
    return node.name in ("count", "length", "marker", "size", "tag", "text", "data")


def is_list(node: Node) -> bool:
    """Whether the node is an array, if only an empty one or none."""
    return isinstance(node.value, list) or (
        node.slot is not None and isinstance(node.slot.wire, ArrayWire)
    )


def is_struct(node: Node) -> bool:
    """Whether the node has fields of its own, or is the section of its tags."""
    return isinstance(node.value, dict) or (node.value is None and node.name == "_tagged_fields")


def is_range(node: Node) -> bool:
    """Whether a struct is something with the range of its versions, and nothing else."""
    fields = [child.name for child in node.children if not is_noise(child)]
    return isinstance(node.value, dict) and len(fields) == 3 and fields[1:] == RANGE


def _has_fields(node: Node) -> bool:
    return any(child.slot is not None or child.children for child in node.children)


def path_of(around: str, name: str) -> str:
    """The dotted path of a node, as errors and embedded formats have it."""
    if name == "_tagged_fields":
        return around
    return f"{around}{name}" if name.startswith("[") or not around else f"{around}.{name}"


def holds_records(slot: Slot) -> bool:
    return isinstance(slot.wire, BytesWire) and slot.wire.records


def render_message(
    layouts: Sequence[tuple[Layout, int]],
    data: bytes,
    *,
    show_hex: bool = False,
) -> str:
    """All messages of a frame as text; each layout comes with its offset."""
    from kafkascope.analyzer.render.records import lines_inside

    def inside(node: Node, path: str) -> Iterator[str]:
        if node.slot is not None and holds_records(node.slot):
            yield from lines_inside(node)

    text = TreeText(data, show_hex=show_hex, inside=inside)
    return "".join(f"{line}\n" for layout, at in layouts for line in text.message(layout, at))


def text_of(value: Any) -> str:
    if isinstance(value, dict | list):
        text = dumps(value).decode("utf-8", "replace")
        return text if len(text) <= 200 else f"{text[:200]}..."
    return shown(value, full=False)
