"""What there is to say about a capture as a whole, as sentences: why nothing was found, what is
missing."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.conversations import EMPTY
from analyzer.offline import Capture

TLS_WAYS = (
    "capture a plain listener, "
    "or let the client connect through `kafkascope proxy`, which ends TLS on its side; if the "
    "listener is a plain one, name its port with -d tcp.port==PORT,kafka for `kafkascope check`"
)


def nothing_found(capture: Capture) -> str:
    """One sentence: why there is no exchange, and what to do."""
    statistics, opaque = capture.source.statistics, capture.context.opaque
    if not statistics.packets:
        return "no exchanges: the capture has no packets"
    tls = sum(count for reason, count in opaque.items() if reason.startswith("TLS"))
    if tls:
        noun = "connection carries" if tls == 1 else "connections carry"
        return f"no exchanges: {tls} {noun} TLS, and nothing else was found; {TLS_WAYS}"
    if not statistics.segments:
        return f"no exchanges: none of {statistics.packets} packets carries TCP{_why(capture)}"
    if statistics.cut_packets:
        return (
            f"no exchanges: the snaplen cut {statistics.cut_packets} of {statistics.segments} "
            "TCP packets; capture whole packets (tcpdump -s 0)"
        )
    count = statistics.connections
    where = "in the connection" if count == 1 else f"in {count} connections"
    if opaque and set(opaque) == {EMPTY}:
        return (
            f"no exchanges: no byte was sent {where}: opened and closed as a health check does it, "
            "or without an answer; `kafkascope stats connections` tells which"
        )
    reason = f" ({opaque.most_common(1)[0][0]})" if opaque else ""
    return (
        f"no exchanges: nothing like Kafka {where}{reason}; if the capture holds both directions, "
        "name the broker's port with -d tcp.port==PORT,kafka"
    )


def _why(capture: Capture) -> str:
    statistics = capture.source.statistics
    if statistics.unknown_links:
        links = ", ".join(map(str, sorted(statistics.unknown_links)))
        return f" that we can read: unknown link type {links}"
    skipped = sorted(statistics.skipped.items(), key=lambda item: -item[1])
    return "" if not skipped else " (" + ", ".join(f"{n} {reason}" for reason, n in skipped) + ")"


def snaplen(capture: Capture) -> str:
    """That packets were cut when they were captured."""
    cut = capture.source.statistics.cut_packets
    return f"the snaplen cut {cut} packets: bodies are not whole (capture with tcpdump -s 0)"


def one_way(side: str) -> str:
    """That only one side was captured: `client` or `broker`."""
    seen, other = ("requests", "responses") if side == "client" else ("responses", "requests")
    return (
        f"only one direction was captured: there are {seen}, and no byte of {other}; capture where "
        "both pass, with a filter that takes both (port 9092, not dst port 9092)"
    )


def remarks(capture: Capture, *, verbose: bool) -> Iterator[str]:
    """What makes the results less than whole; with `verbose` also what was read."""
    statistics, context = capture.source.statistics, capture.context
    if statistics.dropped:
        yield f"the capturing program dropped {statistics.dropped} packets: exchanges are missing"
    if statistics.cut_packets and context.numbers:
        yield snaplen(capture)
    fragments = statistics.skipped.get("fragment", 0)
    if fragments:
        yield f"{fragments} IP fragments were left out"
    if context.skipped_bytes:
        yield f"{context.skipped_bytes} bytes were skipped in search of a message"
    tls = sum(count for reason, count in context.opaque.items() if reason.startswith("TLS"))
    if tls and context.numbers:
        yield f"{tls} {'connection carries' if tls == 1 else 'connections carry'} TLS: {TLS_WAYS}"
    if not verbose:
        return
    yield (
        f"{statistics.packets} packets, {statistics.segments} of them TCP, "
        f"{statistics.connections} connections, {context.numbers} exchanges, "
        f"{statistics.duplicates} packets captured twice"
    )
    for reason, count in sorted(statistics.skipped.items()):
        yield f"{count} packets {reason}"
    for reason, count in context.opaque.most_common():
        yield f"{count} connections: {reason}"
