"""Screen 9: ZooKeeper's tree as the capture saw it; the history of a node, sessions, elections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import Any, Final

import orjson

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.zookeeper.model import is_below
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.tui.screens.board import Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.evidence import both
from kafkascope.tui.screens.sheet import Sheet, Spans, narrow

ROOT: Final = "/"
STEP: Final = "  "
"""Indent of the children of a node."""
NODE_COLUMNS: Final = (
    *(Column("node"), Column("state"), Column("mode"), Column("what"), Column("changed", "time")),
    *(Column(name, "count") for name in ("changes", "reads", "events", "version")),
    *(Column("bytes", "size"), Column("data")),
)
HISTORY: Final = (
    *("time", "path", "change", "how", "who", "client_address", "zk_session", "version"),
    *("bytes", "number", "data"),
)
USUAL: Final = ("", "persistent")
"""Modes that are not worth a word."""


def _sheet(board: Board) -> Sheet:
    return Sheet(
        NODE_COLUMNS,
        tones={"mode": {"ephemeral": "mark"}},
        keep=("data", "mode", "state", "changes"),
        roomy={"node": 34, "data": 24},
        faded="faded",
    )


def _lines(board: Board, found: ZooKeeper) -> Sequence[Line]:
    """Return the nodes with all that are above them, as a tree; of several ensembles, one below the
    other, each has one below its name."""
    stories = board.cache["stories"] = {story.name: story for story in found.stories()}
    return [
        {**line, "node": f"/ of {name}"} if len(stories) > 1 and line["path"] == ROOT else line
        for name, story in stories.items()
        for line in tree(story.node_lines(), name)
    ]


def _evidence(board: Board, line: Line) -> str:
    """Return the filter for a node; for an inferred one, for its descendants."""
    path, stories = line["path"], board.cache["stories"]
    story, where = stories.get(line["ensemble"]), ""
    if story is not None and len(stories) > 1:
        where = f"broker in {{{', '.join(map(quoted, story.servers))}}}"
    if path == ROOT and line["inferred"]:
        return where or "protocol == zookeeper"
    if line["inferred"]:
        return both(f"path contains {quoted(f'{path}/')}", where)
    return both(f"path == {quoted(path)}", where)


def _words(board: Board) -> str:
    under = board.line["path"] if board.line else ROOT
    return "" if under == ROOT else f" --under {quote(under)}"


def _remark(board: Board) -> str:
    """Return the whole path of the node that the tab is about."""
    return board.line["path"] if board.line and board.tab in ("History", "Below", "Data") else ""


def _story(board: Board, line: Line, show: Callable[[Board, TreeStory, Line], Content]) -> Content:
    """Return what a tab shows of the story of an ensemble: that of the line, or the first one."""
    stories = board.cache.get("stories", {})
    story = stories.get(line.get("ensemble", "")) or next(iter(stories.values()), None)
    return [] if story is None else show(board, story, line)


def _history(board: Board, story: TreeStory, line: Line, *, below: bool = False) -> Content:
    path, names = line.get("path", ROOT), list(HISTORY)
    if below:
        changes = [each for each in story.history() if is_below(each["path"], path)]
    else:
        changes = story.history(path)
        names.remove("path")
    columns = {column.name: column for column in ZooKeeper.HISTORY_COLUMNS}
    sheet = Sheet(
        [columns[name] for name in names],
        tones={"change": {"created": "good", "deleted": "?"}},
        keep=("change", *(("path",) if below else ()), "number", "who", "data", "how"),
        roomy={"path": 24, "data": 24},
    )
    return board.listed(sheet, changes, "no changes of this znode in the capture")


def _sessions(board: Board, story: TreeStory, line: Line) -> Content:
    sheet = Sheet(
        narrow(ZooKeeper.SESSION_COLUMNS),
        alarms={"failed": "?", "refused": "!"},
        tones={
            "state": {"expired": "!", "refused": "!", "silent": "?"},
            "lost_nodes": lambda value: "!",
        },
        keep=("state", "who", "client_address", "lost_nodes", "last"),
    )
    return sheet.fill(story.session_lines(), board.host.times())


def _elections(board: Board, story: TreeStory, line: Line) -> Content:
    sheet = Sheet(narrow(ZooKeeper.ELECTION_COLUMNS), keep=("controller_epoch", "end"))
    return board.listed(sheet, story.elections(), "no controller was elected in the capture")


def _session(board: Board, line: Line) -> str:
    return f"zk.session == {line['zk_session']}" if line["zk_session"] else ""


def _tab(show: Callable[..., Content], of_line: Callable[[Any, Line], str] | None = None) -> Tab:
    return Tab(partial(_story, show=show), of_line or _exchange)


def _exchange(board: Board, line: Line) -> str:
    return f"number == {line['number']}" if line.get("number") else ""


def tree(nodes: Sequence[Line], ensemble: str = "") -> list[Line]:
    """Return nodes of an ensemble in the order of a tree, with parents that were inferred, and the
    place of each in `node`."""
    known: dict[str, Line] = {line["path"]: line for line in nodes}
    rest = [line for path, line in known.items() if not path.startswith(ROOT)]
    paths = {above for path in known if path.startswith(ROOT) for above in _chain(path)}
    ordered = sorted(paths, key=lambda path: [] if path == ROOT else path.split(ROOT))
    lines = [_node(path, known.get(path), ensemble) for path in ordered]
    return lines + [
        {**line, "node": line["path"], "inferred": False, "faded": False} for line in rest
    ]


def _chain(path: str) -> Iterable[str]:
    """Yield a path and those of all nodes above it."""
    yield path
    while path != ROOT:
        path = path.rpartition(ROOT)[0] or ROOT
        yield path


def _node(path: str, seen: Line | None, ensemble: str) -> Line:
    depth = 0 if path == ROOT else path.count(ROOT)
    name = path if path == ROOT else path.rpartition(ROOT)[2] or '""'
    line: Line = {"ensemble": ensemble, "path": path, "state": "", "mode": "", **(seen or {})}
    return {
        **line,
        "mode": "" if line["mode"] in USUAL else line["mode"],
        "state": "" if line["state"] == "there" else line["state"],
        "changed": line.get("deleted") or line.get("changed") or line.get("created"),
        "node": f"{STEP * depth}{name}",
        "inferred": seen is None,
        "faded": line["state"] in ("gone", "not there"),
    }


def data_lines(line: Mapping[str, Any], width: int) -> list[Spans]:
    """Return what is in a node: JSON opened, other texts as they are."""
    text = line.get("data")
    if not text:
        size = line.get("bytes")
        return [[(f"{size} bytes, binary or secret" if size else "No data seen", "dim")]]
    try:
        text = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        pass  # it is shown as it is
    rows = text.splitlines()
    return [[(row[at : at + width], "")] for row in rows for at in range(0, len(row) or 1, width)]


BOARD: Final = BoardSpec(
    number=9,
    statistic="zookeeper",
    command="kafkascope stats zookeeper {}",
    help=(
        "Znodes as seen in requests, responses and watch events. Deleted ones are dim; "
        "ephemeral ones end with their session. History lists when the znode under the cursor "
        "was created, changed and deleted, and by whom; Below lists the same for all znodes "
        "below it. Sessions shows how each session ended and which znodes went with it; "
        "Elections the controllers. Enter on a znode shows the requests for it, Enter on a "
        "change its exchange."
    ),
    tabs={
        "History": _tab(_history),
        "Below": _tab(partial(_history, below=True)),
        "Data": _tab(lambda board, story, line: data_lines(line, board.room[0])),
        "Sessions": _tab(_sessions, _session),
        "Elections": _tab(_elections),
    },
    sheet=_sheet,
    identity=lambda board, line: (line["ensemble"], line["path"]),
    lines=_lines,
    evidence=_evidence,
    words=_words,
    remark=_remark,
    empty="No ZooKeeper traffic in the capture",
    about_lines=False,
)
