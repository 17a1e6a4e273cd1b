"""APIs x versions of a client: which it used, which a broker offered it, which a release has; and
a table of all clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkascope.analyzer.statistics.clients import Usage
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.verdict import ReleaseVerdict, verdict_of
from kafkascope.dissectors.errors import UnknownApi
from kafkascope.dissectors.reference import releases
from kafkascope.tui.screens.sheet import Spans

ROLES: Final = {"breaks": "!", "unclear": "?", "ok": "good", "broker": "dim", "": "dim"}
GONE: Final = "▼"
"""The sign of a version that is used and that the release has not."""
LEGEND: Final = (
    ("█", "label", "used"),
    (GONE, "!", "unsupported in target release"),
    ("x", "!", "rejected"),
    ("·", "dim", "offered"),
)
LEAST: Final = 12
"""Least number of versions that are drawn."""


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
        if api in reasons:
            reason = reasons[api]
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
            there = release is None or _has(api, version, release)
            text, role = ("█", "label") if there else (GONE, "!")
        elif offered is not None and offered[0] <= version <= offered[1]:
            text, role = "·", "dim"
        out.append((text.ljust(step), role))
    span = "" if offered is None else f"{offered[0]}-{offered[1]}"
    out.append((f"  {span:<7}", "dim"))
    if release is not None:
        out.append((f"   {_span(api, release)}", "dim"))
    return out


def _has(api: str, version: int, release: str) -> bool:
    try:
        return releases.has(api, version, release)
    except UnknownApi:
        return True  # nothing can be said against it


def _span(api: str, release: str) -> str:
    try:
        there = releases.versions_of(api, release)
    except UnknownApi:
        return "?"
    if there is None:
        return "none"
    return str(there.low) if there.low == there.high else f"{there.low}-{there.high}"


def summary(
    usage: Usage, release: str | None, breaks_at: str, *, so_far: bool = False
) -> list[Spans]:
    """Describe a client and its verdict; `so_far`: more may come, only what breaks is told."""
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
    counts: dict[str, int] = {}
    for usage in usages:
        for api, versions in usage.versions.items():
            counts[api] = counts.get(api, 0) + sum(versions.values())
    apis = sorted(counts, key=lambda api: (-counts[api], api))
    columns = [Column("client_id"), Column("client_address"), Column("software")]
    columns += [Column(api) for api in apis]
    lines = []
    for usage in usages:
        line: Line = {
            "client_id": usage.identity.client_id,
            "client_address": usage.identity.host,
            "software": usage.identity.software,
        }
        for api, versions in usage.versions.items():
            line[api] = ",".join(map(str, sorted(versions)))
        lines.append(line)
    return columns, lines
