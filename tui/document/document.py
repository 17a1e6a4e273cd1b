"""One exchange as trees of lines that know their bytes. No widgets here.

Lines are made when their parent is opened; arrays show a hundred elements and count the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.conversation.tampering import effects_of
from kafkascope.analyzer.exchanges.embedded import embedded_of, may_hide
from kafkascope.analyzer.exchanges.records import fields_of, shareable
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.model import Exchange, Request, Response
from kafkascope.analyzer.render.exchange import (
    SASL_TOKEN,
    exchange_lines,
    header_layout,
    without_secrets,
)
from kafkascope.analyzer.render.records import lines_inside
from kafkascope.analyzer.render.stages import remarks, stage_bar, stage_list
from kafkascope.analyzer.render.tree import (
    holds_records,
    is_list,
    is_noise,
    is_struct,
    path_of,
    shown,
)
from kafkascope.analyzer.render.values import Labels, embedded_lines
from kafkascope.analyzer.text import safe
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Packet
from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.embedded import Embedded
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.embedded.masked_tree import masked_tree
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout, Slot
from kafkascope.dissectors.records.tree import NodeBudget, record_nodes
from kafkascope.tui.data.decoding import ONE
from kafkascope.tui.document.payloads import PayloadLines, headers_of
from kafkascope.tui.document.tree import Item, Space, Tree, limited

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads

# Lines up to which a tree is opened at first.
OPENED: Final = 40
TELLING: Final[tuple[str, ...]] = (
    *("name", "topic", "topic_name", "group_id", "partition_index", "partition", "index"),
)
"""Fields that describe their struct, before others."""
STAGES: Final = {
    "request transfer": "bar",
    "round trip": "dim",
    "server": "?",
    "server and round trip": "?",
    "wait": "wait",
    "response transfer": "good",
    "request queue": "!",
    "request handler": "?",
    "replicas": "wait",
    "purgatory": "wait",
    "response queue": "!",
    "send": "good",
    "outside of the broker": "dim",
}
"""Colours of the stages of an exchange."""
# Bytes of memory for the lines of all records of an exchange: some ten thousand of them.
RECORDS_LIMIT: Final = 32 << 20
# Bytes that a line takes besides its text.
LINE: Final = 300


class Document:
    """Makes the tabs of an exchange when they are first wanted."""

    def __init__(
        self,
        exchange: Exchange,
        names: TopicNames,
        hints: Callable[[], Iterable[str]] = tuple,
        find: Callable[[set[int]], list[Packet]] | None = None,
        payloads: Callable[[], Payloads | None] = lambda: None,
    ) -> None:
        """`hints` makes more lines of the context; `find` reads packets again by their numbers;
        `payloads` gives what decodes keys and values."""
        self.exchange = exchange
        self._names, self._hints, self._find = names, hints, find
        self._payloads = payloads
        self._trees: dict[str, Tree] = {}

    def has(self, tab: str) -> bool:
        """Return whether a tab was made already."""
        return tab in self._trees

    def forget(self, tab: str) -> None:
        self._trees.pop(tab, None)

    def tree(self, tab: str) -> Tree:
        """Return the lines of a tab; may take long. `CaptureError` when bytes are gone."""
        if tab not in self._trees:
            self._trees[tab] = self._made(tab)
        return self._trees[tab]

    def _made(self, tab: str) -> Tree:
        exchange, names = self.exchange, self._names
        match tab:
            case "Request" | "Response":
                message = exchange.request if tab == "Request" else exchange.response
                side = _Side(exchange, message, names, self._payloads())
                tree = side.tree(tab.lower())
                deeds = effects_of(exchange.notes)
                rules = [Item("proxy rule", deed, kind="mark") for deed in deeds]
                tree.roots[:0] = [*rules, *_stages(exchange)]
                tree.refresh()
                return tree
            case "Records":
                none = Item("", "no records", kind="note")
                return Tree(list(_records(exchange, names, self._payloads())) or [none], [])
            case "Packets":
                from kafkascope.tui.document.packets import packet_tree

                return packet_tree(exchange, self._find)
        return Tree(_context(exchange, names, self._hints()), [])

    def default_tab(self) -> str:
        """Return the tab to show first."""
        return "Response" if self.exchange.response is not None else "Request"


def _context(exchange: Exchange, names: TopicNames, hints: Iterable[str]) -> list[Item]:
    lines = exchange_lines(row_of(exchange, names), exchange, names, show_hex=False)
    head = [line.strip() for line in takewhile(bool, lines)]
    connection = exchange.connection
    there, back = connection.bytes
    ends = f"connection {connection.number}: {connection.a} to {connection.b}"
    sent = f"  {there} bytes there, {back} back"
    return nested([*head, ends, sent, *hints, f"exchange id {exchange.id}"])


def _stages(exchange: Exchange) -> Iterator[Item]:
    """Yield a bar of where the time went, with remarks, and its legend."""
    if stages := stage_list(exchange):
        bar = [(signs, STAGES[stage.name]) for signs, stage in stage_bar(stages)]
        legend = [(f"{stage.legend}  ", STAGES[stage.name]) for stage in stages]
        for parts in [*bar, (f"  {remarks(exchange)}", "")], legend:
            yield Item("", "".join(text for text, _ in parts).rstrip(), parts=parts)


def _records(exchange: Exchange, names: TopicNames, payloads: Payloads | None) -> Iterator[Item]:
    left = RECORDS_LIMIT
    for each in fields_of(exchange, names):
        topic = each.topic if each.topic is not None else "unknown topic"
        title = f"{topic}-{each.partition}"
        clean = shareable(each)
        if clean is None:
            yield Item(title, "holds secrets in a compressed batch, not shown", kind="note")
            continue
        node = Node("records", 0, len(each.data), clean)
        item = Item(title, f"{len(each.data)} bytes", open=True)
        lines: list[str] = []
        with ONE:
            for line in lines_inside(node, each, payloads) if left > 0 else ():
                lines.append(safe(line))
                left -= LINE + getsizeof(lines[-1])
                if left < 0:
                    break
        if left < 0:
            lines.append("... more is not shown: see kafkascope records")
        item.adopt(nested(lines))
        yield item


def nested(lines: Iterable[str]) -> list[Item]:
    """Return lines that are indented by two blanks a level as items below each other."""
    roots: list[Item] = []
    open_: list[tuple[int, Item]] = []
    for line in lines:
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        kind = "error" if text.startswith(("!", "error:")) else ""
        item = Item("", text, kind=kind, open=True)
        while open_ and open_[-1][0] >= indent:
            open_.pop()
        if open_:
            open_[-1][1].adopt([item])
        else:
            roots.append(item)
        open_.append((indent, item))
    return roots


class _Side:
    """Builds the tree of one message."""

    def __init__(
        self,
        exchange: Exchange,
        side: Request | Response | None,
        names: TopicNames,
        payloads: Payloads | None,
    ) -> None:
        self.exchange, self.side, self.names, self.payloads = exchange, side, names, payloads
        self.fields = fields_of(exchange, names)
        """The records fields that come next in the tree."""
        self.budget = NodeBudget()
        self.labels = Labels(names)
        self.spaces: list[Space] = []
        self.embedded: dict[str, Embedded] = {}
        self.data, self.holds_payloads = b"", False
        """Whether there are keys and values to decode."""
        self.secret_spans: list[tuple[int, int]] = []

    def tree(self, prefix: str) -> Tree:
        side = self.side
        if side is None:
            why = self.exchange.reason or "not seen"
            return Tree([Item("", f"no {prefix}: {why}", kind="note")], [])
        self.data = without_secrets(self.exchange, side.frame.payload, self.names)
        self.embedded = dict(embedded_of(self.exchange, side))
        space, size = Space("Wire", self.data), len(self.data)
        self.spaces.append(space)
        if self.exchange.api == SASL_TOKEN:
            space.data = b"*" * size
            return Tree([Item("SASL token", f"{size} bytes, not shown", 0, size)], self.spaces)
        roots: list[Item] = []
        end = 0
        for layout, at, path in self._layouts(side, prefix):
            try:
                root = masked_tree(layout, self.data, at)
            except DissectError:
                break
            end = root.end
            self.secret_spans += [(leaf.start, leaf.end) for leaf in root.leaves() if leaf.secret]
            roots.append(Item(layout.title, "", root.start, root.end, open=bool(path)))
            roots[-1].adopt(self.made(root, path, root.value))
        if side.decoded is not None and side.decoded.note:
            roots.append(Item("", side.decoded.note, kind="note"))
        roots += self._left(end, prefix)
        self._mask(space, side, end)
        _open_some(roots)
        return Tree(roots, self.spaces, slow=self.holds_payloads)

    def _layouts(self, side: Request | Response, prefix: str) -> Iterator[tuple[Layout, int, str]]:
        decoded = side.decoded
        if decoded is not None:
            # Bodies of messages without a header are told like headers' fields are: beside them.
            *header, (layout, at) = decoded.parts
            yield from ((each, begin, "") for each, begin in header)
            yield layout, at, prefix
        elif (layout_ := header_layout(self.exchange, side)) is not None:
            yield layout_, 0, ""

    def _left(self, end: int, name: str) -> list[Item]:
        size = len(self.data)
        start, text = end, f"{size - end} bytes"
        undecoded = next((each for each in self.exchange.undecoded if each.side == name), None)
        if undecoded is not None:
            more = f": {undecoded.text}" if undecoded.text else ""
            start = min(undecoded.offset, size)
            text = f"{undecoded.reason}, {undecoded.bytes} bytes{more}"
        elif end >= size:
            return []
        return [Item("undecoded", text, start, size, kind="error")]

    def _mask(self, space: Space, side: Request | Response, end: int) -> None:
        data = bytearray(self.data)
        for start, stop in self.secret_spans:
            data[start:stop] = b"*" * (stop - start)
        if end < len(data) and may_hide(self.exchange, side):
            data[end:] = b"*" * (len(data) - end)
        space.data = bytes(data)

    def made(self, node: Node, path: str, beside: Any) -> list[Item]:
        shown = (child for child in node.children if not is_noise(child))
        return limited([self._item(child, path, beside) for child in shown])

    def _item(self, node: Node, around: str, beside: Any) -> Item:
        slot = node.slot
        dotted = path_of(around, node.name)
        path = "" if node.name.startswith("[") or not around else _without_indexes(dotted)
        item = Item(node.name, "", node.start, node.end)
        if is_list(node):
            item.value = "null" if node.value is None else f"({len(node.value)})"
        elif is_struct(node):
            item.value = _telling(node, self._named)
        else:
            item.path = path
            item.raw = node.value
            item.value = shown(node.value, full=False) + self._named(slot, node.value, beside)
            if slot is not None and slot.name == "error_code" and node.value:
                item.kind = "error"
            self._below(item, node, dotted)
        inner = node.value if isinstance(node.value, dict) else beside
        if slot is None or not isinstance(node.value, bytes | str):
            item.adopt(self.made(node, dotted, inner))
        return item

    def _named(self, slot: Slot | None, value: Any, around: Any) -> str:
        if slot is None:
            return ""
        label = self.labels.of(slot.field, value, around if isinstance(around, dict) else {})
        return f" {label}" if label else ""

    def _below(self, item: Item, node: Node, dotted: str) -> None:
        """Put what the bytes of a field hold below its line."""
        if node.slot is not None and holds_records(node.slot) and node.value:
            item.value = f"{len(node.value)} bytes"
            start = node.end - len(node.value)
            unaligned = node.slot.name == "unaligned_records"
            lines = self._payload_lines()
            how: Any = {"unaligned": unaligned, "budget": self.budget}
            item.make = lambda: [
                self._record(each, 0, lines)
                for each in record_nodes(self.data, start, node.end, **how)
            ]
        else:
            found = self.embedded.get(dotted.partition(".")[2])
            if found is not None:
                item.adopt(self._spread(nested(embedded_lines(found)), item))

    def _spread(self, items: list[Item], over: Item) -> list[Item]:
        """Give lines without bytes of their own the range of the field's."""
        for item in items:
            item.start, item.end, item.space = over.start, over.end, over.space
            self._spread(item.made, over)
        return items

    def _payload_lines(self) -> PayloadLines | None:
        """Return what decodes keys and values of the next records field; None where they are not
        decoded."""
        field = next(self.fields, None)
        if self.payloads is None or field is None or is_internal(field.topic, field.topic_id):
            return None
        self.holds_payloads = True
        return PayloadLines(self.payloads, field.topic, self.spaces)

    def _record(self, node: Node, space: int, lines: PayloadLines | None) -> Item:
        """Return the line of a batch, a record or a part of it. `lines`: decodes keys and values,
        where these are no markers of transactions."""
        value = node.value
        text = shown(value, full=False) if isinstance(value, bytes) or value is None else str(value)
        if value is None:
            text = "null" if node.name in ("key", "value") else _about(node)
        if node.slot is not None:
            text += self._named(node.slot, value, {})
        kind = "error" if node.name == "undecoded" or "(wrong)" in text else ""
        item = Item(node.name, text, node.start, node.end, space, kind=kind, raw=value)
        if lines is not None and _is_control(node):
            lines = None
        kids = [child for child in node.children if child.name not in ("length", "data")]
        if lines is not None and node.name.startswith(("record[", "message")):
            item.slow = lines.slow(node)
            item.make = lambda: self._parts(node, kids, space, lines)
        elif kids:
            item.make = lambda: limited([self._record(child, space, lines) for child in kids])
        inside = node.inside
        if inside is not None:

            def expanded() -> list[Item]:
                self.spaces.append(Space("Decompressed", inside.data))
                number = len(self.spaces) - 1
                return limited([self._record(child, number, lines) for child in inside.nodes])

            item.make = expanded
        return item

    def _parts(self, record: Node, kids: list[Node], space: int, lines: PayloadLines) -> list[Item]:
        """Return the lines of the parts of a record, its key and value decoded."""
        headers = headers_of(record)
        items = []
        for child in kids:
            item = self._record(child, space, lines)
            if child.name in ("key", "value") and child.inside is None:
                lines.describe(item, child, headers)
            items.append(item)
        return limited(items)


def _is_control(node: Node) -> bool:
    """Return whether a node is a batch of markers, which Kafka itself writes."""
    attributes = next((each for each in node.children if each.name == "attributes"), None)
    return node.name == "record_batch" and " control" in str(attributes and attributes.value)


def _telling(node: Node, named: Callable[[Any, Any, Any], str]) -> str:
    """Describe a struct on its line, by a few of its plain fields."""
    leaves = {
        child.name: child
        for child in node.children
        if child.slot is not None
        and not (is_list(child) or is_struct(child) or isinstance(child.value, bytes))
        and child.value not in (None, "")
        and not child.secret
    }
    names = [name for name in TELLING if name in leaves]
    if "error_code" in leaves and leaves["error_code"].value:
        names.append("error_code")
    names += [name for name in leaves if name not in names and name != "error_code"]
    words = []
    for name in names[:3]:
        child = leaves[name]
        label = named(child.slot, child.value, node.value)
        words.append(f"{name} {shown(child.value, full=False)}{label}")
    return ", ".join(words)


def _about(node: Node) -> str:
    """Describe a record by key and value, or a batch by offset and count."""
    words = []
    for child in node.children:
        if child.name in ("key", "value") and node.name.startswith("record["):
            words.append(f"{child.name} {shown(child.value, full=False)}")
        elif child.name in ("base_offset", "offset", "records_count", "record_count"):
            words.append(f"{child.name} {child.value}")
    return "  ".join(words)


def _without_indexes(path: str) -> str:
    out, depth = "", 0
    for char in path:
        depth += char == "["
        if not depth:
            out += char
        depth -= char == "]"
    return out


def _open_some(roots: list[Item]) -> None:
    """Open lines from the top as long as all fit on a screen."""
    level = [root for root in roots if root.open]
    left = OPENED - len(roots) - sum(len(item.children) for item in level)
    while level:
        below = []
        for parent in level:
            for item in parent.children:
                if item.make is not None or not item.foldable or len(item.children) > left:
                    continue
                item.open = True
                left -= len(item.children)
                below.append(item)
        level = below
