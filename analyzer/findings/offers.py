"""The API versions that brokers offered to clients, for detectors that judge refused requests."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkascope.analyzer.findings.view import View, once
from kafkascope.dissectors.errors import UnknownApi, UnknownVersion
from kafkascope.dissectors.reference import releases

FETCH_OF_4: Final = 4
PRODUCE_OF_4: Final = 3
"""Kafka 4 offers Produce from v0 on, because some clients look for it, and takes v3 and later."""


class Offer(NamedTuple):
    """The first and last version that is taken."""

    first: int
    last: int

    def takes(self, version: Any) -> bool:
        """Return whether a version lies within."""
        return version is not None and self.first <= int(version) <= self.last


def offered(view: View, client_id: Any, host: Any, api: Any) -> Offer | None:
    """Return what brokers offered to a client for an API; None when the client did not ask, or the
    capture does not show it."""
    return offers(view).get((str(client_id or ""), str(host), str(api)))


@once
def offers(view: View) -> dict[tuple[str, str, str], Offer]:
    """Return all offers, by client id, host and API."""
    found: dict[tuple[str, str, str], Offer] = {}
    for usage in view.base.clients.usages():
        of_4 = usage.offered.get("Fetch", (0, 0))[0] >= FETCH_OF_4
        for api, (first, last) in usage.offered.items():
            least = first_taken(api, first) if of_4 else first
            found[(usage.identity.client_id or "", usage.identity.host, api)] = Offer(least, last)
    return found


def refused_versions(view: View) -> set[tuple[str, str]]:
    """Return clients (id, host) that sent requests in versions that brokers did not offer them, and
    got no response."""
    found: set[tuple[str, str]] = set()
    for key, traffic in view.base.apis.grouped(("client_id", "host", "api", "version")):
        if traffic.lost:
            span = offered(view, key["client_id"], key["host"], key["api"])
            if span is not None and not span.takes(key["version"]):
                found.add((str(key["client_id"] or ""), str(key["host"])))
    return found


def first_taken(api: str, first: int) -> int:
    """Return the first version that brokers from Kafka 4 on take, where they offer it from `first`
    on."""
    return max(first, PRODUCE_OF_4) if api == "Produce" else first


def first_release(api: str, version: Any) -> str:
    """Return the first Kafka release that has a version of an API; empty where none is known."""
    try:
        return releases.since(api, int(version))
    except (UnknownApi, UnknownVersion, TypeError, ValueError):
        return ""
