"""Other names for topics, groups, clients, hosts: the same name always gets the same one, so that
an anonymised capture still tells its story."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

WORDS: Final = {
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
    }
)
"""Names that everybody has."""

_COORDINATORS: Final = {0: "groupId", 1: "transactionalId"}
_V4_START: Final = IPv4Address("10.0.0.0")
_V6_START: Final = IPv6Address("fd00::")


class Pseudonyms:
    """Grows with the names it meets; numbers are given in the order of appearance.

    With `same_length` a name takes as many bytes as before where its number leaves room, so that
    messages keep their sizes.
    """

    def __init__(self, *, same_length: bool = False) -> None:
        self._same_length = same_length
        self._names: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()

    def name(self, text: str, kind: str) -> str:
        """The other name of a topic, group, ...; `kind` is a key of `WORDS`.

        A name that was met as something else keeps what it got then: resources, coordinator keys
        and topics refer to each other.
        """
        if text in PUBLIC or text.lstrip("-").isdigit():
            return text
        found = self._names.get(text)
        if found is None:
            for prefix in ("User:", "Group:"):
                if text.startswith(prefix):
                    return prefix + self.name(text[len(prefix) :], kind)
            found = self._names[text] = self._new(WORDS[kind], text)
        return found

    def coordinator_key(self, text: str, key_type: int) -> str:
        """The key that FindCoordinator asks for: a group, a transactional id, or "group:topic
        id:partition" of a share group (KIP-932)."""
        if key_type == 2 and text.count(":") >= 2:
            group, _, rest = text.partition(":")
            return f"{self.name(group, 'groupId')}:{rest}"
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

    def host(self, text: str) -> str:
        """The other address or host name; loopback and wildcards stay, for they name nobody."""
        if text in ("", "*"):
            return text
        slash = "/" if text.startswith("/") else ""
        bare = text[len(slash) :]
        found = self._hosts.get(bare)
        if found is None:
            found = self._hosts[bare] = self._new_host(bare)
        return slash + found

    def _new_host(self, text: str) -> str:
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            return text if text.lower() == "localhost" else self._new("host", text)
        if address.is_loopback or address.is_unspecified:
            return text
        count = self._counts["address"] = self._counts.get("address", 0) + 1
        start = _V4_START if address.version == 4 else _V6_START
        return str(start + count)

    @property
    def originals(self) -> list[str]:
        """All names and hosts that got another one."""
        return [old for old, new in {**self._names, **self._hosts}.items() if old != new]


def _fitted(word: str, count: int, size: int) -> str:
    """The word and the number in `size` bytes; longer when the number alone needs more."""
    number = str(count)
    room = size - len(number)
    return word[: max(room, 0)].ljust(max(room, 0), "-") + number
