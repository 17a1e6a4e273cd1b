"""Paths and contents of ZooKeeper's nodes with other names in them: what Kafka itself calls its
nodes stays, and so does the form of what is in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
from kafkascope.dissectors.reference.words import WORDS
from kafkascope.dissectors.zookeeper.nodes import HIDDEN, json_of
from kafkascope.dissectors.zookeeper.paths import NODES, PathPart, place_of
from kafkascope.dissectors.zookeeper.paths import WORDS as UNNAMED

NAMELESS: Final = "znodePath"
"""Mark of parts of paths of which nobody knows what they name."""

_LITERALS: Final = frozenset(
    part for pattern in NODES for part in pattern.split("/") if "{" not in part
) | {"zookeeper", "quota", "config", "topics", "ids", "owners", "offsets"}
_PREFIXES: Final = tuple(
    sorted({part.partition("{")[0] for n in NODES for part in n.split("/") if "{number}" in part})
)
_RESOURCES: Final = frozenset(
    {"Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"}
)
_NUMBERED: Final = re.compile(r"-?\d{1,20}")
_URL: Final = re.compile(r"([A-Za-z_][\w.-]*)://(.*):(\d{1,5})", re.DOTALL)

_KINDS: Final[dict[str, str]] = {
    "host": "address",
    "topic": "topicName",
    "rack": "rack",
    "principal": "principal",
    "owner": "principal",
    "topic_id": "uuid",
    "id": "clusterId",
    "tokenId": "tokenId",
    "pattern": "",
    "permissionType": "",
    "operation": "",
    "version": "",
    "timestamp": "",
    "block_start": "",
    "block_end": "",
}
"""What the texts of a member of a node's JSON name; empty for Kafka's own words and numbers."""
_KEYS: Final[dict[str, str]] = {"subscription": "topicName"}
"""The same of the names inside an object."""


def renamed_path(names: Pseudonyms, path: str) -> str:
    """Return a path, or the name of one node, with other names in it."""
    if not path.startswith("/"):
        return _part(names, PathPart(path, "unknown"))
    steps = place_of(path).steps
    return "/" + "/".join(_part(names, step) for step in steps) if steps else path


def _part(names: Pseudonyms, step: PathPart) -> str:
    text, kind = step
    if not text or not kind or kind in UNNAMED or _NUMBERED.fullmatch(text):
        return text
    if (other := names.of_kind(text, kind)) is not None:
        return other
    if text in _LITERALS or text in _RESOURCES or text.startswith(_PREFIXES):
        return text
    return names.name(text, NAMELESS)


def renamed_node(names: Pseudonyms, data: bytes) -> bytes:
    """Return what is in a node with other names in it; asterisks for what is no JSON, nor a
    number."""
    if _NUMBERED.fullmatch(data.decode("latin-1")):
        return data
    found = json_of(data)
    if found is None:
        return b"*" * len(data)
    return orjson.dumps(_renamed(names, found, ""))


def _renamed(names: Pseudonyms, value: Any, member: str) -> Any:
    if isinstance(value, dict):
        rename = _renaming(names, member)
        return {rename(key): _renamed(names, each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(names, each, member) for each in value]
    return _text(names, value, member) if isinstance(value, str) else value


def _renaming(names: Pseudonyms, member: str) -> Callable[[str], str]:
    kind = _KEYS.get(member)
    if kind is not None:
        return lambda name: names.name(name, kind)
    if member in ("config", "features"):
        own = WORDS["ConfigName"].values
        return lambda name: name if name.lower() in own else names.word(name, "config")
    if member == "listener_security_protocol_map":
        return lambda name: _listener(names, name)
    return lambda name: name


def _listener(names: Pseudonyms, name: str) -> str:
    words = WORDS["Listener"]
    return name if name.lower() in words.values else names.word(name, words.noun)


def _text(names: Pseudonyms, value: str, member: str) -> str:
    url = _URL.fullmatch(value)
    if url is not None and member in ("endpoints", "url"):
        return f"{_listener(names, url[1])}://{names.host(url[2])}:{url[3]}"
    if member == "entity_path":
        return renamed_path(names, f"/config/{value}").removeprefix("/config/")
    if member == "listener_security_protocol_map":
        return value if value.lower() in WORDS["ConfigValue"].values else HIDDEN
    kind = _KINDS.get(member)
    if _NUMBERED.fullmatch(value) or not value or kind == "":
        return value
    if kind is not None and (other := names.of_kind(value, kind)) is not None:
        return other
    return value if value.lower() in WORDS["ConfigValue"].values else HIDDEN
