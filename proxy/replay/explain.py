"""Explains differences: why another release, or another cluster, responds so.

First match counts; what nothing here explains is worth a look. Sans-I/O.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

OTHER_RELEASE: Final = "another release: clients choose their versions from this"
NOT_SERVED: Final = (
    "the target does not support this version of the API, so clients that need it cannot connect"
)
CLOSED: Final = "brokers close the connection of a client with an unsupported version"
SETTINGS: Final = "settings and their defaults differ between releases and clusters"
FEATURES: Final = "features and their levels differ between releases"
NEVER_ANSWERED: Final = (
    "the captured broker supported an older ApiVersions than the client (KIP-511)"
)
OTHER_LOG: Final = "the log of the target started at another offset, and the difference is constant"
NOT_READY: Final = "the response differs where the captured broker was not ready"


class KnownDifference(NamedTuple):
    """A kind of difference that has a known reason."""

    apis: str
    """Names, or none for all."""
    path: re.Pattern[str]
    why: str
    values: re.Pattern[str] = re.compile("")
    """Of "then -> now"."""


def _known(apis: str, path: str, why: str, values: str = "") -> KnownDifference:
    return KnownDifference(apis, re.compile(path), why, re.compile(values))


KNOWN: Final = (
    _known("ApiVersions", "versions of ", OTHER_RELEASE),
    _known("ApiVersions", "(supported|finalized)_features", FEATURES),
    _known("ApiVersions", "version of the response", NEVER_ANSWERED),
    _known("", r"version\Z", NOT_SERVED),
    _known("", r"answer\Z", CLOSED, "closed the connection"),
    _known("CreateTopics DescribeConfigs", r".*\.configs\[", SETTINGS),
    _known("Produce", "offsets of ", OTHER_LOG),
    _known("", r"(.*\.)?error_code\Z", NOT_READY, "(COORDINATOR|NOT_COORDINATOR)"),
)


def explanation(api: str, path: str, then: str, now: str) -> str:
    """The reason of a difference; empty when it is not known."""
    for known in KNOWN:
        if known.apis and api not in known.apis.split():
            continue
        if known.path.match(path) and known.values.search(f"{then} -> {now}"):
            return known.why
    return ""
