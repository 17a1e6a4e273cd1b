"""One connection from its beginning to its end: handshake, phases, each request with its response,
silences, and how it ended."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from kafkascope.analyzer.render.cells import duration, size
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.connections import API_VERSIONS, SASL
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import padded, plural, spelled
from kafkascope.tui.data.store import Store
from kafkascope.tui.screens.sheet import Spans, TextLine

MOST: Final = 2_000
"""Exchanges of a connection that are drawn; its filter shows all."""
SILENCE_NS: Final = 1_000_000_000
"""Time without a request in flight from which it is worth a line."""
PHASE: Final = 10
RAILS: Final = 3
WORK: Final = 27


def indexes_of(store: Store, connection: int) -> Sequence[int]:
    """Return the indexes of the exchanges on a connection, by its number, in order of time."""
    session = store.session
    place = next(
        (index for index, each in enumerate(session.connections) if each.number == connection), None
    )
    if place is None:
        return array("L")
    column, found, at = session.columns["connection"], array("L"), -1
    try:
        while True:
            at = column.index(place, at + 1)
            found.append(at)
    except ValueError:
        pass
    times = session.columns["time_ns"]
    return array("L", sorted(found, key=times.__getitem__))


def ladder(store: Store, line: Line, times: Times, *, so_far: bool = False) -> list[TextLine]:
    """Draw a connection, which is a line of that statistic; `so_far`: more may come."""
    number = line["connection"]
    if not isinstance(number, int):
        return [TextLine([("This line sums up many connections.", "dim")])]
    found = list(_lines(store, indexes_of(store, number), line, times))
    if not line["end"]:
        text = "still open so far" if so_far else "still open at the end of the capture"
        found.append(TextLine(_event("", "end", text, "dim")))
    return found


def _lines(store: Store, indexes: Sequence[int], line: Line, times: Times) -> Iterator[TextLine]:
    session = store.session
    opened = line["opened"]
    if opened is not None:
        took = line.get("handshake")
        text = (
            "the beginning is not in the capture" if took is None else f"handshake {duration(took)}"
        )
        yield TextLine(_event(times.text(opened), "tcp", text, "dim"))
    for text, role in _tls(line):
        yield TextLine(_event("", "tls", text, role))
    busy = opened
    ends: list[int] = []
    before = ""
    for index in indexes[:MOST]:
        begin = session.columns["time_ns"][index]
        if busy is not None and begin - busy >= SILENCE_NS:
            yield TextLine(
                [(f"{'':14}{'':{PHASE}}··· idle for {duration(begin - busy)} ···", "dim")]
            )
        latency = session.columns["latency_ns"][index]
        ends = [end for end in ends if end > begin]
        depth = len(ends)
        ends.append(begin + max(0, latency))
        busy = max(busy or 0, *ends)
        phase = phase_of(store, index)
        yield TextLine(
            _exchange(store, index, times, "" if phase == before else phase, depth),
            session.columns["number"][index],
        )
        before = phase
    if len(indexes) > MOST:
        yield TextLine([(f"{len(indexes) - MOST:,} more: Enter in the table shows all", "dim")])
    if line["end"]:
        idle = line.get("idle")
        words = [f"closed: {line['end']}"]
        if idle:
            words.append(f"after {duration(idle)} idle")
        if line["unanswered"]:
            words.append(f"{line['unanswered']} unanswered")
        last = opened + line["life"] if opened is not None and line["life"] is not None else None
        clock = "" if last is None else times.text(last)
        yield TextLine(_event(clock, "end", ", ".join(words), "?" if line["unanswered"] else "dim"))


def _tls(line: Line) -> Iterator[tuple[str, str]]:
    """Yield what is known of a connection's TLS, with the role of each text."""
    if line.get("resumed") is None:
        return
    asked = [
        *line["tls_offered"],
        *([plural(line["tls_suites"], "suite")] if line["tls_suites"] else []),
    ]
    if line["sni"]:
        asked.append(f"for {spelled(line['sni'])}")
    if asked:
        yield f"the client offers {', '.join(asked)}", "dim"
    chosen = [line["tls"]] if line["tls"] else []
    chosen += ["resumed"] if line["resumed"] else []
    chosen += ["with early data"] if line["tls_early"] else []
    chosen += [f"ALPN {spelled(line['alpn'])}"] if line["alpn"] else []
    if chosen:
        yield ", ".join(chosen), ""
    if line["tls_client"]:
        yield f"the client's certificate: {spelled(line['tls_client'])}", ""
    if line["tls_certificate"]:
        yield f"the broker's certificate: {spelled(line['tls_certificate'])}", "?"
    for alert in line["tls_alerts"]:
        yield f"alert of the {alert}", "!"
    if line["tls_updates"]:
        yield plural(line["tls_updates"], "KeyUpdate"), "dim"
    if line["inside"]:
        yield f"inside: {line['inside']}, no Kafka", "~"
    if line["tls_error"]:
        yield f"not readable ({line['tls_error']}): {line['tls_note']}", "~"


def phase_of(store: Store, index: int) -> str:
    """Return what an exchange belongs to: versions, sasl, work, or opaque if it cannot be read."""
    session = store.session
    key = session.columns["api_key"][index]
    if key == API_VERSIONS:
        return "versions"
    if key in SASL or session.tables["api"].values[session.columns["api"][index]] == "SaslToken":
        return "sasl"
    return "work" if key >= 0 else "opaque"


def _event(clock: str, phase: str, text: str, role: str) -> Spans:
    return [(f"{clock:<14}", "dim"), (f"{phase:<{PHASE}}", "label"), (text, role)]


def _exchange(store: Store, index: int, times: Times, phase: str, depth: int) -> Spans:
    session = store.session
    version = session.columns["api_version"][index]
    api = session.tables["api"].values[session.columns["api"][index]]
    name = f"{api} v{version}" if version >= 0 else api
    # Requests in flight when it was sent: clients do not have to wait for responses.
    rails = "│" * depth if depth <= RAILS else f"+{depth}"
    asked, told = session.columns["request_bytes"][index], session.columns["response_bytes"][index]
    latency, wait = session.columns["latency_ns"][index], store.wait(index)
    there = f"{size(asked):>7} ──▶" if asked >= 0 else f"{'':>7}    "
    back = f"◀── {size(told):<7}" if told >= 0 else f"    {'':<7}"
    took = f"{duration(latency) if latency >= 0 else '-':>8}{' w' if wait else '  '}"
    text = store.result(index)
    role = text[:1] if text[:1] in ("!", "?", "~") else ""
    return [
        (f"{times.text(session.columns['time_ns'][index]):<14}", "dim"),
        (f"{phase:<{PHASE}}", "label"),
        (f"{rails:<{RAILS + 1}}", "bar"),
        (padded(name, WORK), role),
        (f"{there} {back}", "dim"),
        (f"{took}  ", "wait" if wait else ""),
        (text, role),
    ]
