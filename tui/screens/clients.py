"""Screen 3: clients, their libraries, the API versions they use, and where they break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kafkascope.analyzer.findings.outcomes import BREAKS, VERDICT, judged, outcomes
from kafkascope.analyzer.findings.outcomes import COLUMNS as OUTCOME
from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.statistics.clients import Clients, Usage
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.verdict import ReleaseVerdict, breaks_at, verdict_of
from kafkascope.analyzer.text import safe, wrapped
from kafkascope.dissectors.errors import UnknownApi
from kafkascope.dissectors.reference import releases
from kafkascope.dissectors.reference.releases import RELEASES, known_release
from kafkascope.tui.keys import Key
from kafkascope.tui.screens import CONNECTIONS, evidence
from kafkascope.tui.screens.board import OVER_TIME, Board, BoardSpec, Content, Tab
from kafkascope.tui.screens.sheet import ELSE, Sheet, Spans, narrow

ROLES: Final = {"breaks": "!", "unclear": "?", "ok": "good", "broker": "dim", "": "dim"}
GONE: Final = "▼"
"""The sign of a version that is used and that the release has not."""
LEGEND: Final = (
    ("█", "label", "used"),
    (GONE, "!", "unsupported in target release"),
    ("x", "!", "rejected"),
    ("·", "dim", "offered"),
)
# Least number of versions that are drawn.
LEAST: Final = 12


def matrix(usage: Usage, release: str | None, width: int) -> list[Spans]:
    """Draw a line per API with a column for each version, and what breaks on the release."""
    verdict = None if release is None else verdict_of(usage, release)
    reasons = {} if verdict is None else {reason.api: reason for reason in verdict.reasons}
    apis = sorted(usage.versions, key=lambda api: (api not in reasons, api))
    highest = max(
        [LEAST - 1]
        + [max(versions) for versions in usage.versions.values()]
        + [usage.offered[api][1] for api in apis if api in usage.offered]
    )
    name = max([4, *map(len, apis)])
    step = 2 if name + 9 + 2 * (highest + 1) + 30 <= width else 1
    out = [_scale(name, highest, step, release)]
    for api in apis:
        out.append(_api(usage, api, name, highest, step, release))
        if reason := reasons.get(api):
            out.append([(f"  {'':{name}}  {reason.word}: {reason.text}", ROLES[reason.word])])
    legend: Spans = [("  ", "")]
    for sign, role, text in LEGEND:
        if release is not None or "release" not in text:
            legend += [(sign, role), (f" {text}    ", "dim")]
    return [*out, [], legend]


def _scale(name: int, highest: int, step: int, release: str | None) -> Spans:
    numbers = ""
    for version in range(0, highest + 1, 5 if step == 1 else 2):
        numbers = f"{numbers:<{version * step}}{version}"
    cells = (highest + 1) * step
    rest = "offered" if release is None else f"offered   {release} has"
    return [(f"  {'API':{name}}  {'Count':>5}  {numbers:<{cells}}  {rest}", "header")]


def _api(usage: Usage, api: str, name: int, highest: int, step: int, release: str | None) -> Spans:
    used = usage.versions[api]
    offered, refused = usage.offered.get(api), usage.unsupported.get(api, set())
    out: Spans = [(f"  {api:{name}}  ", ""), (f"{sum(used.values()):>5,}  ", "dim")]
    for version in range(highest + 1):
        text, role = " ", ""
        if version in refused:
            text, role = "x", "!"
        elif version in used:
            text, role = ("█", "label") if _has(api, version, release) else (GONE, "!")
        elif offered is not None and offered[0] <= version <= offered[1]:
            text, role = "·", "dim"
        out.append((text.ljust(step), role))
    span = "" if offered is None else f"{offered[0]}-{offered[1]}"
    more = "" if release is None else f"   {_span(api, release)}"
    return [*out, (f"  {span:<7}{more}", "dim")]


def _has(api: str, version: int, release: str | None) -> bool:
    try:
        return release is None or releases.has(api, version, release)
    except UnknownApi:
        return True  # nothing can be said against it


def _span(api: str, release: str) -> str:
    try:
        there = releases.versions_of(api, release)
    except UnknownApi:
        return "?"
    if there is None or there.low == there.high:
        return "none" if there is None else str(there.low)
    return f"{there.low}-{there.high}"


def summary(
    usage: Usage, release: str | None, breaks_at: str, *, so_far: bool = False
) -> list[Spans]:
    """Describe a client and its verdict; `so_far`: more may come, only what breaks is shown."""
    identity = usage.identity
    who = [
        identity.client_id or "no client id",
        identity.host,
        identity.software or "library unknown",
        *([f"user {identity.user}"] if identity.user else ()),
    ]
    negotiation = {True: "sends ApiVersions", False: "never sends ApiVersions"}.get(
        usage.negotiates,  # type: ignore[arg-type]
        "the capture does not show whether it sends ApiVersions",
    )
    out: list[Spans] = [[("  ", ""), ("   ".join(who), "header"), (f"   {negotiation}", "dim")]]
    verdict = ReleaseVerdict("ok", ()) if release is None else verdict_of(usage, release)
    words: Spans = [("  ", "")]
    if so_far and verdict.word != "breaks":
        words.append(("no verdict yet: counting   ", "dim"))
    elif release is not None:
        words += [(f"{verdict.word} on {release}", ROLES[verdict.word]), ("   ", "")]
        words += [(reason.text, "") for reason in verdict.reasons if not reason.api]
    if breaks_at:
        words.append((f"breaks at {breaks_at}", "!"))
    elif release is None and not so_far:
        words.append(("works with all known releases", "good"))
    out += [words, []]
    return out


def everybody(usages: Sequence[Usage]) -> tuple[list[Column], list[Line]]:
    """Return one column per API, the most used one first, and one line of versions per client."""
    counts: Counter[str] = Counter()
    for usage in usages:
        counts.update({api: sum(numbers.values()) for api, numbers in usage.versions.items()})
    apis = sorted(counts, key=lambda api: (-counts[api], api))
    who = ("client_id", "client_address", "software")
    lines: list[Line] = []
    for usage in usages:
        versions = usage.versions.items()
        used = {api: ",".join(map(str, sorted(numbers))) for api, numbers in versions}
        lines.append({**dict(zip(who, usage.identity, strict=False)), **used})
    return [Column(name) for name in (*who, *apis)], lines


LATER: Final = "..."
"""Stands for a verdict that is not known yet."""
ENDS: Final = {"kept out": "!", "stuck": "!", "gone": "?", "open": "dim"}


def _sheet(board: Board) -> Sheet:
    verdict = VERDICT if board.settings["release"] else (BREAKS,)
    return Sheet(
        (*narrow(Clients.COLUMNS), *verdict, *OUTCOME[:1]),
        alarms={"failed": "!"},
        tones={
            "verdict": ROLES,
            "outcome": ENDS,
            "breaks_at": lambda value: "!" if value else "",
            "negotiates": {False: "?", ELSE: "dim"},
        },
        keep=("outcome", "verdict", "breaks_at", "software", "client_address", "roles"),
    )


def _identity(board: Board, line: Line) -> Identity:
    names = ("client_id", "client_address", "software", "user")
    return Identity(*(line.get(name) for name in names))  # type: ignore[arg-type]


def _lines(board: Board, clients: Clients) -> Sequence[Line]:
    """Return the lines of `clients`. What becomes of a client is known at the end only."""
    board.cache["usages"] = {usage.identity: usage for usage in clients.usages()}
    findings = None if board.so_far or board.limited else board.statistic("findings")
    ends = findings and outcomes(findings, board.names)
    lines = judged(clients, board.settings["release"] or None, ends)
    return [_unjudged(line) for line in lines] if board.so_far else lines


def _unjudged(line: Line) -> Line:
    """Return a client as it is shown while more may come: only what breaks is judged by then."""
    if line.get("verdict") == "breaks":
        return line
    return {**line, "verdict": LATER, "why": [], "breaks_at": line.get("breaks_at") or LATER}


def _evidence(board: Board, line: Line) -> str:
    """Return the filter for all exchanges of a client; of one without requests, for what shows why
    there are none."""
    if not line.get("requests") and line.get("outcome_filter"):
        return str(line["outcome_filter"])
    user = line.get("user")
    of_user = f"user == {evidence.word(user)}" if user else ""
    return evidence.both(evidence.of_client(line), of_user)


def _remark(board: Board) -> str:
    release = board.settings["release"]
    return f"for Kafka {release}   K changes" if release else "K selects a release"


def _choose_release(board: Board) -> None:
    choices = [("", "none: only the first release that breaks each client")]
    choices += [(release, f"Kafka {release}") for release in reversed(RELEASES)]

    def chosen(release: str) -> None:
        try:
            board.settings["release"] = release and known_release(release)
        except ValueError as error:
            board.host.shell.say(str(error), "warning")
            return
        board.remake()

    shell, here = board.host.shell, board.settings["release"]
    shell.pick("Kafka release", choices, chosen, here, free=True)


def _open(board: Board) -> None:
    """Go to the connections of the client; from the table of all clients to exchanges."""
    if board.below or board.line is None:
        board.open_exchanges()
    elif text := board.limited_to_filter(_evidence(board, board.line)):
        board.call_later(board.host.shell.show_limited, CONNECTIONS, text)


def _versions(board: Board, line: Line) -> Content:
    release, width = board.settings["release"] or None, board.room[0]
    usage: Usage | None = board.cache["usages"].get(_identity(board, line))
    end = [] if line.get("outcome") is None else _outcome(line, width)
    if usage is None:
        return end or "This line sums up many clients."
    head = summary(usage, release, breaks_at(usage), so_far=bool(board.so_far))
    return [*head, *end, *matrix(usage, release, width)]


def _outcome(line: Line, width: int) -> list[Spans]:
    text = f"{line['outcome']}: {line['outcome_reason']}"
    role = ENDS.get(line["outcome"], "")
    return [*([(part, role)] for part in wrapped(safe(text), width, breaks=True)), []]


def _all_clients(board: Board, line: Line) -> Content:
    columns, lines = everybody(list(board.cache["usages"].values()))
    return Sheet(columns, keep=("software",)).fill(lines)


BOARD: Final = BoardSpec(
    number=3,
    statistic="clients",
    command="kafkascope clients {}",
    help=(
        "Each client: client id, address, library, user, role and outcome: worked, gone, stuck,"
        " kept out, or open at the end. The reason is below the table. Versions shows each API "
        "with the versions that the client used (full) and that the broker offered (dots). The "
        "verdict shows whether a Kafka release supports the used versions; unused APIs do"
        " not count. Enter shows the connections of the client, Enter there its exchanges."
    ),
    tabs={
        "Versions": Tab(_versions),
        "All clients": Tab(_all_clients, lambda board, line: evidence.of_client(line)),
        "Over time": OVER_TIME,
    },
    sheet=_sheet,
    identity=_identity,
    lines=_lines,
    evidence=_evidence,
    words=lambda board: board.settings["release"] and f" --for {board.settings['release']}",
    remark=_remark,
    keys=(Key("clients.release", "K", "call('release')", "Check against another Kafka release"),),
    choices={"release": (RELEASES[-1],)},
    actions={"release": _choose_release, "open": _open},
    enter="connections",
    empty="No clients in the capture",
)
