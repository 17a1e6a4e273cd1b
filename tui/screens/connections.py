"""Screen 2: connections, how far they came, how they ended; the ladder of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkascope.analyzer.render.cells import duration, size
from kafkascope.analyzer.statistics.connections import Connections, client_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Hint, Key, bindings
from kafkascope.tui.screens import dots, evidence
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.ladder import ladder
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine, text_lines
from kafkascope.tui.stack import Position

PHASES = {"work": "", "sasl": "?", "versions": "?", "opaque": "~"}
ALARMS = {
    "unanswered": "?",
    "failed": "!",
    "retransmissions": "?",
    "gap_bytes": "?",
    "resets": "!",
    "idle": "",
}
KEEP = (
    *("client_id", "phase", "requests", "unanswered", "end", "life", "broker_address"),
    *("retransmissions", "failed", "client_address", "gap_bytes", "opened", "client_bytes"),
    "broker_bytes",
)


class ConnectionsBoard(ChartedBoard):
    """Shows connections, or the clients that made them."""

    NUMBER = 2
    TITLE = "Connections"
    STATISTICS = ("connections",)
    COMMAND = "kafkascope connections {}"
    TABS = ("Ladder", "Network", "Over time")
    EMPTY = "No connections in the capture"
    NEEDS_EXCHANGES = False
    KEYS = (
        Key(
            "connections.by",
            "B",
            "B",
            "by",
            "Group by client, or by connection",
            (Hint("table", 3, "by client"),),
        ),
    )
    BINDINGS = bindings(KEYS)
    VIEW = (*ChartedBoard.VIEW, "by_client")
    HELP = (
        "Each TCP connection: phase reached, lifetime, who closed it and how, unanswered "
        "requests, retransmissions and gaps. Ladder shows one connection from the handshake to "
        "the end; bars beside an API are requests in flight. In Over time, dots are connection "
        "attempts that were refused (●) or timed out (○): to the broker of the connection, or "
        "from the client. Enter shows the exchanges of the connection."
    )

    def __init__(self, host: Host) -> None:
        self.by_client = False
        self._rows: list[Line] = []
        """Connections, and attempts to connect that failed."""
        self._failed: list[Line] = []
        self._drawn: tuple[Any, ...] = ()
        self._ladder: list[TextLine] = []
        super().__init__(host)

    def make_sheet(self) -> Sheet:
        """Return the columns of connections or of clients."""
        return Sheet(
            Connections.CLIENT_COLUMNS
            if self.by_client
            else tuple(column for column in Connections.COLUMNS if not column.wide),
            alarms=ALARMS,
            tones={
                "phase": lambda value: PHASES.get(value, "!"),
                "end": lambda value: "!" if value and "rst" in value else "dim",
            },
            keep=("connections", "open", "life") if self.by_client else KEEP,
        )

    def identity(self, line: Line) -> Any:
        """Return the number of a connection, or the client."""
        return line.get("connection", client_of(line))

    def lines_of(self, found: Any) -> Sequence[Line]:
        """Return the lines of `stats connections`."""
        names = self.names
        self._rows = found.rows(names)
        self._failed = dots.failed(self._rows)
        lines: list[Line] = found.by_client(names, self._rows) if self.by_client else self._rows
        return lines

    def evidence(self, line: Line) -> str:
        """Return the filter for a connection, or for all of a client."""
        if self.by_client:
            return evidence.of_titled_client(client_of(line))
        return evidence.of_connection(line)

    def command(self) -> str:
        """Return the command, with --by where the table is by client."""
        return self.COMMAND + (" --by client" if self.by_client else "")

    def select(self, number: int) -> None:
        """Put the cursor on a connection, as soon as it is counted."""
        self.tab = self.TABS[0]
        self.table.wanted = Position(number, 0)
        self.by_client = False
        self.remake()

    def action_by(self) -> None:
        """Switch between connections and clients."""
        self.by_client = not self.by_client
        self.remake()

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return the ladder, the facts about the network, or the chart over time."""
        if tab == "Over time":
            self.activity(line).connects = (
                dots.of_client(self._failed, self._rows, client_of(line))
                if self.by_client
                else dots.to_broker(self._failed, line)
            )
            return self.chart_tab(line, width, height)
        if self.by_client:
            return text_lines([[("B groups by connection, which has a ladder.", "dim")]])
        if tab == "Network":
            return text_lines(network(line, self.host.times().text, so_far=bool(self.so_far)))
        times, store = self.host.times(), self.host.store
        so_far = bool(self.so_far) or not store.progress.done
        rows = (so_far, len(store))
        key = (line["connection"], line["requests"], line["end"], times.how, line["idle"], *rows)
        if key != self._drawn:
            self._drawn = key
            self._ladder = ladder(store, line, times, so_far=so_far)
        return self._ladder


def network(line: Line, clock: Any, *, so_far: bool = False) -> list[Spans]:
    """Return the facts of TCP about a connection; `so_far`: more may come."""

    def fact(name: str, value: Any, role: str = "") -> Spans:
        text = "-" if value in (None, "") else str(value)
        return [(f"{name:<28}", "dim"), (text, role)]

    handshake = line.get("handshake")
    counts = ("retransmissions", "out_of_order", "gap_bytes")
    bad = {name: "?" if line.get(name) else "" for name in counts}
    opened = line.get("opened")
    still = "still open so far" if so_far else "still open"
    return [
        fact("client", f"{line['client_address']}   {line.get('client_id') or 'no client id'}"),
        fact("broker", line["broker_address"]),
        fact("library", line.get("software") or "unknown"),
        fact("user", line.get("user") or "unknown"),
        [],
        fact("opened", "" if opened is None else clock(opened)),
        fact("lifetime", duration(line.get("life"))),
        fact(
            "TCP handshake",
            "not in the capture" if handshake is None else f"{duration(handshake)} to the broker",
        ),
        fact("sent by the client", size(line.get("client_bytes"))),
        fact("sent by the broker", size(line.get("broker_bytes"))),
        fact("retransmissions", line.get("retransmissions"), bad["retransmissions"]),
        fact("out of order", line.get("out_of_order"), bad["out_of_order"]),
        fact("missing in the capture", size(line.get("gap_bytes")), bad["gap_bytes"]),
        [],
        fact("ended", line.get("end") or still, "!" if "rst" in line["end"] else ""),
        fact("idle before the end", duration(line.get("idle"))),
        fact("unanswered requests", line.get("unanswered"), "?" if line["unanswered"] else ""),
    ]
