"""Records of ZooKeeper's protocol (`org.apache.zookeeper.proto` and `data`, 3.3 to 3.9).

jute has one form for all releases: the only record that grew is the handshake, which has a byte
more since 3.4. Texts, buffers and lists may all be null.
"""

from __future__ import annotations

from typing import Any, Final

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Bytes,
    Field,
    Int32,
    Int64,
    Operations,
    Struct,
    Ustring,
    zookeeper,
)

ALL: Final = "0+"


def _text(name: str, **marks: Any) -> Ustring:
    return Ustring(name, ALL, nullable=ALL, **marks)


def _path(name: str = "path", **marks: Any) -> Ustring:
    return _text(name, subject="znodePath", **marks)


def _data(name: str = "data", **marks: Any) -> Bytes:
    return Bytes(name, ALL, nullable=ALL, subject="znodeData", **marks)


def _list(name: str, *children: Field, **marks: Any) -> Array:
    return Array(name, ALL, nullable=ALL, **marks).of(*children)


def _paths(name: str) -> Array:
    return Array(name, ALL, nullable=ALL, subject="znodePath").of(Ustring)


def _acl(**marks: Any) -> Array:
    return _list(
        "acl",
        Int32("perms", ALL, enum="ZooKeeperPermissions"),
        Struct("id", ALL).of(
            _text("scheme", word="ZooKeeperScheme"), _text("id", subject="znodeIdentity")
        ),
        **marks,
    )


def _stat(**marks: Any) -> Struct:
    return Struct("stat", ALL, **marks).of(
        Int64("czxid", ALL, volatile=True, doc="zxid of the change that created it"),
        Int64("mzxid", ALL, volatile=True, doc="zxid of the last change of its data"),
        Int64("ctime", ALL, unit="time_ms", volatile=True),
        Int64("mtime", ALL, unit="time_ms", volatile=True),
        Int32("version", ALL, doc="changes of its data"),
        Int32("cversion", ALL, doc="changes of its children"),
        Int32("aversion", ALL, doc="changes of its ACL"),
        Int64("ephemeral_owner", ALL, volatile=True, doc="session that it goes with; 0 for none"),
        Int32("data_length", ALL),
        Int32("num_children", ALL),
        Int64("pzxid", ALL, volatile=True, doc="zxid of the last change of its children"),
    )


def _flags(**marks: Any) -> Int32:
    return Int32("flags", ALL, enum="ZooKeeperCreateMode", **marks)


# --- headers

REQUEST_HEADER = zookeeper("RequestHeader").of(
    Int32("xid", ALL, doc="-2 ping, -4 auth, -8 setWatches"),
    Int32("type", ALL, enum="ZooKeeperType"),
)
REPLY_HEADER = zookeeper("ReplyHeader").of(
    Int32("xid", ALL, doc="-1 watch event"),
    Int64("zxid", ALL, volatile=True),
    Int32("err", ALL, enum="ZooKeeperError"),
)
NOTHING = zookeeper("Nothing").of()

# --- the handshake

CONNECT_REQUEST = zookeeper("ConnectRequest", versions="0-1").of(
    Int32("protocol_version", ALL),
    Int64("last_zxid_seen", ALL, volatile=True),
    Int32("timeout_ms", ALL),
    Int64("session_id", ALL, volatile=True, doc="0 for a new session"),
    Bytes("passwd", ALL, nullable=ALL, secret=True),
    Bool("read_only", "1+", doc="since 3.4"),
)
CONNECT_RESPONSE = zookeeper("ConnectResponse", versions="0-1").of(
    Int32("protocol_version", ALL),
    Int32("timeout_ms", ALL, doc="0 where the session has expired"),
    Int64("session_id", ALL, volatile=True),
    Bytes("passwd", ALL, nullable=ALL, secret=True),
    Bool("read_only", "1+", doc="since 3.4, to clients that sent it"),
)

# --- requests and answers

AUTH_PACKET = zookeeper("AuthPacket").of(
    Int32("type", ALL),
    _text("scheme", word="ZooKeeperScheme"),
    Bytes("auth", ALL, nullable=ALL, secret=True),
)
CREATE_REQUEST = zookeeper("CreateRequest").of(_path(), _data(), _acl(), _flags())
CREATE_TTL_REQUEST = zookeeper("CreateTTLRequest").of(
    _path(), _data(), _acl(), _flags(), Int64("ttl", ALL, doc="ms")
)
CREATE_RESPONSE = zookeeper("CreateResponse").of(_path())
CREATE2_RESPONSE = zookeeper("Create2Response").of(_path(), _stat())
DELETE_REQUEST = zookeeper("DeleteRequest").of(_path(), Int32("version", ALL, doc="-1 for any"))
CHECK_VERSION_REQUEST = zookeeper("CheckVersionRequest").of(
    _path(), Int32("version", ALL, doc="-1 for any")
)
EXISTS_REQUEST = zookeeper("ExistsRequest").of(_path(), Bool("watch", ALL))
EXISTS_RESPONSE = zookeeper("ExistsResponse").of(_stat())
GET_DATA_REQUEST = zookeeper("GetDataRequest").of(_path(), Bool("watch", ALL))
GET_DATA_RESPONSE = zookeeper("GetDataResponse").of(_data(), _stat())
SET_DATA_REQUEST = zookeeper("SetDataRequest").of(
    _path(), _data(), Int32("version", ALL, doc="-1 for any")
)
SET_DATA_RESPONSE = zookeeper("SetDataResponse").of(_stat())
GET_ACL_REQUEST = zookeeper("GetACLRequest").of(_path())
GET_ACL_RESPONSE = zookeeper("GetACLResponse").of(_acl(), _stat())
SET_ACL_REQUEST = zookeeper("SetACLRequest").of(
    _path(), _acl(), Int32("version", ALL, doc="-1 for any")
)
SET_ACL_RESPONSE = zookeeper("SetACLResponse").of(_stat())
GET_CHILDREN_REQUEST = zookeeper("GetChildrenRequest").of(_path(), Bool("watch", ALL))
GET_CHILDREN_RESPONSE = zookeeper("GetChildrenResponse").of(_paths("children"))
GET_CHILDREN2_REQUEST = zookeeper("GetChildren2Request").of(_path(), Bool("watch", ALL))
GET_CHILDREN2_RESPONSE = zookeeper("GetChildren2Response").of(_paths("children"), _stat())
SYNC_REQUEST = zookeeper("SyncRequest").of(_path())
SYNC_RESPONSE = zookeeper("SyncResponse").of(_path())
RECONFIG_REQUEST = zookeeper("ReconfigRequest").of(
    _text("joining_servers", subject="freeText"),
    _text("leaving_servers", subject="freeText"),
    _text("new_members", subject="freeText"),
    Int64("cur_config_id", ALL, doc="-1 for any"),
)
CHECK_WATCHES_REQUEST = zookeeper("CheckWatchesRequest").of(
    _path(), Int32("type", ALL, enum="ZooKeeperWatcherType")
)
REMOVE_WATCHES_REQUEST = zookeeper("RemoveWatchesRequest").of(
    _path(), Int32("type", ALL, enum="ZooKeeperWatcherType")
)
ADD_WATCH_REQUEST = zookeeper("AddWatchRequest").of(
    _path(), Int32("mode", ALL, enum="ZooKeeperWatchMode")
)
ERROR_RESPONSE = zookeeper("ErrorResponse").of(Int32("err", ALL, enum="ZooKeeperError"))
SET_WATCHES = zookeeper("SetWatches").of(
    Int64("relative_zxid", ALL, volatile=True),
    _paths("data_watches"),
    _paths("exist_watches"),
    _paths("child_watches"),
)
SET_WATCHES2 = zookeeper("SetWatches2").of(
    Int64("relative_zxid", ALL, volatile=True),
    _paths("data_watches"),
    _paths("exist_watches"),
    _paths("child_watches"),
    _paths("persistent_watches"),
    _paths("persistent_recursive_watches"),
)
GET_SASL_REQUEST = zookeeper("GetSASLRequest").of(Bytes("token", ALL, nullable=ALL, secret=True))
SET_SASL_RESPONSE = zookeeper("SetSASLResponse").of(Bytes("token", ALL, nullable=ALL, secret=True))
GET_EPHEMERALS_REQUEST = zookeeper("GetEphemeralsRequest").of(_path("prefix_path"))
GET_EPHEMERALS_RESPONSE = zookeeper("GetEphemeralsResponse").of(_paths("ephemerals"))
GET_ALL_CHILDREN_NUMBER_REQUEST = zookeeper("GetAllChildrenNumberRequest").of(_path())
GET_ALL_CHILDREN_NUMBER_RESPONSE = zookeeper("GetAllChildrenNumberResponse").of(
    Int32("total_number", ALL)
)
WHO_AM_I_RESPONSE = zookeeper("WhoAmIResponse").of(
    _list(
        "client_info",
        _text("auth_scheme", word="ZooKeeperScheme"),
        _text("user", subject="znodeIdentity"),
    )
)
WATCHER_EVENT = zookeeper("WatcherEvent").of(
    Int32("type", ALL, enum="ZooKeeperEvent"),
    Int32("state", ALL, enum="ZooKeeperState"),
    _path(),
)

# --- multi: many in one

_CREATES = (1, 15, 19, 21)
_ASKED = (*_CREATES, 2, 4, 5, 8, 13)

MULTI_REQUEST = zookeeper("MultiRequest").of(
    Operations("operations", ALL).of(
        Int32("type", ALL, enum="ZooKeeperType", only=_ASKED),
        Int32("err", ALL, doc="-1"),
        _path(only=_ASKED),
        _data(only=(*_CREATES, 5)),
        _acl(only=_CREATES),
        _flags(only=_CREATES),
        Int64("ttl", ALL, only=(21,), doc="ms"),
        Int32("version", ALL, only=(2, 5, 13), doc="-1 for any"),
        Bool("watch", ALL, only=(4, 8)),
    )
)
MULTI_RESPONSE = zookeeper("MultiResponse").of(
    Operations("results", ALL).of(
        Int32("type", ALL, enum="ZooKeeperType", only=(*_ASKED, -1)),
        Int32("err", ALL, enum="ZooKeeperError"),
        _path(only=_CREATES),
        _data(only=(4,)),
        Array("children", ALL, nullable=ALL, subject="znodePath", only=(8,)).of(Ustring),
        _stat(only=(4, 5, 15, 19, 21)),
        Int32("error", ALL, only=(-1,), enum="ZooKeeperError"),
    )
)
