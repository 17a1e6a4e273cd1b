"""Who a client is: client id, library, user, host. Any of them may be missing; no one is unique.

A client sends its library in ApiVersions and its user in SASL, so earlier requests (or a connection
that began before the capture) lack them: `absorbed` finds the client that such traffic is of.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row

API_VERSIONS: Final = 18

ClientKey: TypeAlias = tuple[str, str]
"""Client id (empty for none) and host."""


class Identity(NamedTuple):
    """A client, as far as the traffic shows."""

    client_id: str | None
    host: str
    software: str
    user: str

    @property
    def key(self) -> ClientKey:
        """The client without its library and user."""
        return self.client_id or "", self.host


def client_of(row: Row) -> tuple[str | None, str]:
    """Return the client id and the host of an exchange's client."""
    return row.client_id, host_of(row.client_address)


def client_key_of(row: Row) -> ClientKey:
    """Return the client of an exchange as a key."""
    return row.client_id or "", host_of(row.client_address)


@lru_cache(4096)
def host_of(address: str) -> str:
    """An address without its port."""
    return address.rpartition(":")[0].strip("[]")


def identity_of(row: Row) -> Identity:
    """The client of an exchange."""
    return Identity(row.client_id, host_of(row.client_address), row.software, user_of(row))


def user_of(row: Row) -> str:
    """Return the user of an exchange; empty for ApiVersions with a client certificate: it precedes
    SASL, which may set another user."""
    tls = row.tls
    if tls is not None and row.api_key == API_VERSIONS and row.user == tls.client:
        return ""
    return row.user


def absorbed(identities: Iterable[Identity]) -> dict[Identity, Identity]:
    """Each identity -> the one that it is part of: the only one of the same client id and host
    that knows more; itself when there is none, or more than one."""
    found = sorted(set(identities), key=lambda each: (each.client_id or "", *each[1:]))
    full: dict[tuple[str | None, str, str, str], list[Identity]] = {}
    """What may be known of an identity -> those of which both is known."""
    half: dict[tuple[str | None, str], list[Identity]] = {}
    for each in found:
        client_id, host, software, user = each
        if software and user:
            for known in ((software, ""), ("", user), ("", "")):
                full.setdefault((client_id, host, *known), []).append(each)
        elif software or user:
            half.setdefault((client_id, host), []).append(each)
    out: dict[Identity, Identity] = {}
    for each in found:
        # Of several that know more, one must know all that the others do.
        better = full.get(each, [])
        if not (better or each.software or each.user):
            better = half.get(each[:2], [])
        out[each] = better[0] if len(better) == 1 else each
    return {each: out[target] for each, target in out.items()}


def labels(clients: Iterable[tuple[str | None, str]]) -> dict[tuple[str | None, str], str]:
    """(client id, host) -> what to call it: the id; with its host where several share it; the
    host where it has none."""
    found = set(clients)
    hosts: dict[str | None, int] = {}
    for client_id, _ in found:
        hosts[client_id] = hosts.get(client_id, 0) + 1
    return {
        (client_id, host): host
        if not client_id
        else client_id
        if hosts[client_id] == 1
        else f"{client_id}@{host}"
        for client_id, host in found
    }
