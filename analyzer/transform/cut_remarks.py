"""Sentences about the contents of a cut, and about omissions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.text import plural

if TYPE_CHECKING:
    from kafkascope.analyzer.transform.cut import Cutting
    from kafkascope.analyzer.transform.cut_originals import Originals
    from kafkascope.analyzer.transform.other_traffic import OtherTraffic

CLOSED: Final = "TLS that cannot be read (`kafkascope connections` lists the reasons)"
# The port that Wireshark knows as Kafka's.
WIRESHARK: Final = 9092
SHOWN_PORTS: Final = 4


def composed_of(cutting: Cutting, others: int, path: Path) -> list[str]:
    """Return what was written of composed packets, and what was left out. `others`: connections
    without exchanges."""
    kept = plural(cutting.exchanges - cutting.left_out, "exchange")
    if others:
        kept += f" and {plural(others, 'connection')} without any (failed, TLS, other protocols)"
    first = len(cutting.connections)
    remarks = (
        (cutting.left_out, "{} left out: their content is unknown", "exchange"),
        (cutting.unread, f"{{}} left out: {CLOSED}", "connection"),
        (cutting.beyond, f"{{}} left out: on connections beyond the first {first:,}", "exchange"),
        (
            cutting.without_greeting,
            "written without session handshakes, because there are too many: {} to ZooKeeper",
            "connection",
        ),
        (cutting.resent, "written once: {}", "retransmitted segment"),
    )
    return [f"{kept} written to {path}", *counted(remarks)]


def counted(remarks: Iterable[tuple[int, str, str]]) -> Iterator[str]:
    """Yield the texts whose count is not zero, with count and noun in their place."""
    return (text.format(plural(count, noun)) for count, text, noun in remarks if count)


def original(originals: Originals, path: Path) -> list[str]:
    """Return what was written of packets as they were captured, and who can read it."""
    connections = plural(len(originals.chosen), "connection")
    more = originals.exchanges - originals.asked
    secrets = "no secrets are in it: no TLS on these connections was decrypted"
    if originals.secrets:
        secrets = (
            f"everyone with access to {path} can read all of it, including passwords inside TLS"
        )
    plain = (originals.plain, "not encrypted, and written as captured: {}", "connection")
    closed = (originals.closed, f"{{}} written without keys: {CLOSED}", "connection")
    return [
        f"{connections} with {plural(originals.exchanges, 'exchange')} written to {path}",
        *counted([(more, "{} more than chosen: connections are written whole", "exchange")]),
        secrets,
        *counted([plain, closed]),
    ]


def left_out(others: OtherTraffic) -> Iterator[str]:
    """Yield which connections without exchanges were left out."""
    closed = f"{{}} left out: {CLOSED}, and not to Kafka's ports"
    return counted(
        (count, text, "connection")
        for count, text in (
            (others.closed, closed),
            (others.elsewhere, "{} left out: without Kafka, and not to its ports"),
            (others.beyond, "not inspected, because there were too many: {}"),
        )
    )


def in_wireshark(ports: Collection[int], *, secrets: bool) -> Iterator[str]:
    """Yield the options with which Wireshark decodes ports. `secrets`: TLS, with its secrets."""
    options = [
        f"-d tcp.port=={port},tls -d tls.port=={port},kafka"
        if secrets
        else f"-d tcp.port=={port},kafka"
        for port in sorted(ports)
        if secrets or port != WIRESHARK
    ]
    if options:
        more = f" (and {len(options) - SHOWN_PORTS} more ports)" * (len(options) > SHOWN_PORTS)
        yield f"for Wireshark: {' '.join(options[:SHOWN_PORTS])}{more}"
