"""What of a client's traffic a Kafka release does not have: `clients --for RELEASE`.

Judged by the facts of all releases, not by announcements: versions that KIP-896 marked and that
stayed are there, and JoinGroup 0 and 1, which 4.0.0 alone lacks, break on 4.0.0 alone. A client is
judged by what it did in the capture; APIs that it did not use are not judged.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from kafkascope.analyzer.statistics.clients import Usage
from kafkascope.dissectors.errors import UnknownApi
from kafkascope.dissectors.reference import releases
from kafkascope.dissectors.values import Versions

Word = Literal["ok", "unclear", "breaks", "broker"]
"""`broker`: traffic between brokers, which change their release together with it."""

RANK: Final[dict[Word, int]] = {"breaks": 0, "unclear": 1, "broker": 2, "ok": 3}
JAVA: Final = "apache-kafka-java"
OPTIONAL: Final = frozenset({"GetTelemetrySubscriptions", "PushTelemetry"})
"""Clients do without them."""
FETCH: Final = "Fetch"
"""Each release that dropped versions dropped some of it: a broker that offers no older ones is one
of them."""
FALLS_BACK: Final = "ApiVersions"
"""A broker answers a version of it that it does not have, and the client retries."""


class Reason(NamedTuple):
    """Why an API is not as the client needs it."""

    word: Word
    api: str
    text: str


class ReleaseVerdict(NamedTuple):
    """The upgrade verdict on a client."""

    word: Word
    reasons: tuple[Reason, ...]


def verdict_of(usage: Usage, release: str) -> ReleaseVerdict:
    """Return how a client fares on a release; `ValueError` when that is no release."""
    releases.release_key(release)
    if set(usage.total.roles) == {"broker"}:
        return ReleaseVerdict("broker", ())
    if not usage.works:
        text = "the capture has only the first requests of its connections"
        return ReleaseVerdict("unclear", (Reason("unclear", "", text),))
    found = [
        reason
        for api, versions in sorted(usage.versions.items())
        if (reason := _of_api(usage, api, sorted(versions), release)) is not None
    ]
    if not found and usage.stopped:
        text = (
            f"{usage.stopped} of its connections have ApiVersions and nothing after it, as of "
            "clients whose next request the broker refuses"
        )
        offered, taken = usage.offered.get(FETCH), releases.versions_of(FETCH, release)
        strict = offered is not None and taken is not None and offered[0] >= taken.low > 0
        found.append(Reason("breaks" if strict else "unclear", "", text))
    if not found and usage.looked_up:
        text = f"its {usage.looked_up} connections have Metadata and nothing after it"
        found.append(Reason("unclear", "", text))
    found.sort(key=lambda reason: (RANK[reason.word], reason.api))
    return ReleaseVerdict(found[0].word if found else "ok", tuple(found))


def breaks_at(usage: Usage) -> str:
    """Return the first release on which it breaks, as `4.0.0`, or `4.0.0, not 4.0.1`; empty when
    there is none."""
    for release, back in _turning_points(frozenset(usage.versions)):
        if verdict_of(usage, release).word == "breaks":
            healed = back and verdict_of(usage, back).word != "breaks"
            return f"{release}, not {back}" if healed else release
    return ""


@lru_cache(1024)
def _turning_points(apis: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return releases at which something changes for these APIs, oldest first, as (release that
    dropped something, release that had it again or nothing)."""
    found: dict[str, str] = {}
    for api in apis:
        try:
            spans = releases.spans(api).values()
        except UnknownApi:
            continue
        for span in spans:
            if span.removed:
                found.setdefault(span.removed, "")
            for dropped, back in span.gaps:
                found[dropped] = back
    return tuple(sorted(found.items(), key=lambda item: releases.release_key(item[0])))


def _of_api(usage: Usage, api: str, used: list[int], release: str) -> Reason | None:
    if api == FALLS_BACK or api in OPTIONAL:
        return None
    try:
        there = releases.versions_of(api, release)
    except UnknownApi:
        return Reason("unclear", api, f"uses {api}, which is unknown")
    missing = [version for version in used if not releases.has(api, version, release)]
    if not missing:
        return None
    negotiates = usage.negotiates
    if negotiates and len(missing) < len(used):
        # It knows a version that is there, and asks which are.
        return None
    what = f"{api} v{','.join(map(str, missing))}"
    if there is None:
        return _without(usage, api, what, release)
    dropped = _since(api, missing) or f"not in {release}"
    has = f"uses {what}, {dropped} (which supports {_span(there)})"
    if not dropped.endswith(f" {release}"):
        has = f"uses {what}, {dropped} ({release} supports {_span(there)})"
    if negotiates is False:
        return Reason("breaks", api, f"{has}; the client never sends ApiVersions")
    if negotiates is None:
        text = f"{has}; the capture starts too late to show whether the client sends ApiVersions"
        return Reason("unclear", api, text)
    own = _own(usage, api)
    if own is not None:
        if own.low <= there.high and there.low <= own.high:
            return None
        library = usage.identity.software
        return Reason("breaks", api, f"{has}; {library} supports {_span(own)}")
    if missing[0] > there.high:
        return Reason("unclear", api, f"{has}; the client may support older versions")
    offered = usage.offered.get(api)
    # kafka-go has Fetch 2, 5, 10: who knows none between may know one beyond.
    if offered is not None and offered[1] > used[-1] and offered[1] >= there.low:
        text = (
            f"{has}; the broker offered up to v{offered[1]}, so the client likely supports "
            "nothing newer"
        )
        return Reason("breaks", api, text)
    return Reason("unclear", api, f"{has}; no newer version was offered in this capture")


def _without(usage: Usage, api: str, what: str, release: str) -> Reason:
    """Give the reason when the release does not have the API at all."""
    spans = releases.spans(api)
    removed = [span.removed for span in spans.values()]
    if all(removed) and releases.release_key(release) >= releases.release_key(removed[-1]):
        return Reason("breaks", api, f"uses {what}; the API was removed in {removed[-1]}")
    first = min((span.since for span in spans.values()), key=releases.release_key)
    word: Word = "unclear" if usage.negotiates else "breaks"
    return Reason(word, api, f"uses {what}; the API was added in {first}")


def _own(usage: Usage, api: str) -> Versions | None:
    """Return the versions that the client's library has, where that is on record: Kafka's own
    clients and brokers share their definitions."""
    name, _, version = usage.identity.software.partition(" ")
    if name != JAVA:
        return None
    try:
        return releases.versions_of(api, version)
    except ValueError:
        return None


def _since(api: str, missing: list[int]) -> str:
    """Return when the versions were dropped, and came back."""
    words = []
    for version in missing:
        span = releases.spans(api).get(version)
        if span is None:
            continue
        words += [f"missing in {dropped}, back in {back}" for dropped, back in span.gaps]
        if span.removed:
            words.append(f"removed in {span.removed}")
    return " and ".join(dict.fromkeys(words))


def _span(versions: Versions) -> str:
    low, high = versions.low, versions.high
    return f"v{low}" if low == high else f"v{low}-{high}"
