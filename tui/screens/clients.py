"""Screen 3: clients, their libraries, the API versions they use, and where they break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkascope.analyzer.findings.clients import BREAKS, VERDICT, judged
from kafkascope.analyzer.findings.outcomes import COLUMNS as OUTCOME
from kafkascope.analyzer.findings.outcomes import outcomes
from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.statistics.clients import Clients, Usage
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.verdict import breaks_at
from kafkascope.analyzer.text import safe, wrapped
from kafkascope.dissectors.reference.releases import RELEASES, known_release
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Hint, Key, bindings
from kafkascope.tui.screens import CONNECTIONS, evidence
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.matrix import ROLES, everybody, matrix, summary
from kafkascope.tui.screens.picker import pick
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine, text_lines

LATER = "..."
"""Stands for a verdict that is not known yet."""
ENDS = {"kept out": "!", "stuck": "!", "gone": "?", "open": "dim"}


class ClientsBoard(ChartedBoard):
    """Shows clients with a verdict."""

    NUMBER = 3
    TITLE = "Clients"
    STATISTICS = ("clients", "findings")
    COMMAND = "kafkascope clients {}"
    TABS = ("Versions", "All clients", "Over time")
    EMPTY = "No clients in the capture"
    KEYS = (
        Key(
            "clients.release",
            "K",
            "K",
            "release",
            "Check against another Kafka release",
            (Hint("table", 3, "release"),),
        ),
    )
    BINDINGS = bindings(KEYS)
    ENTER = "connections"
    VIEW = (*ChartedBoard.VIEW, "release")
    HELP = (
        "Each client: client id, address, library, user, role and outcome: worked, gone, stuck,"
        " kept out, or open at the end. The reason is below the table. Versions shows each API "
        "with the versions that the client used (full) and that the broker offered (dots). The "
        "verdict shows whether a Kafka release supports the used versions; unused APIs do"
        " not count. Enter shows the connections of the client, Enter there its exchanges."
    )

    def __init__(self, host: Host) -> None:
        self.release: str | None = RELEASES[-1]
        super().__init__(host)
        self._usages: dict[Identity, Usage] = {}

    def make_sheet(self) -> Sheet:
        """Return the columns of `clients --for`."""
        columns = tuple(column for column in Clients.COLUMNS if not column.wide)
        return Sheet(
            (*columns, *((BREAKS,) if self.release is None else VERDICT), *OUTCOME[:1]),
            alarms={"failed": "!"},
            tones={
                "verdict": lambda value: ROLES.get(value, ""),
                "outcome": lambda value: ENDS.get(value, ""),
                "breaks_at": lambda value: "!" if value else "",
                "negotiates": lambda value: "?" if value is False else "dim",
            },
            keep=("outcome", "verdict", "breaks_at", "software", "client_address", "roles"),
        )

    def identity(self, line: Line) -> Any:
        """Return all that tells clients apart."""
        return (
            line.get("client_id"),
            line.get("client_address"),
            line.get("software"),
            line.get("user"),
        )

    def lines_of(self, found: Any) -> Sequence[Line]:
        """Return the lines of `clients`."""
        self._usages = {usage.identity: usage for usage in found.usages()}
        # What becomes of whom is known at the end only.
        findings = None if self.so_far or self.limited else self.statistic("findings")
        lines = judged(found, self.release, findings and outcomes(findings, self.names))
        return [unjudged(line) for line in lines] if self.so_far else lines

    def evidence(self, line: Line) -> str:
        """Return the filter for all exchanges of a client; of one without requests, for what shows
        why there are none."""
        if not line.get("requests") and line.get("outcome_filter"):
            return str(line["outcome_filter"])
        user = line.get("user")
        wanted = f"user == {evidence.word(user)}" if user else ""
        return evidence.both(evidence.of_client(line), wanted)

    def command(self) -> str:
        """Return the command with the release."""
        return self.COMMAND + (f" --for {self.release}" if self.release else "")

    def said(self) -> str:
        """Return the release that is judged for."""
        return f"for Kafka {self.release}   K changes" if self.release else "K selects a release"

    def action_release(self) -> None:
        """Ask for the release to judge for."""
        choices = [("", "none: only the first release that breaks each client")]
        choices += [(release, f"Kafka {release}") for release in reversed(RELEASES)]

        def chosen(release: str) -> None:
            try:
                if release:
                    release = known_release(release)
            except ValueError as error:
                self.host.shell.tell(str(error), "warning")
                return
            self.release = release or None
            self.remake()

        title, glyphs = "Kafka release", self.host.glyphs
        pick(self.app, title, choices, glyphs, chosen, self.release or "", free=True)

    def action_open_line(self) -> None:
        """Go to the connections of the client; from the table of all clients to exchanges."""
        if self.below or self.line is None:
            self.open_exchanges()
        elif text := self.limited_to_filter(self.evidence(self.line)):
            self.call_later(self.host.shell.show_limited, CONNECTIONS, text)

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return the versions of the client, those of all clients, or the chart over time."""
        if tab == "Over time":
            return self.chart_tab(line, width, height)
        if tab == "All clients":
            columns, lines = everybody(list(self._usages.values()))
            return Sheet(columns, keep=("software",)).fill(lines)
        identity = Identity(*self.identity(line))
        usage = self._usages.get(identity)
        if usage is None and line.get("outcome") is not None:
            return text_lines(became(line, width))
        if usage is None:
            return text_lines([[("This line sums up many clients.", "dim")]])
        head = summary(usage, self.release, breaks_at(usage), so_far=bool(self.so_far))
        end = [] if line.get("outcome") is None else became(line, width)
        return text_lines([*head, *end, *matrix(usage, self.release, width)])

    def low_evidence(self, tab: str, line: Line) -> str:
        """Return the filter for a client of the table of all."""
        return evidence.of_client(line)


def became(line: Line, width: int) -> list[Spans]:
    """Return what became of a client, with the reason."""
    text = f"{line['outcome']}: {line['outcome_reason']}"
    role = ENDS.get(line["outcome"], "")
    return [*([(part, role)] for part in wrapped(safe(text), width, breaks=True)), []]


def unjudged(line: Line) -> Line:
    """Return a client as it is shown while more may come: only what breaks is judged by then."""
    if line.get("verdict") == "breaks":
        return line
    return {**line, "verdict": LATER, "why": [], "breaks_at": line.get("breaks_at") or LATER}
