"""Tells which Kafka release has which version of which API or message.

A release is written as people write it: "3.9.1" is that release, "3.9" and "4" its newest one. The
facts are in `release_facts`.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from kafkascope.dissectors.errors import UnknownApi, UnknownVersion
from kafkascope.dissectors.reference.release_facts import APIS, LATE_TAGS, MESSAGES, Facts
from kafkascope.dissectors.values import Versions

NEVER: Final = "never"
"""The release that finished a version which is unfinished to this day."""

# Stands for a part of a release that is not written: the newest.
LATEST: Final = 1_000_000

_LINES: Final = (
    "0.8.0 0.8.1 0.8.2 0.9.0 0.10.0 0.10.1 0.10.2 0.11.0 1.0.0 1.1.0 2.0.0 2.1.0 2.2.0 2.3.0 "
    "2.4.0 2.5.0 2.6.0 2.7.0 2.8.0 3.0.0 3.1.0 3.2.0 3.3.0 3.4.0 3.5.0 3.6.0 3.7.0 3.8.0 "
    "3.9.0 4.0.0 4.1.0 4.2.0 4.3.0 4.4.0"
)
RELEASES: Final = tuple(_LINES.split())
"""The first release of each line, oldest first."""


class Span(NamedTuple):
    """Releases that have a version."""

    since: str
    """The first release that had it, if only unfinished and behind a switch."""
    stable: str
    """The first release that had it finished; `NEVER` when none did."""
    removed: str
    """The release that dropped it for good; empty when it is still there."""
    gaps: tuple[tuple[str, str], ...]
    """(dropped, back again): JoinGroup 0 was missing in 4.0.0 alone."""


def release_key(release: str) -> tuple[int, ...]:
    """Return a key to sort releases: "3.9" sorts after every 3.9.x; `ValueError` for what is no
    release."""
    parts = release.strip().removeprefix("v").split(".")
    if not 1 <= len(parts) <= 4 or not all(part.isdecimal() for part in parts):
        raise ValueError(f'"{release}" is no Kafka release; write it like 3.9 or 3.9.1')
    key = tuple(map(int, parts))
    # Up to 0.11 a line is three numbers (0.10.2) and a release four (0.10.2.1).
    whole = 4 if key[0] == 0 else 3
    return key + (LATEST,) * (whole - len(key))


def known_release(release: str) -> str:
    """Return a release that users name, without blanks and `v`; `ValueError` for one of no line in
    `RELEASES`, with the nearest ones. Every patch release of a line is known: versions change with
    lines, and 4.0.9 may come out after the facts were written."""
    key = release_key(release)
    name = release.strip().removeprefix("v")
    parts = name.split(".")
    lines = {known: known.split(".")[: 3 if known[0] == "0" else 2] for known in RELEASES}
    if any(all(map(_same, parts, line)) for line in lines.values()):
        if len(parts) == 1 and key[0]:
            # The newest of its lines is meant: "4 supports v4-18" is a riddle.
            return ".".join([line for line in lines.values() if _same(line[0], parts[0])][-1])
        return name
    older = [known for known in RELEASES if _fact_key(known) < key]
    near = [*older[-1:], *RELEASES[len(older) :][:1]]
    text = f"{name} is not a known Kafka release; the newest is {RELEASES[-1]}"
    raise ValueError(
        text if near == [RELEASES[-1]] else f"{text}, the nearest {' and '.join(near)}"
    )


def _same(part: str, other: str) -> bool:
    return int(part) == int(other)


def _fact_key(release: str) -> tuple[int, ...]:
    """Return the key of a release in the facts, which say 0.10.2 for 0.10.2.0."""
    key = tuple(map(int, release.split(".")))
    return key + (0,) * ((4 if key[0] == 0 else 3) - len(key))


def facts_of(name: str) -> Facts:
    """Return the facts of an API (Fetch) or message (FetchRequest, OffsetCommitValue)."""
    call = name.removesuffix("Request").removesuffix("Response")
    found = MESSAGES.get(name) or APIS.get(name) or APIS.get(call)
    if found is None:
        raise UnknownApi(f"there is no API or message {name!r}")
    return found


@cache
def spans(name: str) -> dict[int, Span]:
    """Return the spans of an API or message by version; `UnknownApi` otherwise."""
    facts = facts_of(name)
    stable = dict(word.split(":") for word in facts.stable.split())
    found = {}
    for version, since in enumerate(facts.since.split(), facts.first):
        removed, gaps = "", []
        for word in facts.removed.split():
            versions, _, release = word.partition(":")
            if version not in Versions.parse(versions.removeprefix("+")):
                continue
            if word.startswith("+"):
                gaps.append((removed, release))
                removed = ""
            else:
                removed = release
        found[version] = Span(since, stable.get(str(version), since), removed, tuple(gaps))
    return found


def span(name: str, version: int) -> Span:
    """Return the span of a version; `UnknownApi` or `UnknownVersion`."""
    try:
        return spans(name)[version]
    except KeyError:
        raise UnknownVersion(f"no release has {name} {version}") from None


def since(name: str, version: int) -> str:
    """Return the first release that had the version."""
    return span(name, version).since


def has(name: str, version: int, release: str, *, unstable: bool = False) -> bool:
    """Whether a release has the version; `unstable` counts what is behind a switch."""
    found = spans(name).get(version)
    if found is None:
        return False
    at = release_key(release)
    first = found.since if unstable else found.stable
    if first == NEVER or at < _fact_key(first):
        return False
    if any(_fact_key(dropped) <= at < _fact_key(back) for dropped, back in found.gaps):
        return False
    return not found.removed or at < _fact_key(found.removed)


@cache
def versions_of(name: str, release: str, *, unstable: bool = False) -> Versions | None:
    """Return the versions of an API that a release has; None when it has none of them."""
    there = [v for v in spans(name) if has(name, v, release, unstable=unstable)]
    return Versions(there[0], there[-1]) if there else None


def late_tags(name: str) -> dict[str, str]:
    """Return the releases that added tagged fields to versions that were out already, by field."""
    return LATE_TAGS.get(name, {})
