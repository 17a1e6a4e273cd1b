"""Pseudonyms for topics, groups, clients, hosts: the same name always gets the same one, so that an
anonymised capture can still be analyzed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address, ip_address
from secrets import token_bytes
from sys import intern
from typing import Final

from kafkascope.analyzer.transform.limits import LIMITS, TransformLimits
from kafkascope.dissectors.embedded.masking import asterisks
from kafkascope.dissectors.values import Uuid

NOUNS: Final = {
    "topicName": "topic",
    "groupId": "group",
    "transactionalId": "txn",
    "clientId": "client",
    "memberId": "member",
    "principal": "user",
    "resourceName": "name",
    "rack": "rack",
    "path": "path",
    "tokenId": "token",
    "storeName": "store",
    "clusterId": "cluster",
    "clientTag": "tag",
    "connectorName": "connector",
    "nodeName": "node",
    "subtopologyId": "subtopology",
    "znodePath": "znode",
    "znodeIdentity": "user",
}
"""What a mark of the declarations names -> the word that pseudonyms begin with."""

PUBLIC: Final = frozenset(
    {
        "",
        "*",
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__cluster_metadata",
        "kafka-cluster",
        "User:*",
        "User:ANONYMOUS",
        "<default>",
        "anyone",
    }
)
"""Names that everybody has."""


_SHARE_KEY: Final = re.compile(r"(.+):([A-Za-z0-9_-]{21}[AQgw]):([0-9]{1,10})", re.DOTALL)
_UUID_REST: Final = bytes.fromhex("40008000000000000000")
_COORDINATORS: Final = {0: "groupId", 1: "transactionalId"}
_V4_STARTS: Final = {
    "private": IPv4Address("10.0.0.0"),
    "global": IPv4Address("11.0.0.0"),
    "shared": IPv4Address("100.64.0.0"),
}
_V6_STARTS: Final = {
    "private": IPv6Address("fd00::"),
    "global": IPv6Address("2000::"),
    "shared": IPv6Address("fec0::"),
}
"""Private addresses stay private and global ones global: findings tell them apart."""
_HASHED_BITS: Final = {4: 21, 6: 48}
"""IP version -> from which bit of the start on addresses are chosen by their hash: numbers of
those that are remembered are below, and 100.64.0.0/10 has no more."""
# Uuids below are Kafka's own: none, the metadata topic, directories that are lost or unassigned
# (`Uuid.RESERVED`, `DirectoryId`).
_RESERVED_IDS: Final = 100


class Pseudonyms:
    """Grows with the names it meets; numbers are given in the order of appearance.

    With `same_length` a name takes as many bytes as before where its number leaves room, so that
    messages keep their sizes.
    """

    def __init__(self, *, same_length: bool = False, limits: TransformLimits = LIMITS) -> None:
        self._limits = limits
        self._same_length = same_length
        self._names: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        self._uuids: dict[Uuid, Uuid] = {}
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()
        self._letters = 0
        """Characters of names that are remembered."""
        self._host_letters = 0
        self._key = token_bytes(16)
        self.forgotten = 0
        """How often a name or an id came that is not remembered."""
        self.hashed = 0
        """How often an address came that is not remembered."""

    def name(self, text: str, kind: str) -> str:
        """The other name of a topic, group, ...; `kind` is a key of `NOUNS`.

        A name that was met as something else keeps what it got then: resources, coordinator keys
        and topics refer to each other.
        """
        return text if text in PUBLIC else self.word(text, NOUNS[kind])

    def of_kind(self, text: str, kind: str) -> str | None:
        """The other name of a host or of what `NOUNS` has; None of other kinds."""
        if kind == "address":
            return self.host(text)
        return self.name(text, kind) if kind in NOUNS else None

    def word(self, text: str, noun: str) -> str:
        """The other name of what is no word of Kafka's where one is expected."""
        found = self._names.get(text)
        if found is None:
            for prefix in ("User:", "Group:"):
                if text.startswith(prefix):
                    rest = text[len(prefix) :]
                    return text if rest in PUBLIC else prefix + self.word(rest, noun)
            if len(self._names) >= self._limits.names or self._letters >= self._limits.name_chars:
                self.forgotten += 1
                return intern(str(asterisks(text)))  # one object for the millions that may come
            found = self._names[text] = self._new(noun, text)
            self._letters += len(text)
        return found

    def coordinator_key(self, text: str, key_type: int) -> str:
        """The pseudonym of a FindCoordinator key: a group, a transactional id, or "group:topic
        id:partition" of a share group (KIP-932). Responses do not carry its type."""
        share = _SHARE_KEY.fullmatch(text)
        if share is not None:
            topic_id = self.uuid(Uuid.parse(share[2]))
            return f"{self.name(share[1], 'groupId')}:{topic_id}:{share[3]}"
        return self.name(text, _COORDINATORS.get(key_type, "groupId"))

    def _new(self, word: str, text: str) -> str:
        while True:
            count = self._counts[word] = self._counts.get(word, 0) + 1
            made = f"{word}-{count}"
            if self._same_length:
                made = _fitted(word, count, len(text.encode("utf-8", "surrogateescape")))
            if made not in self._taken:
                self._taken.add(made)
                return made

    def uuid(self, value: Uuid) -> Uuid:
        """The other id; those that are Kafka's own stay."""
        if int.from_bytes(value) < _RESERVED_IDS:
            return value
        found = self._uuids.get(value)
        if found is None:
            # The number comes first: the first characters of a topic's id stand for its name.
            made = Uuid((len(self._uuids) + 1).to_bytes(6) + _UUID_REST)
            if len(self._uuids) >= self._limits.names:
                self.forgotten += 1
                return made
            found = self._uuids[value] = made
        return found

    @property
    def originals(self) -> list[str]:
        """All names and hosts that got another one."""
        return [old for old, new in {**self._names, **self._hosts}.items() if old != new]

    @property
    def hosts(self) -> Mapping[str, str]:
        """Hosts that were met, and the other ones."""
        return self._hosts

    @property
    def remarks(self) -> list[str]:
        """Sentences about names without a pseudonym of their own."""
        said = []
        if self.forgotten:
            most = (
                len(self._names) if self._letters >= self._limits.name_chars else self._limits.names
            )
            said.append(
                f"names beyond the first {most:,} became asterisks, {self.forgotten:,} times"
            )
        if self.hashed:
            most = (
                len(self._hosts)
                if self._host_letters >= self._limits.name_chars
                else self._limits.names
            )
            said.append(
                f"hosts beyond the first {most:,} may share an address, {self.hashed:,} times"
            )
        return said

    def host(self, text: str) -> str:
        """The pseudonym of an address or host name; loopback and wildcards identify no host and
        stay."""
        if text in ("", "*"):
            return text
        slash = "/" if text.startswith("/") else ""
        bare = text[len(slash) :]
        found = self._hosts.get(bare)
        if found is not None:
            return slash + found
        found = self._new_host(bare)
        if self._remembers_hosts:
            self._hosts[bare] = found
            self._host_letters += len(bare)
        return slash + found

    @property
    def _remembers_hosts(self) -> bool:
        return (
            len(self._hosts) < self._limits.names and self._host_letters < self._limits.name_chars
        )

    def _new_host(self, text: str) -> str:
        remembered = self._remembers_hosts
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            if text.lower() == "localhost":
                return text
            if remembered:
                return self._new("host", text)
            self.forgotten += 1
            return str(asterisks(text))
        if address.is_loopback or address.is_unspecified:
            return str(address)
        kind = "private" if address.is_private else "global" if address.is_global else "shared"
        start = (_V4_STARTS if address.version == 4 else _V6_STARTS)[kind]
        if remembered:
            count = self._counts["address"] = self._counts.get("address", 0) + 1
            return str(start + count)
        self.hashed += 1
        room = 1 << _HASHED_BITS[address.version]
        hashed = int.from_bytes(blake2b(address.packed, digest_size=8, key=self._key).digest())
        return str(start + room + hashed % room)


def _fitted(word: str, count: int, size: int) -> str:
    """The word and the number in `size` bytes; longer when the number alone needs more."""
    number = str(count)
    room = size - len(number)
    return word[: max(room, 0)].ljust(max(room, 0), "-") + number
