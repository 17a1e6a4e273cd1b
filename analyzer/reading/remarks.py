"""Sentences about a capture as a whole: why nothing was found, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.detect import GIVEN_UP
from kafkascope.analyzer.conversation.undecided import EMPTY, NOT_KAFKA
from kafkascope.analyzer.exchanges.offline import OpenInput
from kafkascope.analyzer.reading.limits import LIMITS
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.text import plural
from kafkascope.captures.formats.records import CUT, CUT_SHORT
from kafkascope.captures.model import Connection
from kafkascope.captures.signatures import TLS

if TYPE_CHECKING:
    from kafkascope.analyzer.findings import Findings
    from kafkascope.analyzer.findings.view import GapCause
    from kafkascope.captures.inputs.order import Order
    from kafkascope.captures.model import Statistics

UNNAMED: Final = ("not a Kafka request", NOT_KAFKA, "protocol not detected")
"""How reasons begin of connections whose protocol is not known."""
NAMELESS: Final = "an unknown protocol"
LAST: Final = (NAMELESS, "nothing")
# Bytes of two TLS alerts: a side that sent no more took no part in a session.
ALERTS: Final = 14


def nothing_found(capture: OpenInput, *, so_far: bool = False, piped: bool = False) -> str:
    """Return a sentence that says why there is no exchange, and what to do; `so_far`: more packets
    may come, which another thread reads; `piped`: they came through a pipe."""
    statistics = capture.source.statistics
    opaque = Counter(capture.context.opaque)  # a copy: the other thread may add to it
    if capture.logs is not None:
        if capture.logs.unparsed:
            return "no exchanges: no line of the request log could be read"
        return (
            "no exchanges: no line of kafka.request.logger; set it to DEBUG, see docs/requestlog.md"
        )
    if not statistics.packets:
        if so_far:
            return (
                "no packets yet: check that the traffic passes here, and that the capture filter "
                "matches it (port 9092, or the port of your brokers)"
            )
        if piped and not statistics.damage:
            return "no requests were received"
        if statistics.damage:
            return "no exchanges: the capture is damaged, and no packet is readable"
        return "no exchanges: the capture has no packets"
    if so_far and not opaque:
        packets = f"{statistics.packets} packet{'s' * (statistics.packets != 1)}"
        return (
            f"no exchanges in {packets} so far; set the broker's port with -d tcp.port==PORT,kafka"
        )
    tls = sum(count for reason, count in opaque.items() if reason.startswith(TLS))
    others = sum(opaque.values()) - opaque[EMPTY] - tls
    if 0 < tls <= sum(map(_failed, capture.context.encrypted)) and not others:
        return (
            f"no exchanges: the TLS handshake failed on {_connections(tls)}; `kafkascope check` "
            "shows the causes"
        )
    if tls and not others and capture.context.keys.log is not None:
        return (
            f"no exchanges, only {_connections(tls)} that the key log does not decrypt: see "
            "`kafkascope connections` for the reasons, `kafkascope tls-keys check` for its contents"
        )
    empty = f" and {opaque[EMPTY]} without data" if opaque[EMPTY] else ""
    if tls and not others:
        return (
            f"no exchanges, only {_connections(tls)}{empty}: pass a key log with --keylog "
            "(`kafkascope tls-keys` shows how to get one), or use `kafkascope proxy`; for plain "
            "text on this port use -d tcp.port==PORT,kafka"
        )
    if statistics.damage:
        read = f"{statistics.packets} packet{'s' * (statistics.packets != 1)}"
        return f"no exchanges in the {read} that could be read; the rest of the capture is damaged"
    if not statistics.segments:
        return f"no exchanges: none of {statistics.packets} packets is TCP{_why(capture)}"
    if statistics.cut_packets:
        packets = f"{statistics.cut_packets} of {statistics.segments} TCP packets"
        if is_mirrored(statistics):
            return f"no exchanges: the mirror cut {packets}; {MIRROR}"
        return f"no exchanges: the snaplen cut {packets}; capture whole packets (tcpdump -s 0)"
    count = statistics.connections
    where = "in the connection" if count == 1 else f"in {count} connections"
    if opaque and set(opaque) == {EMPTY}:
        return (
            f"no exchanges: no data was sent {where}: refused, unanswered, or closed at once as by "
            "a health check; see `kafkascope connections`"
        )
    if others and any(not each.startswith(UNNAMED) for each in opaque if each != EMPTY):
        hint = " (--keylog FILE decrypts TLS)" if tls and _answered(capture.context) else ""
        return f"no exchanges: no Kafka {where}, but {_protocols(opaque)}{hint}"
    reason = f" ({opaque.most_common(1)[0][0]})" if opaque else ""
    return (
        f"no exchanges: no Kafka {where}{reason}; if the capture has both directions, set the "
        "broker's port with -d tcp.port==PORT,kafka"
    )


def _answered(context: Context) -> bool:
    """Return whether a server answered TLS with more than alerts: else there is nothing that a key
    log could decrypt."""
    return any(min(each.bytes) > ALERTS for each in context.encrypted)


def _protocols(opaque: Counter[str]) -> str:
    """Return what connections carry in place of Kafka, the most frequent first."""
    counts: Counter[str] = Counter()
    for reason, count in opaque.items():
        name = reason.partition(",")[0].partition(":")[0]
        counts["nothing" if reason == EMPTY else NAMELESS if name in UNNAMED else name] += count
    ranked = sorted(counts.items(), key=lambda each: (each[0] in LAST, -each[1], each[0]))
    shown = [f"{name} ({count})" for name, count in ranked[: LIMITS.named_protocols]]
    rest = len(ranked) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _connections(count: int) -> str:
    return f"{count} TLS connection{'s' * (count != 1)}"


def _why(capture: OpenInput) -> str:
    statistics = capture.source.statistics
    if statistics.unknown_links:
        links = ", ".join(map(str, sorted(statistics.unknown_links)))
        return f" (unknown link type {links})"
    skipped = sorted(statistics.skipped.items(), key=lambda item: -item[1])
    return "" if not skipped else " (" + ", ".join(f"{n} {reason}" for reason, n in skipped) + ")"


def cut_packets(capture: OpenInput) -> str:
    """Return the remark that packets were cut when they were captured, or before."""
    statistics = capture.source.statistics
    cut, mirrored = statistics.cut_packets, statistics.mirrored
    if is_mirrored(statistics):
        return f"the mirror cut {mirrored} packets: bodies are truncated ({MIRROR})"
    text = f"the snaplen cut {cut - mirrored} packets: bodies are truncated"
    text += " (capture with tcpdump -s 0)"
    return f"{text}; a mirror cut {mirrored} more ({MIRROR})" if mirrored else text


MIRROR: Final = (
    "raise the packet length of the mirror session, or its MTU by the size of its headers"
)


def is_mirrored(statistics: Statistics) -> bool:
    """Return whether a mirror cut packets, and no snaplen did: the frames are whole, the packets
    inside are not."""
    return 0 < statistics.cut_packets == statistics.mirrored


def note_damage(findings: Findings, capture: OpenInput, *, one_way: bool = False) -> None:
    """Let findings know what is damaged, once all is read: it is no client's or broker's fault.
    `one_way`: only one side of the connections was captured."""
    findings.damaged_places = _damaged_places(capture)
    findings.gap_cause = _gap_cause(capture.source.statistics, one_way=one_way)


def _gap_cause(statistics: Statistics, *, one_way: bool) -> GapCause:
    if one_way:
        return "one-way"
    if is_mirrored(statistics):
        return "mirror"
    return "damage" if statistics.damage else ""


def _damaged_places(capture: OpenInput) -> int:
    """Return at how many places the files are damaged, but for ends that are missing: the record
    there is not read. Where workers have read the files, one each is known."""
    source = capture.source
    if not any(source.gaps.values()):
        return sum(
            each.at is None or CUT_SHORT not in str(each) for each in source.statistics.damage
        )
    return sum(gap.reason != CUT for gaps in source.gaps.values() for gap in gaps)


def one_way(side: str) -> str:
    """Return the remark that only one side was captured: `client` or `broker`."""
    seen, other = ("requests", "responses") if side == "client" else ("responses", "requests")
    return (
        f"only one direction was captured: {seen} without {other}; capture where both pass, with "
        "a filter for both (port 9092, not dst port 9092)"
    )


def unread(context: Context) -> int:
    """Return how many TLS sessions may carry Kafka: with hosts that spoke it, or on its ports. A
    hello without a response hides nothing."""
    hosts = {broker.host for broker in context.brokers}
    return sum(
        any(end.host in hosts or context.is_broker(end) for end in (each.a, each.b))
        for each in context.encrypted
        if min(each.bytes) > ALERTS and _established(each)
    )


def _failed(connection: Connection) -> bool:
    """Return whether the handshake of a connection with TLS failed, so that there is nothing to
    decrypt."""
    tls = connection.tls
    if tls is None:
        return False
    if tls.result is not None:
        return tls.result.outcome != "established"
    return bool(tls.answer) or (bool(tls.offered) and not min(connection.bytes))


def _established(connection: Connection) -> bool:
    """Return whether a connection with TLS carries something that could not be read."""
    tls = connection.tls
    if tls is not None and tls.answer:
        return False
    if tls is None or tls.result is None:
        return True
    return tls.result.outcome == "established" and not any(tls.decrypted)


def copies(order: Order, names: Sequence[str]) -> Iterator[str]:
    """Yield sentences about files that hold the same packets."""
    for each in order.shared[: LIMITS.overlapping_files]:
        own = f"{each.own} only in the first" if each.own else "none only in the first"
        clock = "same clock"
        if each.ahead_ns:
            side = "ahead of" if each.ahead_ns > 0 else "behind"
            clock = f"clock {duration(abs(each.ahead_ns))} {side} that of {names[each.of]}"
        yield (
            f"{names[each.file]} and {names[each.of]} overlap: {each.both} packets in both, {own}, "
            f"{clock}"
        )
    if len(order.shared) > LIMITS.overlapping_files:
        yield f"{len(order.shared) - LIMITS.overlapping_files} more files overlap with others"


def remarks(capture: OpenInput, *, verbose: bool, tls: bool = True) -> Iterator[str]:
    """Yield what makes the results incomplete; with `verbose` also what was read. `tls`: whether
    unreadable sessions would have been part of the results."""
    statistics, context = capture.source.statistics, capture.context
    if capture.source.order is not None:
        yield from copies(capture.source.order, capture.source.names)
    yield from dict.fromkeys(capture.source.restored)
    yield from (f"{name} is empty" for name in capture.source.empty)
    if capture.logs is not None:
        yield from capture.logs.remarks()
    if statistics.translated:
        count = statistics.translated
        yield (
            f"{count} connection{'s were' if count > 1 else ' was'} captured before and after "
            "address translation, and read once (both addresses: `kafkascope connections`)"
        )
    if statistics.relayed:
        yield (
            f"{plural(statistics.relayed, 'connection')} captured on both sides of a TCP proxy: "
            "counted once (both addresses: `kafkascope connections`; `forwarded` marks the "
            "proxy's own requests)"
        )
    if statistics.parted:
        yield (
            f"{plural(statistics.parted, 'connection')} from a TCP proxy diverged from the "
            "client's bytes: counted separately from there"
        )
    if statistics.moved:
        yield (
            f"{plural(statistics.moved, 'packet')} out of order in the file; packets are sorted "
            "and numbered by time, as reordercap does"
        )
    if statistics.dropped:
        yield f"the capturing program dropped {statistics.dropped} packets: exchanges are missing"
    if statistics.cut_packets and context.exchanges:
        yield cut_packets(capture)
    fragments = statistics.skipped.get("fragment", 0)
    if fragments:
        yield f"{fragments} IP fragments could not be reassembled"
    if context.skipped_bytes:
        yield f"{context.skipped_bytes} bytes were skipped while resynchronizing"
    if tls and context.exchanges and (count := unread(context)):
        hint = "use --keylog FILE or `kafkascope proxy`"
        if context.keys.log is not None:
            hint = "see `kafkascope connections` for the reasons"
        yield f"{_connections(count)} to brokers cannot be decrypted: {hint}"
    if given_up := context.opaque[GIVEN_UP]:
        yield (
            f"{given_up} connection{'s were' if given_up > 1 else ' was'} evicted before protocol "
            "detection: too many unidentified connections at once; set the broker's port with "
            "-d tcp.port==PORT,kafka"
        )
    yield from sorted(context.left_out())
    if not verbose or capture.logs is not None:
        return
    yield (
        f"{statistics.packets} packets, {statistics.segments} of them TCP, "
        f"{statistics.connections} connections, {context.exchanges} exchanges, "
        f"{statistics.duplicates} packets captured twice"
    )
    for reason, count in sorted(statistics.skipped.items()):
        yield f"{count} packets {reason}"
    for reason, count in sorted(context.opaque.items(), key=lambda each: (-each[1], each[0])):
        yield f"{count} connections: {reason}"
