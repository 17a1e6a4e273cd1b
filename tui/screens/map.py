"""Screen 0: applications, the topics that they write and read, and who is at the other side."""

from __future__ import annotations

from typing import Final, get_args

from kafkascope.analyzer.statistics.journeys.applications import Applications
from kafkascope.analyzer.statistics.journeys.drawing import map_lines
from kafkascope.analyzer.statistics.journeys.model import By
from kafkascope.analyzer.statistics.model import Line
from kafkascope.tui.keys import Key
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.screens import MAP, evidence
from kafkascope.tui.screens.board import OVER_TIME, Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.sheet import Sheet, narrow

APIS: Final = {"writes": "api == Produce", "reads": "api in {Fetch, ShareFetch}"}
ROLES: Final = {"": "", "header": "header", "~": "dim"}
"""Style of a line of `map_lines` -> its role here."""


def _evidence(board: Board, line: Line) -> str:
    """Return the filter for the exchanges of an edge."""
    ids = line["clients"]
    client = ""
    if all(ids) and 0 < len(ids) <= LIMITS.map_client_ids:
        words = ", ".join(map(evidence.word, ids))
        client = f"client in {{{words}}}" if len(ids) > 1 else f"client == {words}"
    return evidence.both(APIS[line["way"]], client, evidence.of_topic(line))


def _application(board: Board, line: Line) -> Content:
    """Return what the command prints of the application under the cursor."""
    found: Applications | None = board.statistic("map")
    if found is None:
        return ""
    shown = found.map_of(board.names, board.settings["by"])
    lines = map_lines(shown, board.room[0], line["application"])
    return [[(text, ROLES[style])] for text, style in lines]


BOARD: Final = BoardSpec(
    number=MAP,
    statistic="map",
    command="kafkascope map {}",
    help=(
        "Applications with the topics that they write and read. Peers are the applications at the "
        "other side of the topic. Client IDs that differ by a number, a random part or a role are "
        "one application; B groups by client ID, user, host, or group. Replication between brokers "
        "is left out."
    ),
    tabs={"Application": Tab(_application), "Over time": OVER_TIME},
    sheet=lambda board: Sheet(
        narrow(Applications.COLUMNS, "schemas"), keep=("topic", "way", "peers", "records", "group")
    ),
    identity=lambda board, line: tuple(map(line.get, ("application", "way", "topic", "group"))),
    lines=lambda board, found: found.rows(board.names, board.settings["by"]),
    evidence=_evidence,
    words=lambda board: (
        "" if board.settings["by"] == "application" else f" --by {board.settings['by']}"
    ),
    keys=(
        Key("map.by", "B", "switch('by')", "Group by application, client ID, user, host, group"),
    ),
    choices={"by": get_args(By)},
    empty="No producers or consumers in the capture",
)
