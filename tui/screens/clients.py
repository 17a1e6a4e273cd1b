"""Screen 3: clients, their libraries, the API versions they use, and where they break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding

from kafkascope.analyzer.findings.clients import BREAKS, VERDICT, judged
from kafkascope.analyzer.findings.outcomes import COLUMNS as OUTCOME
from kafkascope.analyzer.findings.outcomes import outcomes
from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.statistics.clients import Clients
from kafkascope.analyzer.statistics.verdict import breaks_at
from kafkascope.analyzer.text import safe, wrapped
from kafkascope.dissectors.reference.releases import RELEASES, release_key
from kafkascope.tui.data.store import LATER
from kafkascope.tui.keys import Key
from kafkascope.tui.screens import evidence
from kafkascope.tui.screens.board import told
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.ladder import Told
from kafkascope.tui.screens.matrix import ROLES, everybody, matrix, summary
from kafkascope.tui.screens.picker import Picker
from kafkascope.tui.screens.sheet import Sheet, Spans

if TYPE_CHECKING:
    from textual.binding import BindingType

    from kafkascope.analyzer.statistics.clients import Usage
    from kafkascope.analyzer.statistics.model import Line


ENDS = {"kept out": "!", "stuck": "!", "gone": "?", "open": "dim"}


class ClientsBoard(ChartedBoard):
    """Clients with a verdict."""

    NUMBER = 3
    TITLE = "Clients"
    STATISTICS = ("clients", "findings")
    COMMAND = "kafkascope clients {}"
    TABS = ("Versions", "All clients", "Over time")
    EMPTY = "no client in the capture"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("clients.release", "K", "K", "release", "judge for another Kafka release"),
    )
    HELP = (
        "Who talks to the cluster: client id, address, library, user, what it does, and what "
        "became of it: worked, gone, stuck, kept out, or open at the end, with the reason below. "
        "Versions shows each API with the versions it used (full) of those it was offered (dots). "
        "The verdict says whether a Kafka release still has them; only APIs that were used count."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, key.action, key.help, id=key.id, show=False) for key in KEYS
    ]

    def __init__(self, scene: Any) -> None:
        self.release: str | None = RELEASES[-1]
        super().__init__(scene)
        self._usages: dict[Identity, Usage] = {}

    def make_sheet(self) -> Sheet:
        """As `clients --for`."""
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
            keep=("outcome", "verdict", "breaks_at", "software", "host", "roles"),
        )

    def identity(self, line: Line) -> Any:
        """All that tells clients apart."""
        return line.get("client"), line.get("host"), line.get("software"), line.get("user")

    def lines(self) -> Sequence[Line] | None:
        """As `clients`."""
        found = self.statistic("clients")
        if found is None:
            return None
        self._usages = {usage.identity: usage for usage in found.usages()}
        # What becomes of whom is known at the end only.
        findings = None if self.so_far or self.limited else self.statistic("findings")
        names = self.scene.store.session.context.names
        lines = judged(found, self.release, findings and outcomes(findings, names))
        return [unjudged(line) for line in lines] if self.so_far else lines

    def evidence(self, line: Line) -> str:
        """Everything of a client; of one without requests, what shows why."""
        if not line.get("requests") and line.get("outcome_filter"):
            return str(line["outcome_filter"])
        parts = [evidence.of_client(line)]
        if line.get("user"):
            parts.append(f"user == {evidence.word(line['user'])}")
        return evidence.both(*parts)

    def command(self) -> str:
        """With the release."""
        return self.COMMAND + (f" --for {self.release}" if self.release else "")

    def said(self) -> str:
        """The release."""
        return f"for Kafka {self.release}   K another" if self.release else "K chooses a release"

    def action_release(self) -> None:
        """Ask for a release."""
        choices = [("", "none: only where each client breaks")]
        choices += [(release, f"Kafka {release}") for release in reversed(RELEASES)]

        def chosen(release: str | None) -> None:
            if release is None:
                return
            try:
                if release:
                    release_key(release)
            except ValueError as error:
                self.scene.tell(str(error), "warning")
                return
            self.release = release or None
            self.sheet = self.make_sheet()
            self.upper.refilled(lambda: setattr(self.table, "sheet", self.sheet))
            self.refresh_numbers()

        self.app.push_screen(
            Picker(
                "which Kafka release?", choices, self.scene.glyphs, self.release or "", free=True
            ),
            chosen,
        )

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[Told]:
        """A client's versions, everybody's, or the time."""
        if tab == "Over time":
            return self.chart_tab(line, width, height)
        if tab == "All clients":
            columns, lines = everybody(list(self._usages.values()))
            sheet = Sheet(columns, keep=("software",))
            sheet.fill(lines)
            return sheet
        identity = Identity(line["client"], line["host"], line["software"], line["user"])
        usage = self._usages.get(identity)
        if usage is None and line.get("outcome") is not None:
            return told(became(line, width))
        if usage is None:
            return told([[("these are many clients", "dim")]])
        head = summary(usage, self.release, breaks_at(usage), so_far=bool(self.so_far))
        end = [] if line.get("outcome") is None else became(line, width)
        return told([*head, *end, *matrix(usage, self.release, width)])

    def low_evidence(self, tab: str, line: Line) -> str:
        """A client of the table of all."""
        return evidence.of_client(line)


def became(line: Line, width: int) -> list[Spans]:
    """What became of a client, with the reason."""
    text = f"{line['outcome']}: {line['outcome_reason']}"
    role = ENDS.get(line["outcome"], "")
    return [*([(part, role)] for part in wrapped(safe(text), width, breaks=True)), []]


def unjudged(line: Line) -> Line:
    """A client while more may come: what it used already may break, all else is not known yet."""
    if line.get("verdict") == "breaks":
        return line
    return {**line, "verdict": LATER, "why": [], "breaks_at": line.get("breaks_at") or LATER}
