"""Types of ZooKeeper's requests: names, records of request and answer, and keys among the APIs.

Kafka's keys are int16. Those of ZooKeeper's requests are `BASE` and their type, so that an API has
one key whatever protocol it is of.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER

# Added to a type; types are -11 and more.
BASE: Final = 1 << 16
# No key of Kafka's is as large, none of ZooKeeper's smaller.
LEAST: Final = BASE - (1 << 15)

PREFIX: Final = "zk."
"""How names of requests begin."""
UNKNOWN: Final = f"{PREFIX}?"
"""The name of all types that no release has."""

# The handshake: no type stands on the wire, this is the server's own name for it.
CONNECT: Final = -10
CLOSE: Final = -11
EVENT: Final = 0
PING: Final = 11
CHECK: Final = 13
MULTI: Final = 14
MULTI_READ: Final = 22
AUTH: Final = 100
SASL: Final = 102


class Type(NamedTuple):
    """A type of request."""

    key: int
    """Among the APIs."""
    name: str
    """With the prefix: zk.getData."""
    request: str
    """Record of the request."""
    response: str
    """Record of the answer, where it has no error."""


_RECORDS: Final[dict[int, tuple[str, str]]] = {
    CLOSE: ("Nothing", "Nothing"),
    CONNECT: ("ConnectRequest", "ConnectResponse"),
    EVENT: ("Nothing", "WatcherEvent"),
    1: ("CreateRequest", "CreateResponse"),
    2: ("DeleteRequest", "Nothing"),
    3: ("ExistsRequest", "ExistsResponse"),
    4: ("GetDataRequest", "GetDataResponse"),
    5: ("SetDataRequest", "SetDataResponse"),
    6: ("GetACLRequest", "GetACLResponse"),
    7: ("SetACLRequest", "SetACLResponse"),
    8: ("GetChildrenRequest", "GetChildrenResponse"),
    9: ("SyncRequest", "SyncResponse"),
    PING: ("Nothing", "Nothing"),
    12: ("GetChildren2Request", "GetChildren2Response"),
    13: ("CheckVersionRequest", "Nothing"),
    MULTI: ("MultiRequest", "MultiResponse"),
    15: ("CreateRequest", "Create2Response"),
    16: ("ReconfigRequest", "GetDataResponse"),
    17: ("CheckWatchesRequest", "Nothing"),
    18: ("RemoveWatchesRequest", "Nothing"),
    19: ("CreateRequest", "Create2Response"),
    20: ("DeleteRequest", "Nothing"),
    21: ("CreateTTLRequest", "Create2Response"),
    MULTI_READ: ("MultiRequest", "MultiResponse"),
    AUTH: ("AuthPacket", "Nothing"),
    101: ("SetWatches", "Nothing"),
    SASL: ("GetSASLRequest", "SetSASLResponse"),
    103: ("GetEphemeralsRequest", "GetEphemeralsResponse"),
    104: ("GetAllChildrenNumberRequest", "GetAllChildrenNumberResponse"),
    105: ("SetWatches2", "Nothing"),
    106: ("AddWatchRequest", "ErrorResponse"),
    107: ("Nothing", "WhoAmIResponse"),
}
_NAMES: Final = {**ZOOKEEPER["ZooKeeperType"], CONNECT: "connect", EVENT: "event"}

TYPES: Final[dict[int, Type]] = {
    number: Type(BASE + number, f"{PREFIX}{_NAMES[number]}", *(f"{PREFIX}{each}" for each in pair))
    for number, pair in _RECORDS.items()
}

BY_NAME: Final = {each.name.lower(): each.key for each in TYPES.values()}


def is_zookeeper(key: int | None) -> bool:
    return key is not None and key >= LEAST


def name_of_key(key: int) -> str:
    """Return the name of a key, `UNKNOWN` for one that no release has."""
    found = TYPES.get(key - BASE)
    return UNKNOWN if found is None else found.name


def error_name(code: int) -> str:
    """Return ZooKeeper's name of an error, its number where it has none."""
    return ZOOKEEPER["ZooKeeperError"].get(code, str(code))
