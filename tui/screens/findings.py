"""Screen 7: what `check` finds: causes, worst first, with what followed folded into them; Enter
opens a cause, then goes to the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from textual import on
from textual.message import Message

from kafkascope.analyzer.findings.causes import Cause, apart, counted, names_of, unfolded
from kafkascope.analyzer.findings.model import COLUMNS as DECLARED
from kafkascope.analyzer.findings.model import RANK, Finding
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.text import wrapped
from kafkascope.tui.host import Host
from kafkascope.tui.keys import Hint, Key, bindings
from kafkascope.tui.screens.charted import ChartedBoard
from kafkascope.tui.screens.panes import Table
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine, text_lines

ROLES: Final = {"error": "!", "warning": "?", "note": "label", "chat": "dim"}
SIGNS: Final = {"error": "!", "warning": "?", "note": "·", "chat": " "}
CHATS: Final = "chat"
"""The name of the line that has all chats below it; no rule has that name."""
WIDEST: Final = max(len(f"{sign} {word}") for word, sign in SIGNS.items())
CONSEQUENCES: Final = Column("consequences", "count")
"""How many findings a cause explains."""
_CHECK: Final = {column.name: column for column in DECLARED}
COLUMNS: Final = (
    *(_CHECK[name] for name in ("severity", "count", "first", "last")),
    *(CONSEQUENCES, _CHECK["text"]),
)


LEVEL: Final = "level"
OPEN: Final = "▾"
CLOSED: Final = "▸"
FOLD_KEYS: Final = (
    Key(
        "findings.turn",
        "space",
        "space",
        "turn",
        "Expand or collapse the consequences",
        (Hint("table", 3, "consequences"),),
    ),
    Key("findings.unfold", "right,l", "right l", "unfold", "Expand the consequences"),
    Key("findings.fold", "left,h", "left h", "fold", "Collapse, or go to the cause"),
    Key("findings.fold_all", "z", "z", "every(False)", "Collapse all"),
    Key("findings.unfold_all", "Z", "Z", "every(True)", "Expand all"),
)


class FoldTable(Table):
    """A table with lines below others: a line whose `level` is 0 is a head, those behind it with a
    level above 0 belong to it. The board decides what is below a head, and which heads are open."""

    BINDINGS = bindings(FOLD_KEYS)

    @dataclass
    class Folded(Message):
        """The user wants to see what is below a head, or below every one."""

        opens: bool | None
        """Whether to open or to close; None: whichever it is not."""
        every: bool = False

    def action_turn(self) -> None:
        """Open the head if it is closed, else close it."""
        self._to_head()
        self.post_message(self.Folded(None))

    def action_unfold(self) -> None:
        """Open the head under the cursor."""
        if not self._level():
            self.post_message(self.Folded(opens=True))

    def action_fold(self) -> None:
        """Close the head under the cursor; from a line below one, go to its head."""
        if self._level():
            self._to_head()
        else:
            self.post_message(self.Folded(opens=False))

    def action_every(self, opens: bool) -> None:
        """Open or close every head."""
        self._to_head()
        self.post_message(self.Folded(opens, every=True))

    def _level(self) -> int:
        return 0 if self.line is None else int(self.line.get(LEVEL) or 0)

    def _to_head(self) -> None:
        at = self.cursor
        while at and at < len(self.sheet.lines) and self.sheet.lines[at].get(LEVEL):
            at -= 1
        if at != self.cursor:
            self.move_to(at)


class FindingsSheet(Sheet):
    """A table of causes: severities have a sign and the mark of a fold, consequences are
    indented."""

    def text(self, column: Column, line: Line) -> str:
        """Return the text of a cell."""
        if column.name == "severity":
            return f"{_severity(line):<{WIDEST}} {line.get('mark', '')}".rstrip()
        text = super().text(column, line)
        return f"  └ {text}" if column.name == "text" and line[LEVEL] else text


class FindingsBoard(ChartedBoard):
    """Shows causes with what followed from them."""

    NUMBER = 7
    TITLE = "Findings"
    STATISTICS = ("findings",)
    COMMAND = "kafkascope check {}"
    TABS = ("About", "Over time")
    TABLE = FoldTable
    EMPTY = "No findings"
    NEEDS_EXCHANGES = False
    KEYS = FOLD_KEYS
    VIEW = (*ChartedBoard.VIEW, "_open")
    HELP = (
        "Problems in this traffic, most severe first, with count, time, cause and fix. ▸ marks "
        "a cause that has consequences: Enter or space expands them. Enter on an expanded "
        "cause, or on one without consequences, shows its exchanges. The last line holds normal"
        " behaviour that is often mistaken for a problem. kafkascope check prints the same and "
        "returns an exit code for CI."
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._causes: list[Cause] = []
        self._open: set[str] = set()
        """Keys of the causes that are unfolded."""

    def make_sheet(self) -> Sheet:
        """Return the columns of `check`."""
        return FindingsSheet(
            COLUMNS,
            tones={"severity": lambda severity: ROLES.get(severity, "")},
            keep=("text", "count", CONSEQUENCES.name),
            roomy={"text": 50},
            below=LEVEL,
        )

    def identity(self, line: Line) -> Any:
        """Return the rule and the sentence of a finding."""
        return line.get("name"), line.get("text")

    def lines_of(self, found: Any) -> Sequence[Line]:
        """Return the lines of `check`, as far as they are unfolded."""
        self._causes = found.causes(self.names)
        return list(lines_of(self._causes, self._open))

    def evidence(self, line: Line) -> str:
        """Return the filter for the exchanges that a finding is about."""
        return str(line.get("filter") or "")

    def said(self) -> str:
        """Count causes by severity, and consequences."""
        counts = counted(self._causes)
        followed = counts.pop("consequence")
        words = [
            f"{count} {word}{'s' * (count != 1 and word != 'chat')}"
            for word, count in counts.items()
            if count
        ]
        more = [f"{followed} consequence{'s' * (followed != 1)}"] if followed else []
        more += ["so far"] if self.so_far else []
        return "   ".join([*words, *more])

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return the finding in full, or its chart over time."""
        if tab == "Over time":
            if not self.evidence(line):
                return text_lines([[("it is about the capture as a whole", "dim")]])
            return self.chart_tab(line, width, height)
        return text_lines(about(line, min(width, 100), self.host.times().text))

    def action_open_line(self) -> None:
        """Unfold a cause; show the exchanges behind one that is unfolded or has no consequence."""
        line = self.line
        heads = line is not None and line["consequences"] and not self.below
        if line and heads and (line["name"] == CHATS or line["key"] not in self._open):
            self._fold(None)
        else:
            super().action_open_line()

    @on(FoldTable.Folded)
    def folded(self, event: FoldTable.Folded) -> None:
        """Fold or unfold what the table asks for."""
        event.stop()
        if event.every:
            heads = lines_of(self._causes, set())
            self._open = (
                {line["key"] for line in heads if line["consequences"]} if event.opens else set()
            )
            self._shown()
        else:
            self._fold(event.opens)

    def _fold(self, opens: bool | None) -> None:
        """Unfold the cause under the cursor, or fold it; None: the other of the two."""
        line = self.line
        if line is None or not line["consequences"]:
            return
        key = line["key"]
        if opens is None:
            opens = key not in self._open
        (self._open.add if opens else self._open.discard)(key)
        self._shown()

    def _shown(self) -> None:
        lines = list(lines_of(self._causes, self._open))
        self.upper.refilled(lambda: self.sheet.fill(lines, self.host.times()))
        self.refill_lower()
        self.place()


def lines_of(causes: Sequence[Cause], opened: set[str]) -> Iterator[Line]:
    """Yield the causes, those of `opened` with what followed; one line at the end has all chats
    below it."""
    told_of = {finding.id: finding.text for finding in unfolded(causes)}
    trouble, chats = apart(causes)
    for cause in trouble:
        line = _line(cause.finding, told_of)
        yield _head(line, len(cause.consequences), opened) | {"therefore": cause.therefore()}
        if line["key"] in opened:
            yield from (_below(_line(each, told_of)) for each in cause.consequences)
    if chats:
        found = unfolded(chats)
        times = [each.first_ns for each in found if each.first_ns is not None]
        ends = [each.last_ns for each in found if each.last_ns is not None]
        line = {
            "severity": "chat",
            "rank": RANK["chat"],
            "name": CHATS,
            "key": CHATS,
            "text": f"normal, often mistaken for problems: {names_of(chats)}",
            "count": len(found),
            "first": min(times, default=None),
            "last": max(ends, default=None),
        }
        yield _head(line, len(found), opened)
        if CHATS in opened:
            yield from (_below(_line(each, told_of)) for each in found)


def _line(finding: Finding, told_of: dict[str, str]) -> Line:
    """Return a finding with the sentences of what explains it."""
    return finding.line() | {"causes": [told_of[one] for one in finding.because if one in told_of]}


def _head(line: Line, followed: int, opened: set[str]) -> Line:
    """Return a cause, with a sign behind the severity that says whether it is unfolded."""
    mark = (OPEN if line["key"] in opened else CLOSED) if followed else ""
    return line | {
        "mark": mark,
        CONSEQUENCES.name: followed or None,
        LEVEL: 0,
    }


def _below(line: Line) -> Line:
    """Return a consequence, or a chat, indented."""
    return line | {CONSEQUENCES.name: None, LEVEL: 1}


def _severity(line: Line) -> str:
    return f"{SIGNS[line['severity']]} {line['severity']}"


def about(line: Line, width: int, clock: Any) -> list[Spans]:
    """Return a finding in full."""
    role = ROLES.get(line["severity"], "")
    out: list[Spans] = [[(_severity(line), role)], []]
    out += [[(part, "header")] for part in wrapped(str(line.get("text", "")), width, breaks=True)]
    texts = [("Fix", line.get("advice")), ("Consequences", line.get("therefore"))]
    texts += [("Cause", text) for text in line.get("causes", ())]
    for label, text in texts:
        if text:
            out += [[], [(label, "dim")]]
            out += [[(part, "")] for part in wrapped(str(text), width, breaks=True)]
    ends = dict.fromkeys(time for time in (line.get("first"), line.get("last")) if time is not None)
    facts = (
        ("When", " to ".join(map(clock, ends)) if line.get("first") is not None else ""),
        ("How often", f"{line['count']:,}" if line.get("count") else ""),
        ("Evidence", line.get("filter")),
        ("Connections", line.get("connects")),
        ("About", ", ".join(map(str, line.get("entities") or ()))),
        ("More", f"kafkascope error {line['link']}" if line.get("link") else ""),
        ("Rule", line.get("name") if line.get("name") != CHATS else ""),
    )
    shown = [[(f"{label:<12}", "dim"), (str(text), "label")] for label, text in facts if text]
    return [*out, [], *shown]
