"""Screen 7: what `check` finds, worst first; Enter goes to the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from analyzer.statistics.model import Column
from analyzer.text import wrapped
from tui.screens.board import told
from tui.screens.charted import ChartedBoard
from tui.screens.ladder import Told
from tui.screens.sheet import Sheet, Spans

if TYPE_CHECKING:
    from analyzer.statistics.model import Line
    from tui.keys import Key

ROLES: Final = {"error": "!", "warning": "?", "note": "label", "chat": "dim"}
SIGNS: Final = {"error": "!", "warning": "?", "note": "·", "chat": " "}
COLUMNS: Final = (
    Column("shown", "severity"),
    Column("count", "n", "count"),
    Column("first", "first", "time"),
    Column("last", "last", "time"),
    Column("text", "finding"),
)


class FindingsBoard(ChartedBoard):
    """Observations about the traffic."""

    NUMBER = 7
    TITLE = "Findings"
    STATISTICS = ("findings",)
    COMMAND = "kafkascope check {}"
    TABS = ("About", "Over time")
    EMPTY = "nothing to object to"
    KEYS: ClassVar[tuple[Key, ...]] = ()
    HELP = (
        "What is worth knowing about this traffic, the worst first: each with how often, since "
        "when, and what to do. Enter shows the exchanges that it is about. check prints the same "
        "and ends with an exit code for CI."
    )

    def make_sheet(self) -> Sheet:
        """As `check`."""
        return Sheet(
            COLUMNS,
            tones={"shown": lambda value: ROLES.get(str(value)[2:], "")},
            keep=("text", "count"),
            roomy={"text": 50},
        )

    def identity(self, line: Line) -> Any:
        """What was found, about whom."""
        return line.get("name"), line.get("text")

    def lines(self) -> Sequence[Line] | None:
        """As `check`."""
        found = self.statistic("findings")
        if found is None:
            return None
        lines = found.rows(self.scene.store.session.context.names)
        return [shown(line) for line in lines]

    def evidence(self, line: Line) -> str:
        """The exchanges that it is about."""
        return str(line.get("filter") or "")

    def said(self) -> str:
        """How many of each severity."""
        counts = dict.fromkeys(ROLES, 0)
        for line in self.sheet.lines:
            counts[line["severity"]] = counts.get(line["severity"], 0) + 1
        words = [
            f"{count} {word}{'s' * (count != 1 and word != 'chat')}"
            for word, count in counts.items()
            if count
        ]
        more = ["so far"] if self.so_far else []
        return "   ".join([*words, *more])

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[Told]:
        """The whole of a finding."""
        if tab == "Over time":
            if not self.evidence(line):
                return told([[("it is about the capture as a whole", "dim")]])
            return self.chart_tab(line, width, height)
        return told(about(line, min(width, 100), self.scene.times().text))


def shown(line: Line) -> Line:
    """With a sign before the severity."""
    severity = str(line.get("severity", ""))
    return {**line, "shown": f"{SIGNS.get(severity, ' ')} {severity}"}


def about(line: Line, width: int, clock: Any) -> list[Spans]:
    """A finding in full."""
    role = ROLES.get(line["severity"], "")
    out: list[Spans] = [[(line["shown"], role)], []]
    out += [[(part, "header")] for part in wrapped(str(line.get("text", "")), width, breaks=True)]
    if line.get("advice"):
        out += [[], [("what to do", "dim")]]
        out += [[(part, "")] for part in wrapped(str(line["advice"]), width, breaks=True)]
    facts = []
    if line.get("first") is not None:
        span = clock(line["first"])
        if line.get("last") not in (None, line["first"]):
            span += f" to {clock(line['last'])}"
        facts.append(("when", span))
    if line.get("count"):
        facts.append(("how often", f"{line['count']:,}"))
    if line.get("filter"):
        facts.append(("evidence", line["filter"]))
    if line.get("entities"):
        facts.append(("about", ", ".join(map(str, line["entities"]))))
    if line.get("link"):
        facts.append(("more", f"kafkascope errors {line['link']}"))
    if line.get("name"):
        facts.append(("rule", line["name"]))
    out.append([])
    out += [[(f"{label:<12}", "dim"), (str(text), "label")] for label, text in facts]
    return out
