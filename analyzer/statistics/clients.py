"""Which clients there are, with what library, and which versions of which APIs they use.

What breaks on another release is told by `analyzer.verdict` from the `Usage` collected here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from kafkascope.analyzer.exchanges.rows import is_unread
from kafkascope.analyzer.identity import Identity, absorbed, identity_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    stretch,
    total,
    whole,
)
from kafkascope.analyzer.statistics.merging.names import Distinct, Names
from kafkascope.analyzer.statistics.merging.tables import OTHERS, Keyed
from kafkascope.analyzer.statistics.model import Column, Exchange, Line, Row, TopicNames, per_second
from kafkascope.analyzer.statistics.moved import replica_id
from kafkascope.analyzer.statistics.simple import ByKey
from kafkascope.dissectors.messages import APIS

PRODUCE: Final = 0
FETCH: Final = 1
API_VERSIONS: Final = 18
UNSUPPORTED_VERSION: Final = 35

CONSUMING: Final = frozenset({8, 9, 11, 12, 13, 14, 68, 76, 78, 79})
"""Offsets, groups, share groups."""
STREAMS: Final = frozenset({88, 89})
TRANSACTIONS: Final = frozenset({24, 25, 26, 28})
FIRST_STEPS: Final = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate"})
BROKERS: Final = frozenset(key for key, api in APIS.items() if api.effect == "brokers") | {55}
"""What brokers and controllers send to each other. DescribeQuorum comes from people as well, but
rarely."""
COMMON: Final = frozenset({2, 3, 10, 17, 18, 22, 23, 36, 60, 71, 72})
"""What every kind of client sends."""


ROLES: Final = {"produce": "produces", "fetch": "consumes", "replica": "broker"}
"""By the way that records go."""
NEGOTIATED: Final = (API_VERSIONS, UNSUPPORTED_VERSION)
"""A client that is newer than its broker is told so, and asks again."""
PASSING: Final = frozenset({27, 79})
"""REBALANCE_IN_PROGRESS and MEMBER_ID_REQUIRED: steps of a group's protocol, no trouble."""


@measured
class Used(Measures):
    """Of one version of an API, by one client."""

    count: int = total()
    failed: int = total()
    unsupported: int = total()
    """Answered UNSUPPORTED_VERSION, or not at all because the connection ended."""
    succeeded: int = total()
    """Answered without any error and in a form that can be read, or wanted no answer."""
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
    first_ns: int | None = least()
    last_ns: int | None = most()


@dataclass(slots=True)
class Usage:
    """What a client uses: the input of a verdict."""

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

    @property
    def negotiates(self) -> bool | None:
        """Whether it asks for versions; None when the beginning of its connections was not
        seen."""
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
    VERSION = 4
    KEY = ("client_id", "host", "software", "user", "key", "version")
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("client_id"),
        Column("client_address"),
        Column("software"),
        Column("user"),
        Column("roles", "list"),
        Column("connections", "count"),
        Column("requests", "count"),
        Column("per_second", "rate", wide=True),
        Column("failed", "count"),
        Column("request_bytes", "size", wide=True),
        Column("response_bytes", "size", wide=True),
        Column("negotiates", "flag"),
        Column("apis", "list", wide=True),
        Column("first", "time", wide=True),
        Column("last", "time", wide=True),
    )
    API_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("client_id"),
        Column("client_address"),
        Column("software"),
        Column("user", wide=True),
        Column("api"),
        Column("versions", "list"),
        Column("offered"),
        Column("requests", "count"),
        Column("failed", "count"),
        Column("refused", "list"),
        Column("last", "time"),
    )

    values: Keyed[Used] = table(Used)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count an exchange."""
        key = row.api_key
        if key is None or row.api_version is None:
            return
        used = self.values[(*identity_of(row), key, row.api_version)]
        used.count += 1
        used.failed += bool(row.errors)
        if row.errors:
            for error in row.errors:
                if (key, error.code) != NEGOTIATED and error.code not in PASSING:
                    used.take(last_failed=(row.time_ns, error.code))
        elif row.state in ("answered", "no-reply") and not is_unread(row):
            used.succeeded += 1
            used.succeeded_ns = max(used.succeeded_ns or 0, row.time_ns)
        if row.state == "lost" or (
            row.errors
            and any(error.top and error.code == UNSUPPORTED_VERSION for error in row.errors)
        ):
            used.unsupported += 1
        used.request_bytes += row.request_bytes or 0
        used.response_bytes += row.response_bytes or 0
        # Not by its number: that is a place as long as an input is read in parts.
        connection = exchange.connection
        begun = row.client_address if exchange.broker == connection.b else row.broker_address
        used.connections.add((connection.first_ns, begun))
        if connection.handshake:
            used.fresh = 1
        role = _role(key, exchange)
        if role:
            used.roles.add(role)
        stretch(used, row.time_ns)
        if key == API_VERSIONS:
            self._offers(identity_of(row), exchange.response_body or {})

    def add_all(self, alike: Alike) -> None:
        """Count usual exchanges."""
        row, connection = alike.row, alike.connection
        used = self.values[(*identity_of(row), row.api_key, row.api_version)]
        first, last = min(alike.begins), max(alike.begins)
        used.count += len(alike.begins)
        used.succeeded += len(alike.begins)
        used.succeeded_ns = max(used.succeeded_ns or 0, last)
        used.request_bytes += sum(alike.asked)
        used.response_bytes += sum(alike.answered)
        begun = row.client_address if alike.from_a else row.broker_address
        used.connections.add((connection.first_ns, begun))
        if connection.handshake:
            used.fresh = 1
        used.roles.add(ROLES[alike.way])
        stretch(used, first)
        stretch(used, last)

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
        """Return what each client uses; the client with the most requests comes first."""
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
        return sorted(
            (usage for usage in found.values() if usage.versions),
            key=lambda usage: (-usage.total.count, repr(usage.identity)),
        )

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per client, the busiest first."""
        lines = [line_of(usage) for usage in self.usages()]
        if self.values.others is not None:
            lines.append({**line_of(Usage(Identity(OTHERS, "", "", ""))), "roles": []})
            lines[-1]["requests"] = self.values.others.count
        return lines

    def apis(self) -> list[Line]:
        """Return one line per client and API."""
        by_api: dict[tuple[Identity, str], Used] = {}
        items, target = self.values.items(), self.targets()
        for (*who, number, version), used in items:
            if version >= 0:
                by_api.setdefault((target[Identity(*who)], _api_name(number)), Used()).merge(used)
        return [
            {
                **_who(usage.identity),
                "api": api,
                "versions": sorted(versions),
                "offered": _span(usage.offered.get(api)),
                "requests": sum(versions.values()),
                "failed": by_api[usage.identity, api].failed,
                "refused": sorted(usage.unsupported.get(api, ())),
                "last": by_api[usage.identity, api].last_ns,
            }
            for usage in self.usages()
            for api, versions in sorted(usage.versions.items())
        ]


def _api_name(key: int) -> str:
    return APIS[key].name if key in APIS else f"Api {key}"


def _role(key: int, exchange: Exchange) -> str:
    if key == PRODUCE:
        return ROLES["produce"]
    if key == FETCH:
        return ROLES["replica" if replica_id(exchange.request_body) >= 0 else "fetch"]
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
    """Return the line of a client."""
    used = usage.total
    return {
        **_who(usage.identity),
        "roles": list(used.roles),
        "connections": len(used.connections),
        "requests": used.count,
        "per_second": per_second(used.count, used.first_ns, used.last_ns),
        "failed": used.failed,
        "request_bytes": used.request_bytes,
        "response_bytes": used.response_bytes,
        "negotiates": usage.negotiates,
        "apis": [f"{api} {_several(versions)}" for api, versions in sorted(usage.versions.items())],
        "first": used.first_ns,
        "last": used.last_ns,
    }


def _several(versions: dict[int, int]) -> str:
    """Return ranges of versions: `0,2-4`."""
    out: list[list[int]] = []
    for version in sorted(versions):
        if out and out[-1][1] == version - 1:
            out[-1][1] = version
        else:
            out.append([version, version])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def _span(found: tuple[int, int] | None) -> str:
    return "" if found is None else f"{found[0]}-{found[1]}"
