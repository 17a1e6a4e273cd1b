"""One exchange as text: what it is, then each message as a tree, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.bodies.fetch_sessions import by_topic
from kafkascope.analyzer.bodies.nodes import NodeAddresses
from kafkascope.analyzer.exchanges.embedded import embedded_of, may_hide, token_of
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.records import fields_of, shareable
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange, Frame, Request, Response
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.render.records import lines_inside
from kafkascope.analyzer.render.stages import stage_lines
from kafkascope.analyzer.render.tree import TreeText, dump_lines, holds_records
from kafkascope.analyzer.render.values import Labels, embedded_lines
from kafkascope.analyzer.spans import spans
from kafkascope.analyzer.text import safe
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import (
    layout_of,
    request_header_version,
    response_header_version,
)
from kafkascope.times import iso_ns

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads

SASL_TOKEN: Final = "SaslToken"
# Topics and partitions on one line.
MOST_TOPICS: Final = 20
# Undecoded bytes that are shown without `--hex`.
PREVIEW: Final = 64


def exchange_lines(
    row: Row,
    exchange: Exchange,
    names: TopicNames,
    nodes: NodeAddresses | None = None,
    *,
    show_hex: bool,
    ranges: bool = False,
    payloads: Payloads | None = None,
) -> Iterator[str]:
    """All lines; secrets are masked. Topics and nodes by what is known of their ids. `ranges`: one
    line for each API of an ApiVersions answer. `payloads`: decodes keys and values of records.

    Names come from traffic: what a terminal would obey is taken out.
    """
    parts: list[Iterable[str]] = [_title(row, exchange), _session(exchange, names)]
    if exchange.sizeless and show_hex:
        parts.append(("  a request log has no bytes of messages: fields without them follow",))
        show_hex = False
    options: Any = {"show_hex": show_hex, "ranges": ranges, "payloads": payloads}
    for name, side in (("request", exchange.request), ("response", exchange.response)):
        if side is not None:
            title = _side_title(name, side.frame)
            if exchange.sizeless:
                title = f"{name}: line {side.frame.parts[0].packet}"
            parts.append(("", title))
            parts.append(_side(exchange, side, names, Labels(names, nodes), **options))
    yield from map(safe, chain.from_iterable(parts))


def _session(exchange: Exchange, names: TopicNames) -> Iterator[str]:
    """Partitions that an incremental Fetch implies."""
    session = exchange.fetch_session
    if session is None:
        return
    number = "" if session.id is None else f" {session.id}"
    title = f"  session{number} epoch {session.epoch}"
    implied = session.implied
    if implied is None:
        yield f"{title}: started before the capture; its other partitions are unknown"
        return
    if implied.partitions is None:
        yield f"{title}: {implied.size:,} partitions, not listed"
        return
    topics = by_topic(implied.partitions, names)
    shown = [f"{topic} {_ranges(numbers)}" for topic, numbers in topics.items()]
    more = f", and {len(shown) - MOST_TOPICS} more topics" if len(shown) > MOST_TOPICS else ""
    yield f"{title}: {', '.join(shown[:MOST_TOPICS]) or 'no partition'}{more}"


def _ranges(numbers: list[int]) -> str:
    """0-3,5 for [0, 1, 2, 3, 5]."""
    runs = spans(numbers)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _title(row: Row, exchange: Exchange) -> Iterator[str]:
    version = "" if row.api_version is None else f" v{row.api_version}"
    yield f"exchange {row.number}: {row.api or 'no Kafka message'}{version}"
    who = " ".join(part for part in (row.client_id or "", row.software) if part)
    user = f", user {row.user}" if row.user else ""
    inside = "" if row.tls is None else f", inside {row.tls.name}"
    via = f" via {row.via}" if row.via else ""
    client = f"{row.client_address}{via} ({who or 'no client id'}{user})"
    yield f"  from {client} to {row.broker_address}{inside}"
    wait = f", of which {duration(row.wait_ns)} waited" if row.wait_ns else ""
    latency = "" if row.latency_ns is None else f", {duration(row.latency_ns)}{wait}"
    yield f"  {iso_ns(row.time_ns)}, connection {row.connection}{latency}"
    yield from (f"  {line}" for line in stage_lines(exchange))
    yield f"  {row.state}: {result(row)}"
    for note in row.notes:
        yield f"  {note.severity}: {note.text}"
    for each in row.undecoded:
        path = f" at {each.path}" if each.path else ""
        text = f": {each.text}" if each.text else ""
        yield (
            f"  {each.side}: {each.bytes} bytes from byte {each.offset} on "
            f"not decoded ({each.reason}{path}){text}"
        )


def _side_title(name: str, frame: Frame) -> str:
    packets = sorted({part.packet for part in frame.parts})
    some = ", ".join(map(str, packets[:8])) + (", ..." if len(packets) > 8 else "")
    noun = "packet" if len(packets) == 1 else "packets"
    cut = f", {len(frame.payload)} of them captured ({frame.cut})" if frame.cut else ""
    return f"{name}: {frame.wire_bytes} bytes{cut}, {noun} {some}"


def _inside(
    exchange: Exchange,
    side: Request | Response,
    names: TopicNames,
    labels: Labels,
    payloads: Payloads | None,
    show_bytes: bool,
) -> Callable[[Node, str], Iterator[str]]:
    """Contents of bytes fields: records with their topics, and embedded formats."""
    embedded = dict(embedded_of(exchange, side))
    fields = fields_of(exchange, names)

    def lines(node: Node, path: str) -> Iterator[str]:
        if node.slot is not None and holds_records(node.slot):
            field = next(fields, None) if node.value else None
            # The node's own bytes may be masked; checksums are of those on the wire.
            whole = node if field is None else replace(node, value=field.data)
            yield from lines_inside(whole, field, payloads, show_bytes=show_bytes)
        elif path in embedded:
            yield from embedded_lines(embedded[path], labels)

    return lines


def without_secrets(exchange: Exchange, payload: bytes, names: TopicNames) -> bytes:
    """Return the payload with asterisks for secrets in Kafka's own records (SCRAM credentials)."""
    for field in fields_of(exchange, names):
        clean = shareable(field)
        if clean != field.data:
            # In a compressed batch they cannot be told apart: nothing of it is shown.
            masked = b"*" * len(field.data) if clean is None else clean
            payload = payload.replace(field.data, masked)
    return payload


def _side(
    exchange: Exchange,
    side: Request | Response,
    names: TopicNames,
    labels: Labels,
    *,
    show_hex: bool,
    ranges: bool,
    payloads: Payloads | None,
) -> Iterator[str]:
    payload = side.frame.payload
    if exchange.api == SASL_TOKEN:
        yield f"  a SASL token of {len(payload)} bytes, not shown"
        token = token_of(exchange, side)
        if token is not None:
            yield from (f"  {line}" for line in embedded_lines(token))
        return
    inside = _inside(exchange, side, names, labels, payloads, show_hex)
    payload = without_secrets(exchange, payload, names)
    text = TreeText(
        payload, show_hex=show_hex, mask=True, inside=inside, labels=labels, ranges=ranges
    )
    decoded, end = side.decoded, 0
    if decoded is not None:
        if decoded.note:
            yield f"  ({decoded.note})"
        for layout, at in decoded.parts:
            yield from _indented(text.message(layout, at), show_hex)
        end = decoded.end
    elif (header := header_layout(exchange, side)) is not None:
        try:
            lines = list(text.message(header, 0))
        except DissectError:
            lines = []
        yield from _indented(lines, show_hex)
        end = text.end
    left = payload[end:]
    if left and may_hide(exchange, side):
        yield f"  {len(left)} bytes that may hold a secret, not shown"
    elif left:
        yield f"  undecoded: {len(left)} bytes"
        shown = left if show_hex else left[:PREVIEW]
        yield from (f"  {line}" for line in dump_lines(shown, end))
        if len(shown) < len(left):
            yield f"    ... {len(left) - len(shown)} more bytes (--hex shows all)"


def header_layout(exchange: Exchange, side: Request | Response) -> Layout | None:
    """Return the layout of the header of a message that is not decoded; None if it has none."""
    key, version = exchange.api_key, exchange.api_version
    if key is None or version is None:
        return None
    if isinstance(side, Response):
        return layout_of("ResponseHeader", response_header_version(key, version))
    if side.header is None:
        return None
    return layout_of("RequestHeader", request_header_version(key, version))


def _indented(lines: Iterable[str], show_hex: bool) -> Iterator[str]:
    for line in lines:
        yield line if show_hex else f"  {line}"
