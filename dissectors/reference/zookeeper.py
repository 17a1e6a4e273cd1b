"""Named values of ZooKeeper's protocol: `KeeperException.Code`, `ZooDefs`, `Watcher.Event`,
`CreateMode`, as 3.3 to 3.9 have them."""

from __future__ import annotations

from typing import Final


def named_values(text: str) -> dict[int | str, str]:
    """Read `value=NAME` words; values that are no numbers stay text."""
    pairs = (word.split("=") for word in text.split())
    return {
        int(value) if value.removeprefix("-").isdigit() else value: name for value, name in pairs
    }


_TEXT: Final = {
    "ZooKeeperCreateMode": (
        "0=PERSISTENT 1=EPHEMERAL 2=PERSISTENT_SEQUENTIAL 3=EPHEMERAL_SEQUENTIAL 4=CONTAINER "
        "5=PERSISTENT_WITH_TTL 6=PERSISTENT_SEQUENTIAL_WITH_TTL"
    ),
    "ZooKeeperError": (
        "0=OK -1=SYSTEMERROR -2=RUNTIMEINCONSISTENCY -3=DATAINCONSISTENCY -4=CONNECTIONLOSS "
        "-5=MARSHALLINGERROR -6=UNIMPLEMENTED -7=OPERATIONTIMEOUT -8=BADARGUMENTS "
        "-12=UNKNOWNSESSION -13=NEWCONFIGNOQUORUM -14=RECONFIGINPROGRESS -100=APIERROR -101=NONODE "
        "-102=NOAUTH -103=BADVERSION -108=NOCHILDRENFOREPHEMERALS -110=NODEEXISTS -111=NOTEMPTY "
        "-112=SESSIONEXPIRED -113=INVALIDCALLBACK -114=INVALIDACL -115=AUTHFAILED "
        "-118=SESSIONMOVED -119=NOTREADONLY -120=EPHEMERALONLOCALSESSION -121=NOWATCHER "
        "-122=REQUESTTIMEOUT -123=RECONFIGDISABLED -124=SESSIONCLOSEDREQUIRESASLAUTH "
        "-125=QUOTAEXCEEDED -127=THROTTLEDOP"
    ),
    "ZooKeeperEvent": (
        "-1=None 1=NodeCreated 2=NodeDeleted 3=NodeDataChanged 4=NodeChildrenChanged "
        "5=DataWatchRemoved 6=ChildWatchRemoved 7=PersistentWatchRemoved"
    ),
    "ZooKeeperPermissions": "1=READ 2=WRITE 4=CREATE 8=DELETE 16=ADMIN 31=ALL",
    "ZooKeeperState": (
        "-112=Expired -1=Unknown 0=Disconnected 1=NoSyncConnected 3=SyncConnected 4=AuthFailed "
        "5=ConnectedReadOnly 6=SaslAuthenticated 7=Closed"
    ),
    "ZooKeeperType": (
        "-11=closeSession -10=createSession -1=error 0=notification 1=create 2=delete 3=exists "
        "4=getData 5=setData 6=getACL 7=setACL 8=getChildren 9=sync 11=ping 12=getChildren2 "
        "13=check 14=multi 15=create2 16=reconfig 17=checkWatches 18=removeWatches "
        "19=createContainer 20=deleteContainer 21=createTTL 22=multiRead 100=auth 101=setWatches "
        "102=sasl 103=getEphemerals 104=getAllChildrenNumber 105=setWatches2 106=addWatch "
        "107=whoAmI"
    ),
    "ZooKeeperWatchMode": "0=PERSISTENT 1=PERSISTENT_RECURSIVE",
    "ZooKeeperWatcherType": "1=Children 2=Data 3=Any 4=Persistent 5=PersistentRecursive",
}
ZOOKEEPER: Final = {name: named_values(text) for name, text in _TEXT.items()}
"""Sets by name; `codes.ENUMS` holds them beside Kafka's."""

MEANINGS: Final[dict[int, str]] = {
    -1: "The server failed inside; its log says where.",
    -2: "Not executed: an earlier operation of the same multi failed.",
    -3: "The server found its data inconsistent.",
    -4: "The connection was lost; it is unknown whether the request was executed.",
    -5: "The body of the request could not be read: client and server versions differ.",
    -6: "The server does not support this type of request; it closes the connection.",
    -7: "The operation timed out on the server.",
    -8: "An argument is invalid: a path without a slash, or a sequence that is not allowed.",
    -12: "The server does not know a session with this id.",
    -13: "A reconfiguration that would leave no quorum.",
    -14: "Another reconfiguration is in progress.",
    -100: "Not an error itself: the start of the range of request errors.",
    -101: "The node, or the parent of the node to create, does not exist. Routine: clients check "
    "before they create.",
    -102: "The ACL of the node does not allow this to the client: a wrong user, or none.",
    -103: "The node has another version than the request expects: another client wrote in between.",
    -108: "An ephemeral node cannot have children.",
    -110: "The node already exists. When a broker registers: another broker has this id, or the "
    "previous session has not expired yet.",
    -111: "A node with children cannot be deleted.",
    -112: "The session expired: the server received nothing within the timeout, and deleted the "
    "ephemeral nodes.",
    -113: "A callback that the server does not know.",
    -114: "The ACL is invalid: empty, or of a scheme that the server does not support.",
    -115: "Authentication failed; the server closes the connection.",
    -118: "The session moved to another server, or to another connection.",
    -119: "The server is read-only because the quorum is lost.",
    -120: "A local session cannot have ephemeral nodes.",
    -121: "The watch to remove does not exist.",
    -122: "The request took too long.",
    -123: "Reconfiguration is disabled (reconfigEnabled).",
    -124: "The server requires SASL, and the session has none.",
    -125: "The quota of nodes or bytes below a path is exceeded.",
    -127: "The server throttles this client.",
}
"""Meanings of ZooKeeper errors."""
