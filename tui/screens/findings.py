"""Screen 7: what `check` finds: causes, worst first, with what followed folded into them; Enter
opens a cause, then goes to the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from kafkascope.analyzer.findings.causes import Cause, apart, counted, names_of, unfolded
from kafkascope.analyzer.findings.model import COLUMNS as DECLARED
from kafkascope.analyzer.findings.model import RANK, Finding
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.text import wrapped
from kafkascope.tui.keys import Key, bindings
from kafkascope.tui.screens.board import OVER_TIME, Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.panes import SheetTable
from kafkascope.tui.screens.sheet import Sheet, Spans

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
"""0 of a cause; the lines after it with a level above 0 belong to it."""
OPEN: Final = "▾"
CLOSED: Final = "▸"
FOLD_KEYS: Final = (
    Key("findings.turn", "space", "call('turn')", "Expand or collapse the consequences"),
    Key("findings.unfold", "right,l", "call('unfold')", "Expand the consequences", "right l"),
    Key("findings.fold", "left,h", "call('fold')", "Collapse, or go to the cause", "left h"),
    Key("findings.fold_all", "z", "call('fold all')", "Collapse all"),
    Key("findings.unfold_all", "Z", "call('unfold all')", "Expand all"),
)


class FoldTable(SheetTable):
    """A table with lines below others; its keys come before those that scroll."""

    BINDINGS = bindings(FOLD_KEYS)


class FindingsSheet(Sheet):
    """A table of causes: severities have a sign and the mark of a fold, consequences are
    indented."""

    def text(self, column: Column, line: Line) -> str:
        if column.name == "severity":
            return f"{_severity(line):<{WIDEST}} {line.get('mark', '')}".rstrip()
        text = super().text(column, line)
        return f"  └ {text}" if column.name == "text" and line[LEVEL] else text


def _fold(board: Board, how: str) -> None:
    """Open or close the cause under the cursor, or all; `how` is the action of a key."""
    line, lines = board.line, board.sheet.lines
    head = min(board.table.cursor, len(lines) - 1)
    if line is None or board.below or (how == "unfold" and line[LEVEL]):
        return
    while head and lines[head][LEVEL]:
        head -= 1
    moved = head != board.table.cursor
    if moved:
        board.table.move_to(head)
    opened, key = board.settings["open"], lines[head]["key"]
    if how == "fold all":
        opened = frozenset()
    elif how == "unfold all":
        heads = lines_of(board.cache["causes"], frozenset())
        opened = frozenset(each["key"] for each in heads if each["consequences"])
    elif lines[head]["consequences"] and not (how == "fold" and moved):
        opens = key not in opened if how == "turn" else how == "unfold"
        opened = opened | {key} if opens else opened - {key}
    else:
        return
    board.settings["open"] = opened
    board.show_lines(list(lines_of(board.cache["causes"], opened)))


def _lines(board: Board, found: Any) -> Sequence[Line]:
    """Return the lines of `check`, as far as they are unfolded."""
    causes = board.cache["causes"] = found.causes(board.names)
    return list(lines_of(causes, board.settings["open"]))


def _evidence(board: Board, line: Line) -> str:
    return str(line.get("filter") or "")


def _remark(board: Board) -> str:
    """Count causes by severity, and consequences."""
    words = [
        f"{count} {word}{'s' * (count != 1 and word != CHATS)}"
        for word, count in counted(board.cache.get("causes", ())).items()
        if count
    ]
    return "   ".join([*words, *(["so far"] if board.so_far else [])])


def _open(board: Board) -> None:
    """Unfold a cause; show the exchanges behind one that is unfolded or has no consequence."""
    line = board.line
    heads = line is not None and line["consequences"] and not board.below
    if line and heads and (line["name"] == CHATS or line["key"] not in board.settings["open"]):
        _fold(board, "turn")
    else:
        board.open_exchanges()


def _about(board: Board, line: Line) -> Content:
    return about(line, min(board.room[0], 100), board.host.times().text)


def _over_time(board: Board, line: Line) -> Content:
    return board.chart(line) if line.get("filter") else "it is about the capture as a whole"


def lines_of(causes: Sequence[Cause], opened: frozenset[str]) -> Iterator[Line]:
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
        line = {
            **dict.fromkeys(("severity", "name", "key"), CHATS),
            "rank": RANK[CHATS],
            "text": f"normal, often mistaken for problems: {names_of(chats)}",
            "count": len(found),
            "first": min(
                (each.first_ns for each in found if each.first_ns is not None), default=None
            ),
            "last": max((each.last_ns for each in found if each.last_ns is not None), default=None),
        }
        yield _head(line, len(found), opened)
        if CHATS in opened:
            yield from (_below(_line(each, told_of)) for each in found)


def _line(finding: Finding, told_of: dict[str, str]) -> Line:
    """Return a finding with the sentences of what explains it."""
    return finding.line() | {"causes": [told_of[one] for one in finding.because if one in told_of]}


def _head(line: Line, followed: int, opened: frozenset[str]) -> Line:
    """Return a cause, with a sign after the severity that says whether it is unfolded."""
    mark = (OPEN if line["key"] in opened else CLOSED) if followed else ""
    return line | {"mark": mark, CONSEQUENCES.name: followed or None, LEVEL: 0}


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
        lines = wrapped(str(text), width, breaks=True) if text else []
        out += [[], [(label, "dim")], *([(part, "")] for part in lines)] if text else []
    ends = dict.fromkeys(time for time in (line.get("first"), line.get("last")) if time is not None)
    facts = (
        ("When", " to ".join(map(clock, ends)) if line.get("first") is not None else ""),
        ("Events", f"{line['count']:,}" if line.get("count") else ""),
        ("Evidence", line.get("filter")),
        ("Connections", line.get("connects")),
        ("About", ", ".join(map(str, line.get("entities") or ()))),
        ("More", f"kafkascope error {line['link']}" if line.get("link") else ""),
        ("Rule", line.get("name") if line.get("name") != CHATS else ""),
    )
    shown = [[(f"{label:<12}", "dim"), (str(text), "label")] for label, text in facts if text]
    return [*out, [], *shown]


BOARD: Final = BoardSpec(
    number=7,
    statistic="findings",
    command="kafkascope check {}",
    help=(
        "Problems in this traffic, most severe first, with count, time, cause and fix. ▸ marks "
        "a cause that has consequences: Enter or space expands them. Enter on an expanded "
        "cause, or on one without consequences, shows its exchanges. The last line holds normal"
        " behaviour that is often mistaken for a problem. kafkascope check prints the same and "
        "returns an exit code for CI."
    ),
    tabs={"About": Tab(_about), "Over time": OVER_TIME._replace(show=_over_time)},
    sheet=lambda board: FindingsSheet(
        COLUMNS,
        tones={"severity": ROLES},
        keep=("text", "count", CONSEQUENCES.name),
        roomy={"text": 50},
        below=LEVEL,
    ),
    identity=lambda board, line: (line.get("name"), line.get("text")),
    lines=_lines,
    evidence=_evidence,
    remark=_remark,
    keys=FOLD_KEYS,
    choices={"open": (frozenset(),)},
    actions={
        "open": _open,
        **{how: partial(_fold, how=how) for how in ("turn", "unfold", "fold")},
        **{how: partial(_fold, how=how) for how in ("unfold all", "fold all")},
    },
    empty="No findings",
    needs_exchanges=False,
    table=FoldTable,
)
