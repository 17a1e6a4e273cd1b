"""Screen 9: ZooKeeper's tree as the capture saw it; the history of a node, sessions, elections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Any, Final

import orjson

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.tui.host import Host
from kafkascope.tui.screens.board import Board
from kafkascope.tui.screens.evidence import both
from kafkascope.tui.screens.sheet import Sheet, Spans, TextLine, text_lines

ROOT: Final = "/"
STEP: Final = "  "
"""Indent of the children of a node."""

NODE_COLUMNS: Final = (
    Column("node"),
    Column("state"),
    Column("mode"),
    Column("what"),
    Column("changed", "time"),
    Column("changes", "count"),
    Column("reads", "count"),
    Column("events", "count"),
    Column("version", "count"),
    Column("bytes", "size"),
    Column("data"),
)
STATES: Final = {"expired": "!", "refused": "!", "silent": "?"}
CHANGES: Final = {"created": "good", "deleted": "?"}
USUAL: Final = ("", "persistent")
"""Modes that are not worth a word."""


class ZooKeeperBoard(Board):
    """Shows the tree of nodes, those that are gone dimmed."""

    NUMBER = 9
    TITLE = "ZooKeeper"
    STATISTICS = ("zookeeper",)
    COMMAND = "kafkascope stats zookeeper {}"
    TABS = ("History", "Below", "Data", "Sessions", "Elections")
    LINES_MATTER = False
    EMPTY = "No ZooKeeper traffic in the capture"
    HELP = (
        "Znodes as seen in requests, responses and watch events. Deleted ones are dim; "
        "ephemeral ones end with their session. History lists when the znode under the cursor "
        "was created, changed and deleted, and by whom; Below lists the same for all znodes "
        "below it. Sessions shows how each session ended and which znodes went with it; "
        "Elections the controllers. Enter on a znode shows the requests for it, Enter on a "
        "change its exchange."
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._stories: dict[str, TreeStory] = {}
        """By the name of their ensembles."""

    def make_sheet(self) -> Sheet:
        """Return the columns of the tree."""
        return Sheet(
            NODE_COLUMNS,
            tones={"mode": lambda value: "mark" if value == "ephemeral" else ""},
            keep=("data", "mode", "state", "changes"),
            roomy={"node": 34, "data": 24},
            faded="faded",
        )

    def identity(self, line: Line) -> Any:
        """Return ensemble and path of a node."""
        return line["ensemble"], line["path"]

    def lines_of(self, found: ZooKeeper) -> Sequence[Line]:
        """Return the nodes with all that are above them, as a tree; of several ensembles, one below
        the other, each has one below its name."""
        self._stories = {story.name: story for story in found.stories()}
        several = len(self._stories) > 1
        return [
            {**line, "node": f"/ of {name}"} if several and line["path"] == ROOT else line
            for name, story in self._stories.items()
            for line in tree(story.node_lines(), name)
        ]

    def evidence(self, line: Line) -> str:
        """Return the filter for a node; for one that nobody asked for, for what is below it."""
        path, story = line["path"], self._stories.get(line["ensemble"])
        where = ""
        if story is not None and len(self._stories) > 1:
            where = f"broker in {{{', '.join(map(quoted, story.servers))}}}"
        if path == ROOT and line["inferred"]:
            return where or "protocol == zookeeper"
        if line["inferred"]:
            return both(f"path contains {quoted(f'{path}/')}", where)
        return both(f"path == {quoted(path)}", where)

    def low_evidence(self, tab: str, line: Line) -> str:
        """Return the filter for a session, or for the exchange of a change."""
        if tab == "Sessions":
            return f"zk.session == {line['zk_session']}" if line["zk_session"] else ""
        return f"number == {line['number']}" if line.get("number") else ""

    def command(self) -> str:
        """Return the command for the node under the cursor."""
        under = self.line["path"] if self.line else ROOT
        return self.COMMAND if under == ROOT else f"{self.COMMAND} --under {quote(under)}"

    def said(self) -> str:
        """Return the whole path of the node that the tab is about."""
        return self.line["path"] if self.line and self.tab in ("History", "Below", "Data") else ""

    def show_tab(self, tab: str, line: Line, width: int, height: int) -> Sheet | Sequence[TextLine]:
        """Return a table or text about a node, or a table about all."""
        story = self._stories.get(line.get("ensemble", ""))
        if story is None:
            story = next(iter(self._stories.values()), None)
        if story is None:
            return []
        path = line.get("path", ROOT)
        if tab == "Data":
            return text_lines(data_lines(line, max(20, width)))
        times = self.host.times()
        if tab == "Sessions":
            return sessions().fill(story.session_lines(), times)
        if tab == "Elections":
            elections = story.elections()
            if not elections:
                return self._nothing("no controller was elected in the capture")
            return Sheet(_shown(ZooKeeper.ELECTION_COLUMNS), keep=("controller_epoch", "end")).fill(
                elections, times
            )
        if tab == "Below":
            changes = [each for each in story.history() if is_below(each["path"], path)]
        else:
            changes = story.history(path)
        if not changes:
            return self._nothing("no changes of this znode in the capture")
        return history(with_path=tab == "Below").fill(changes, times)

    def _nothing(self, text: str) -> Sequence[TextLine]:
        return text_lines([[(self.worded(text), "dim")]])


def _shown(columns: Iterable[Column]) -> list[Column]:
    return [column for column in columns if not column.wide]


def sessions() -> Sheet:
    """Return the table of sessions, without lines."""
    return Sheet(
        _shown(ZooKeeper.SESSION_COLUMNS),
        alarms={"failed": "?", "refused": "!"},
        tones={"state": lambda value: STATES.get(value, ""), "lost_nodes": lambda value: "!"},
        keep=("state", "who", "client_address", "lost_nodes", "last"),
    )


def history(*, with_path: bool) -> Sheet:
    """Return the table of changes, without lines."""
    columns = {column.name: column for column in ZooKeeper.HISTORY_COLUMNS}
    names = [
        "time",
        "change",
        "how",
        "who",
        "client_address",
        "zk_session",
        "version",
        "bytes",
        "number",
    ]
    if with_path:
        names.insert(1, "path")
    return Sheet(
        [columns[name] for name in (*names, "data")],
        tones={"change": lambda value: CHANGES.get(value, "")},
        keep=("change", *(("path",) if with_path else ()), "number", "who", "data", "how"),
        roomy={"path": 24, "data": 24},
    )


def is_below(path: str, top: str) -> bool:
    """Return whether a node is another one, or is below it."""
    return path == top or path.startswith(ROOT if top == ROOT else f"{top}/")


def tree(nodes: Sequence[Line], ensemble: str = "") -> list[Line]:
    """Return nodes of an ensemble in the order of a tree, with the nodes above them of which
    nothing was said, and the place of each in `node`."""
    known: dict[str, Line] = {line["path"]: line for line in nodes}
    rest = [line for path, line in known.items() if not path.startswith(ROOT)]
    paths = {above for path in known if path.startswith(ROOT) for above in chain(path)}
    ordered = sorted(paths, key=lambda path: [] if path == ROOT else path.split(ROOT))
    lines = [_placed(path, known.get(path), ensemble) for path in ordered]
    return lines + [
        {**line, "node": line["path"], "inferred": False, "faded": False} for line in rest
    ]


def chain(path: str) -> Iterable[str]:
    """Yield a path and those of all nodes above it."""
    yield path
    while path != ROOT:
        path = path.rpartition(ROOT)[0] or ROOT
        yield path


def _placed(path: str, told: Line | None, ensemble: str) -> Line:
    depth = 0 if path == ROOT else path.count(ROOT)
    name = path if path == ROOT else path.rpartition(ROOT)[2] or '""'
    line: Line = {"ensemble": ensemble, "path": path, "state": "", "mode": "", **(told or {})}
    if line["mode"] in USUAL:
        line["mode"] = ""
    if line["state"] == "there":
        line["state"] = ""
    line["changed"] = line.get("deleted") or line.get("changed") or line.get("created")
    return {
        **line,
        "node": f"{STEP * depth}{name}",
        "inferred": told is None,
        "faded": line["state"] in ("gone", "not there"),
    }


def data_lines(line: Mapping[str, Any], width: int) -> list[Spans]:
    """Return what is in a node: JSON opened, other texts as they are."""
    text = line.get("data")
    if not text:
        size = line.get("bytes")
        told = f"{size} bytes, binary or secret" if size else "No data seen"
        return [[(told, "dim")]]
    try:
        opened = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        opened = text
    rows = opened.splitlines()
    return [[(row[at : at + width], "")] for row in rows for at in range(0, len(row) or 1, width)]
