"""Screen 2: connections, how far they came, how they ended; the ladder of one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkascope.analyzer.render.cells import duration, size
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.connections import API_VERSIONS, SASL, Connections, client_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import padded, plural, spelled
from kafkascope.tui.data.store import Store
from kafkascope.tui.keys import Key
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.screens import activity, evidence
from kafkascope.tui.screens.board import OVER_TIME, Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.sheet import ELSE, Sheet, Spans, TextLine, narrow
from kafkascope.tui.stack import Position

# Time without a request in flight from which it is worth a line.
SILENCE_NS: Final = 1_000_000_000
PHASE: Final = 10
RAILS: Final = 3
WORK: Final = 27


def indexes_of(store: Store, connection: int) -> Sequence[int]:
    """Return the indexes of the exchanges on a connection, by its number, in order of time."""
    session = store.session
    numbers = [each.number for each in session.connections]
    if connection not in numbers:
        return array("L")
    place, column = numbers.index(connection), session.columns["connection"]
    found, at = array("L"), -1
    try:
        while True:
            at = column.index(place, at + 1)
            found.append(at)
    except ValueError:
        pass  # that was the last one
    return array("L", sorted(found, key=session.columns["time_ns"].__getitem__))


def ladder(store: Store, line: Line, times: Times, *, so_far: bool = False) -> list[TextLine]:
    """Draw a connection, which is a line of that statistic; `so_far`: more may come."""
    number = line["connection"]
    if not isinstance(number, int):
        return [TextLine([("This line sums up many connections.", "dim")])]
    found = list(_steps(store, indexes_of(store, number), line, times))
    if not line["end"]:
        text = "still open so far" if so_far else "still open at the end of the capture"
        found.append(TextLine(_event("", "end", text, "dim")))
    return found


def _steps(store: Store, indexes: Sequence[int], line: Line, times: Times) -> Iterator[TextLine]:
    session, opened = store.session, line["opened"]
    if opened is not None:
        took = line.get("handshake")
        text = f"handshake {duration(took)}"
        text = "the beginning is not in the capture" if took is None else text
        yield TextLine(_event(times.text(opened), "tcp", text, "dim"))
    for text, role in _tls(line):
        yield TextLine(_event("", "tls", text, role))
    busy, before = opened, ""
    ends: list[int] = []
    for index in indexes[: LIMITS.drawn_exchanges]:
        begin = session.columns["time_ns"][index]
        if busy is not None and begin - busy >= SILENCE_NS:
            idle = f"{'':14}{'':{PHASE}}··· idle for {duration(begin - busy)} ···"
            yield TextLine([(idle, "dim")])
        latency = session.columns["latency_ns"][index]
        flying = [end for end in ends if end > begin]
        ends = [*flying, begin + max(0, latency)]
        busy, phase = max(busy or 0, *ends), _phase(store, index)
        spans = _exchange(store, index, times, "" if phase == before else phase, len(flying))
        yield TextLine(spans, session.columns["number"][index])
        before = phase
    if len(indexes) > LIMITS.drawn_exchanges:
        more = len(indexes) - LIMITS.drawn_exchanges
        yield TextLine([(f"{more:,} more: Enter in the table shows all", "dim")])
    if line["end"]:
        words = [f"closed: {line['end']}"]
        words += [f"after {duration(line['idle'])} idle"] if line.get("idle") else []
        words += [f"{line['unanswered']} unanswered"] if line["unanswered"] else []
        last = opened + line["life"] if opened is not None and line["life"] is not None else None
        clock = "" if last is None else times.text(last)
        yield TextLine(_event(clock, "end", ", ".join(words), "?" if line["unanswered"] else "dim"))


def _tls(line: Line) -> Iterator[tuple[str, str]]:
    """Yield what is known of a connection's TLS, with the role of each text."""
    if line.get("resumed") is None:
        return
    offered = [*line["tls_offered"]]
    offered += [plural(line["tls_suites"], "suite")] if line["tls_suites"] else []
    offered += [f"for {spelled(line['sni'])}"] if line["sni"] else []
    if offered:
        yield f"the client offers {', '.join(offered)}", "dim"
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


def _phase(store: Store, index: int) -> str:
    """Return what an exchange belongs to: versions, sasl, work, or opaque if it cannot be read."""
    session = store.session
    key, api = session.columns["api_key"][index], session.columns["api"][index]
    if key == API_VERSIONS:
        return "versions"
    if key in SASL or session.tables["api"].values[api] == "SaslToken":
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
    sent, received = (session.columns[f"{side}_bytes"][index] for side in ("request", "response"))
    latency, wait = (session.columns[name][index] for name in ("latency_ns", "wait_ns"))
    there = f"{size(sent):>7} ──▶" if sent >= 0 else f"{'':>7}    "
    back = f"◀── {size(received):<7}" if received >= 0 else f"    {'':<7}"
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


KEEP: Final = (
    *("client_id", "phase", "requests", "unanswered", "end", "life", "broker_address"),
    *("retransmissions", "failed", "client_address", "gap_bytes", "opened", "client_bytes"),
    "broker_bytes",
)


def _sheet(board: Board) -> Sheet:
    by_client = board.settings["by_client"]
    counts = ("unanswered", "retransmissions", "gap_bytes")
    return Sheet(
        Connections.CLIENT_COLUMNS if by_client else narrow(Connections.COLUMNS),
        alarms={"failed": "!", "resets": "!", "idle": "", **dict.fromkeys(counts, "?")},
        tones={
            "phase": {"work": "", "sasl": "?", "versions": "?", "opaque": "~", ELSE: "!"},
            "end": lambda value: "!" if value and "rst" in value else "dim",
        },
        keep=("connections", "open", "life") if by_client else KEEP,
    )


def _lines(board: Board, connections: Connections) -> Sequence[Line]:
    rows = board.cache["rows"] = connections.rows(board.names)
    board.cache["failed"] = activity.failed(rows)
    return connections.by_client(board.names, rows) if board.settings["by_client"] else rows


def _evidence(board: Board, line: Line) -> str:
    if board.settings["by_client"]:
        return evidence.of_titled_client(client_of(line))
    return evidence.of_connection(line)


def select(board: Board, number: int) -> None:
    """Put the cursor on a connection, as soon as it is counted."""
    board.tab = board.tabs[0]
    board.table.wanted = Position(number, 0)
    board.settings["by_client"] = False
    board.remake()


def _ladder(board: Board, line: Line) -> Content:
    if board.settings["by_client"]:
        return "B groups by connection, which has a ladder."
    times, store = board.host.times(), board.host.store
    so_far = bool(board.so_far) or not store.progress.done
    drawn = line["connection"], line["requests"], line["end"], line["idle"], times.how, len(store)
    if (drawn, so_far) != board.cache.get("drawn"):
        board.cache["drawn"] = drawn, so_far
        board.cache["ladder"] = ladder(store, line, times, so_far=so_far)
    content: Content = board.cache["ladder"]
    return content


def _over_time(board: Board, line: Line) -> Content:
    rows, failed = board.cache["rows"], board.cache["failed"]
    board.activity(line).connects = (
        activity.of_client(failed, rows, client_of(line))
        if board.settings["by_client"]
        else activity.to_broker(failed, line)
    )
    return board.chart(line)


def _network(board: Board, line: Line) -> Content:
    if board.settings["by_client"]:
        return "B groups by connection, which has a ladder."

    def fact(name: str, value: Any, role: str = "") -> Spans:
        text = "-" if value in (None, "") else str(value)
        return [(f"{name:<28}", "dim"), (text, role)]

    def count(name: str, column: str, shown: Any = str) -> Spans:
        return fact(name, shown(line.get(column)), "?" if line.get(column) else "")

    handshake, opened = line.get("handshake"), line.get("opened")
    begun = "" if opened is None else board.host.times().text(opened)
    syn = "not in the capture" if handshake is None else f"{duration(handshake)} to the broker"
    end = line.get("end") or ("still open so far" if board.so_far else "still open")
    return [
        fact("client", f"{line['client_address']}   {line.get('client_id') or 'no client id'}"),
        fact("broker", line["broker_address"]),
        fact("library", line.get("software") or "unknown"),
        fact("user", line.get("user") or "unknown"),
        [],
        fact("opened", begun),
        fact("lifetime", duration(line.get("life"))),
        fact("TCP handshake", syn),
        fact("sent by the client", size(line.get("client_bytes"))),
        fact("sent by the broker", size(line.get("broker_bytes"))),
        count("retransmissions", "retransmissions"),
        count("out of order", "out_of_order"),
        count("missing in the capture", "gap_bytes", size),
        [],
        fact("ended", end, "!" if "rst" in line["end"] else ""),
        fact("idle before the end", duration(line.get("idle"))),
        count("unanswered requests", "unanswered"),
    ]


BOARD: Final = BoardSpec(
    number=2,
    statistic="connections",
    command="kafkascope connections {}",
    help=(
        "Each TCP connection: phase reached, lifetime, who closed it and how, unanswered "
        "requests, retransmissions and gaps. Ladder shows one connection from the handshake to "
        "the end; bars beside an API are requests in flight. In Over time, dots are connection "
        "attempts that were refused (●) or timed out (○): to the broker of the connection, or "
        "from the client. Enter shows the exchanges of the connection."
    ),
    tabs={
        "Ladder": Tab(_ladder),
        "Network": Tab(_network),
        "Over time": OVER_TIME._replace(show=_over_time),
    },
    sheet=_sheet,
    identity=lambda board, line: line.get("connection", client_of(line)),
    lines=_lines,
    evidence=_evidence,
    words=lambda board: " --by client" if board.settings["by_client"] else "",
    keys=(Key("connections.by", "B", "switch('by_client')", "Group by client, or by connection"),),
    choices={"by_client": (False, True)},
    empty="No connections in the capture",
    needs_exchanges=False,
)
