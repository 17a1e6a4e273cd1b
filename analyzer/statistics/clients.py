"""Clients, their libraries, and the versions of the APIs they use.

`analyzer.verdict` derives what breaks on another release from the `Usage` collected here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from kafkascope.analyzer.exchanges.outcome import is_unread
from kafkascope.analyzer.identity import Identity, absorbed, identity_of
from kafkascope.analyzer.merging.bounded import Distinct, Names
from kafkascope.analyzer.merging.measures import Measures, least, most, stretch, total, whole
from kafkascope.analyzer.merging.tables import OTHERS, Keyed, table
from kafkascope.analyzer.statistics.exchange_batch import FETCH, PRODUCE, ExchangeBatch
from kafkascope.analyzer.statistics.model import Line, TopicNames, columns, filled, per_second
from kafkascope.analyzer.statistics.rates import known_sizes
from kafkascope.analyzer.statistics.simple import ByKey
from kafkascope.analyzer.statistics.thresholds import limit
from kafkascope.dissectors.messages import APIS

API_VERSIONS: Final = 18
UNSUPPORTED_VERSION: Final = 35

CONSUMING: Final = frozenset({8, 9, 11, 12, 13, 14, 68, 76, 78, 79})
"""Offsets, groups, share groups."""
STREAMS: Final = frozenset({88, 89})
TRANSACTIONS: Final = frozenset({24, 25, 26, 28})
FIRST_STEPS: Final = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate"})
BROKERS: Final = frozenset(key for key, api in APIS.items() if api.effect == "brokers") | {55}
"""APIs between brokers and controllers. Tools send DescribeQuorum as well, but rarely."""
COMMON: Final = frozenset({2, 3, 10, 17, 18, 22, 23, 36, 60, 71, 72})
"""APIs that every kind of client sends."""


ROLES: Final = {"produce": "produces", "fetch": "consumes", "replica": "broker"}
"""By the way that records go."""
NEGOTIATED: Final = (API_VERSIONS, UNSUPPORTED_VERSION)
"""A client newer than its broker gets this error, and retries."""
PASSING: Final = frozenset({27, 79})
"""REBALANCE_IN_PROGRESS and MEMBER_ID_REQUIRED: steps of a group's protocol, no trouble."""


class Used(Measures):
    """Use of one version of an API, by one client."""

    count: int = total()
    failed: int = total()
    unsupported: int = total()
    """Answered UNSUPPORTED_VERSION, or not at all because the connection ended."""
    succeeded: int = total()
    """Answered without any error and in a form that can be read, or needed no answer."""
    succeeded_ns: int | None = most()
    last_failed: tuple[int, int] | None = most()
    """(time, error code) of the last error that is no step of a protocol."""
    request_bytes: int = total()
    response_bytes: int = total()
    roles: Names = whole(Names)
    offered: tuple[int, int] | None = most()
    """The versions of this API that a broker offered to the client: (highest, minus lowest)."""
    connections: Distinct = whole(Distinct)
    fresh: int | None = most()
    """1 when the beginning of a connection was seen."""
    logged: int | None = most()
    """1 when it is known from a request log."""
    first_ns: int | None = least()
    last_ns: int | None = most()


@dataclass(slots=True)
class Usage:
    """APIs and versions that a client uses: the input of a verdict."""

    identity: Identity
    versions: dict[str, dict[int, int]] = field(default_factory=dict)
    """API -> version -> requests."""
    offered: dict[str, tuple[int, int]] = field(default_factory=dict)
    """API -> lowest and highest version that brokers offered."""
    unsupported: dict[str, set[int]] = field(default_factory=dict)
    """API -> versions that were refused."""
    answered: dict[str, Used] = field(default_factory=dict)
    """API -> what became of its requests."""
    last: tuple[int, str] | None = None
    """(time, API) of the last request."""
    total: Used = field(default_factory=Used)
    beyond: Distinct = field(default_factory=Distinct)
    """Connections with more than ApiVersions."""

    @property
    def stopped(self) -> int:
        """Connections of which a request log has ApiVersions and nothing else, where these are many
        of the client's: a request that the broker refuses has no line. Else 0."""
        total = len(self.total.connections)
        count = total - len(self.beyond) if self.total.logged else 0
        many = 100 * count >= limit("refused.share") * total
        return count if many and count >= limit("refused.connections") else 0

    @property
    def looked_up(self) -> int:
        """Connections of a client of which a request log has Metadata and nothing else at all, as
        of one without ApiVersions whose next request the broker refuses; 0 where they are few."""
        count = len(self.total.connections) if self.total.logged else 0
        alone = self.versions.keys() == {"Metadata"}
        return count if alone and count >= limit("refused.connections") else 0

    @property
    def negotiates(self) -> bool | None:
        """Whether it sends ApiVersions; None when the beginning of its connections was not seen."""
        if "ApiVersions" in self.versions:
            return True
        # Before SASL is through, old clients ask nothing.
        return False if self.total.fresh and self.works else None

    @property
    def works(self) -> bool:
        """Whether it came to more than the first steps of a connection."""
        return not self.versions.keys() <= FIRST_STEPS


class Clients(ByKey[Used]):
    """Clients by identity; their versions by API."""

    NAME = "clients"
    VERSION = 6
    KEY = ("client_id", "host", "software", "user", "key", "version")
    COLUMNS = columns(
        "client_id client_address software user roles connections requests (per_second) failed "
        "(request_bytes) (response_bytes) negotiates (apis) (first) (last)"
    )
    API_COLUMNS = columns(
        "client_id client_address software (user) api versions offered requests failed refused last"
    )

    values: Keyed[Used] = table(Used)

    def add(self, batch: ExchangeBatch) -> None:
        row, exchange, key = batch.row, batch.exchange, batch.api_key
        if key is None or row.api_version is None:
            return
        used = self.values[(*identity_of(row), key, row.api_version)]
        used.count += len(batch)
        used.failed += bool(row.errors)
        if row.errors:
            for error in row.errors:
                if (key, error.code) != NEGOTIATED and error.code not in PASSING:
                    used.take(last_failed=(row.time_ns, error.code))
        elif row.state in ("answered", "no-reply") and not is_unread(row):
            used.succeeded += len(batch)
            used.succeeded_ns = max(used.succeeded_ns or 0, batch.last_ns)
        if row.state == "lost" or (
            row.errors
            and any(error.top and error.code == UNSUPPORTED_VERSION for error in row.errors)
        ):
            used.unsupported += 1
        used.request_bytes += sum(batch.request_bytes)
        used.response_bytes += sum(batch.response_bytes)
        # Not by its number: that is a place as long as an input is read in parts.
        connection = exchange.connection
        begun = row.client_address if exchange.broker == connection.b else row.broker_address
        used.connections.add((connection.first_ns, begun))
        logged = exchange.logged
        # A line of a connection of which there are packets, of TLS, may come after its SASL phase.
        begun_here = connection.handshake and not exchange.sizeless
        if begun_here or (logged is not None and logged.begins):
            used.fresh = 1
        if exchange.sizeless:
            used.logged = 1
        if role := _role(batch):
            used.roles.add(role)
        stretch(used, batch.first_ns, batch.last_ns)
        if key == API_VERSIONS:
            self._offers(identity_of(row), exchange.response_body or {})

    def _offers(self, identity: Identity, response: dict[str, Any]) -> None:
        for each in response.get("api_keys") or ():
            if each["api_key"] not in APIS:
                continue
            # Version -1 stands for what was offered, whatever is used of it.
            used = self.values[(*identity, each["api_key"], -1)]
            used.take(offered=(each["max_version"], -each["min_version"]))

    def targets(self) -> dict[Identity, Identity]:
        """Map each identity that requests showed to the client that it is part of."""
        return absorbed(Identity(*key[:4]) for key, _ in self.values.items())

    def usages(self) -> list[Usage]:
        items, target = self.values.items(), self.targets()
        found: dict[Identity, Usage] = {}
        for key, used in items:
            *who, number, version = key
            identity = target[Identity(*who)]
            usage = found.setdefault(identity, Usage(identity))
            api = _api_name(number)
            if version < 0:
                if used.offered is not None:
                    usage.offered[api] = (-used.offered[1], used.offered[0])
                continue
            versions = usage.versions.setdefault(api, {})
            versions[version] = versions.get(version, 0) + used.count
            usage.answered.setdefault(api, Used()).merge(used)
            if used.last_ns is not None:
                usage.last = max(usage.last or (0, ""), (used.last_ns, api))
            if used.unsupported:
                usage.unsupported.setdefault(api, set()).add(version)
            usage.total.merge(used)
            if number != API_VERSIONS:
                usage.beyond.merge(used.connections)
        usages = (usage for usage in found.values() if usage.versions)
        return sorted(usages, key=lambda usage: (-usage.total.count, repr(usage.identity)))

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        lines = [line_of(usage) for usage in self.usages()]
        if self.values.others is not None:
            lines.append({**line_of(Usage(Identity(OTHERS, "", "", ""))), "roles": []})
            lines[-1]["requests"] = self.values.others.count
        return lines

    def apis(self) -> list[Line]:
        return [
            {
                **_who(usage.identity),
                "api": api,
                "versions": sorted(versions),
                "offered": "-".join(map(str, usage.offered.get(api, ()))),
                "requests": sum(versions.values()),
                "failed": usage.answered[api].failed,
                "refused": sorted(usage.unsupported.get(api, ())),
                "last": usage.answered[api].last_ns,
            }
            for usage in self.usages()
            for api, versions in sorted(usage.versions.items())
        ]


def _api_name(key: int) -> str:
    return APIS[key].name if key in APIS else f"Api {key}"


def _role(batch: ExchangeBatch) -> str:
    key = batch.api_key
    if key in (PRODUCE, FETCH):
        return ROLES[batch.way]
    for role, keys in (
        ("consumes", CONSUMING),
        ("streams", STREAMS),
        ("transactions", TRANSACTIONS),
        ("broker", BROKERS),
    ):
        if key in keys:
            return role
    return "" if key in COMMON or key not in APIS else "admin"


def _who(identity: Identity) -> Line:
    return {
        "client_id": identity.client_id,
        "client_address": identity.host,
        "software": identity.software,
        "user": identity.user,
    }


def line_of(usage: Usage) -> Line:
    used = usage.total
    return filled(
        Clients.COLUMNS,
        used,
        **_who(usage.identity),
        connections=len(used.connections),
        requests=used.count,
        per_second=per_second(used.count, used.first_ns, used.last_ns),
        negotiates=usage.negotiates,
        **known_sizes(used),
        apis=[f"{api} {_several(versions)}" for api, versions in sorted(usage.versions.items())],
    )


def _several(versions: Iterable[int]) -> str:
    """Return ranges of versions: `0,2-4`."""
    # Versions without a gap are as far from their places in the list.
    runs = groupby(enumerate(sorted(versions)), lambda item: item[1] - item[0])
    found = ([version for _, version in run] for _, run in runs)
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found)
