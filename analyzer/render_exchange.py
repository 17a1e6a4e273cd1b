"""One exchange as text: what it is, then each message as a tree, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from analyzer import render_cells
from analyzer.model import Exchange, Request, Response
from analyzer.render_records import lines_inside
from analyzer.render_tree import TreeText, dump_lines
from analyzer.rows import Row, result
from analyzer.times import iso_ns
from dissectors.errors import DissectError
from dissectors.layout import Layout
from dissectors.registry import layout_of, request_header_version, response_header_version

if TYPE_CHECKING:
    from analyzer.model import Frame

SASL_TOKEN: Final = "SaslToken"
SASL_AUTHENTICATE: Final = 36
PREVIEW: Final = 64
"""Undecoded bytes that are shown without `--hex`."""


def exchange_lines(row: Row, exchange: Exchange, *, show_hex: bool) -> Iterator[str]:
    """All lines; secrets are masked."""
    yield from _title(row)
    for name, side in (("request", exchange.request), ("response", exchange.response)):
        if side is None:
            continue
        yield ""
        yield _side_title(name, side.frame)
        yield from _side(exchange, side, show_hex=show_hex)


def _title(row: Row) -> Iterator[str]:
    version = "" if row.api_version is None else f" v{row.api_version}"
    yield f"exchange {row.number}: {row.api or 'no Kafka message'}{version}"
    who = " ".join(part for part in (row.client_id or "", row.software) if part)
    user = f", user {row.user}" if row.user else ""
    yield f"  from {row.client_address} ({who or 'no client id'}{user}) to {row.broker_address}"
    wait = f", of which {render_cells.duration(row.wait_ns)} waited" if row.wait_ns else ""
    latency = "" if row.latency_ns is None else f", {render_cells.duration(row.latency_ns)}{wait}"
    yield f"  {iso_ns(row.time_ns)}, connection {row.connection}{latency}"
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
    cut = f", {len(frame.payload)} of them there ({frame.cut})" if frame.cut else ""
    return f"{name}: {frame.wire_bytes} bytes{cut}, {noun} {some}"


def _side(exchange: Exchange, side: Request | Response, *, show_hex: bool) -> Iterator[str]:
    payload = side.frame.payload
    if exchange.api == SASL_TOKEN:
        yield f"  a SASL token of {len(payload)} bytes, not shown"
        return
    text = TreeText(payload, show_hex=show_hex, mask=True, inside=lines_inside)
    decoded = side.decoded
    if decoded is not None:
        if decoded.note:
            yield f"  ({decoded.note})"
        for layout, at in ((decoded.header_layout, 0), (decoded.layout, decoded.body_at)):
            yield from _indented(text.message(layout, at), show_hex)
        end = decoded.end
    else:
        end = 0
        header = _header_layout(exchange, side)
        if header is not None:
            try:
                lines = list(text.message(header, 0))
                end = text.end
            except DissectError:
                lines = []
            yield from _indented(iter(lines), show_hex)
    left = payload[end:]
    if left and exchange.api_key == SASL_AUTHENTICATE:
        yield f"  {len(left)} bytes that may hold a secret, not shown"
    elif left:
        yield f"  undecoded: {len(left)} bytes"
        shown = left if show_hex else left[:PREVIEW]
        yield from (f"  {line}" for line in dump_lines(shown, end))
        if len(shown) < len(left):
            yield f"    ... {len(left) - len(shown)} bytes more (--hex shows all)"


def _header_layout(exchange: Exchange, side: Request | Response) -> Layout | None:
    key, version = exchange.api_key, exchange.api_version
    if key is None or version is None:
        return None
    if isinstance(side, Request):
        if side.header is None:
            return None
        return layout_of("RequestHeader", request_header_version(key, version))
    return layout_of("ResponseHeader", response_header_version(key, version))


def _indented(lines: Iterator[str], show_hex: bool) -> Iterator[str]:
    for line in lines:
        yield line if show_hex else f"  {line}"
