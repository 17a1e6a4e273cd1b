"""Connections to ZooKeeper: how they begin, what a session is, and where frames are found again
after a hole. Requests and answers are paired as Kafka's are, by xid. State without I/O."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal

from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.conversation.plausible import Data, Plausibility, finder_of
from kafkascope.analyzer.conversation.resync import FrameHeuristic
from kafkascope.analyzer.model import Note, ZooKeeperFacts
from kafkascope.captures.resumable import Resumable
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER
from kafkascope.dissectors.registry import Decoded, RequestHeader
from kafkascope.dissectors.zookeeper import frames
from kafkascope.dissectors.zookeeper.types import AUTH, BASE, CHECK, CONNECT, TYPES

EVENT_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4
WATCHES_XID: Final = -8

_HANDSHAKE_END: Final = frames.HANDSHAKE + LIMITS.password_bytes + 1
"""Bytes of a handshake with the longest password that is believed."""

PING: Final = struct.pack(">iii", frames.HEAD, PING_XID, 11)
"""A whole ping of a client."""

_INT = struct.Struct(">i")
_HEAD = struct.Struct(">ii")
_REQUEST = struct.Struct(">iii")
_ANSWER = struct.Struct(">iiqi")


SENT: Final = frozenset(map(int, ZOOKEEPER["ZooKeeperType"])) - {-10, -1, 0}
"""Types of requests that clients send."""


def look_zookeeper(data: Data) -> Literal["zookeeper", "short", "other"]:
    """Judge the first bytes of a client: a handshake, the start of one, or neither."""
    if len(data) < 4:
        return "other"
    (size,) = _INT.unpack_from(data)
    if not frames.HANDSHAKE <= size <= _HANDSHAKE_END:
        return "other"
    if len(data) < 4 + size:
        return "short" if data[4:7] == b"\0\0\0"[: max(0, len(data) - 4)] else "other"
    return "zookeeper" if frames.is_handshake(bytes(data[4 : 4 + size])) else "other"


def is_zookeeper_request(data: bytes) -> bool:
    """Return whether bytes from the middle of a stream begin with what only clients of ZooKeeper
    send: a ping, or a whole request for the path of a node."""
    if data.startswith(PING):
        return True
    if len(data) < 4 + frames.HEAD:
        return False
    size, xid, kind = _REQUEST.unpack_from(data)
    if not (xid > 0 and kind in TYPES and frames.HEAD < size <= len(data) - 4):
        return False
    payload = data[4 : 4 + size]
    try:
        decoded = frames.decode_request(payload, frames.read_head(payload))
    except DissectError:
        return False
    path = _path_of(decoded.body)
    return decoded.end == size and path is not None and path.startswith("/")


def is_event(payload: bytes) -> bool:
    return len(payload) >= frames.REPLY_HEAD and _INT.unpack_from(payload)[0] == EVENT_XID


class ZooKeeperSession(Resumable):
    """Who the client is and what its session is, as far as it was seen on one connection."""

    STATE = ("_claimed", "_greeted", "id", "timeout_ms", "user")

    def __init__(self) -> None:
        self.id: int | None = None
        """Id of the session, as the server gave it; as asked for where it refused that one."""
        self.timeout_ms: int | None = None
        """As the server gave it."""
        self.user = ""
        """Who authenticated by digest, where the server agreed."""
        self._claimed = ""
        self._greeted = False
        """The handshake was seen, or is missing."""

    def header_of(self, payload: bytes) -> RequestHeader | None:
        """Return the header of a client's frame; None for one that has none."""
        if not self._greeted and frames.is_handshake(payload) and not _is_request(payload):
            return frames.CONNECT_HEADER
        try:
            return frames.read_head(payload)
        except DissectError:
            return None

    def saw_request(self, header: RequestHeader, decoded: Decoded | None) -> None:
        self._greeted = True
        if decoded is None:
            return
        if header.api_key == BASE + CONNECT and decoded.body["session_id"]:
            self.id = decoded.body["session_id"]
        elif header.api_key == BASE + AUTH:
            self._claimed = _user_of(decoded.body)

    def saw_response(self, key: int, decoded: Decoded) -> None:
        body = decoded.body
        if key == BASE + CONNECT:
            self.timeout_ms = body["timeout_ms"]
            self.id = body["session_id"] or self.id
        elif key == BASE + AUTH and not decoded.header["err"]:
            self.user = self._claimed or self.user

    def notes(self, response: Decoded | None) -> tuple[Note, ...]:
        """Return what is odd about an answer."""
        connected = response is not None and response.message == "zk.ConnectResponse"
        if response is None or not connected or response.body["timeout_ms"] > 0:
            return ()
        text = "session refused: expired, or wrong password"
        return (Note("warning", text, "response"),)

    def facts(self, request: Decoded | None, response: Decoded | None) -> ZooKeeperFacts:
        """Return what a message with its answer, or an event, is about."""
        path: str | None = None
        event = ""
        zxid: int | None = None
        if request is not None:
            path = _path_of(request.body)
        if response is not None:
            zxid = response.header.get("zxid")
            if response.message == "zk.WatcherEvent":
                kind = response.body["type"]
                event = ZOOKEEPER["ZooKeeperEvent"].get(kind, str(kind))
                path = response.body["path"]
        return ZooKeeperFacts(self.id, path, event, zxid)


def _path_of(body: dict[str, Any]) -> str | None:
    """Return the node that a request is about: of a multi, the first one that is more than
    checked."""
    operations = body.get("operations")
    if operations is None:
        path: str | None = body.get("path", body.get("prefix_path"))
        return path
    writes = (each["path"] for each in operations if each["type"] != CHECK)
    return next(writes, operations[0]["path"] if operations else None)


def _user_of(packet: dict[str, Any]) -> str:
    """Return the name in a digest's credentials, without the password."""
    if packet["scheme"] != "digest" or not packet["auth"]:
        return ""
    name: bytes = packet["auth"].partition(b":")[0]
    return name.decode("utf-8", "replace")


def _is_request(payload: bytes) -> bool:
    """Return whether what could be a handshake of an unknown protocol version is a request:
    a delete of any version ends like a handshake without a password."""
    number, kind = _HEAD.unpack_from(payload)
    return number != 0 and kind in SENT


_KINDS: Final = b"".join(
    re.escape(bytes([kind])) for kind in map(int, ZOOKEEPER["ZooKeeperType"]) if 0 < kind < 256
)
_ASKS = re.compile(
    rb"(?=[\x00-\x03][\x00-\xff]{7}(?:\x00\x00\x00[" + _KINDS + rb"]|\xff\xff\xff\xf5)"
    rb"|\x00\x00\x00[\x1c-\x5d]\x00\x00\x00\x00)",
    re.DOTALL,
)
_ANSWERS = re.compile(
    rb"(?=[\x00-\x03][\x00-\xff]{15}(?:\x00\x00\x00\x00|\xff\xff\xff[\x80-\xff])"
    rb"|\x00\x00\x00[\x14-\x55]\x00\x00\x00\x00)",
    re.DOTALL,
)


class _ZooKeeperSense(FrameHeuristic):
    """Heuristic for frames that are judged by their headers alone."""

    LEAST: ClassVar[int]
    """Bytes of a header."""
    PATTERN: ClassVar[re.Pattern[bytes]]
    """Found where a size and the rest of a header are plausible."""

    def finder(self) -> Callable[[Data, int], int]:
        return finder_of(self.PATTERN)

    def judge(self, data: Data, at: int, fresh: bool) -> Plausibility:
        if at + 4 + self.LEAST > len(data):
            return Plausibility.MORE
        if not self.fits(data, at):
            return Plausibility.NO
        return Plausibility.YES if fresh else Plausibility.MAYBE

    def fits(self, data: Data, at: int) -> bool:
        raise NotImplementedError

    def follows(self, data: Data, first: int, second: int) -> Plausibility:
        verdict = self.judge(data, second, fresh=False)
        return Plausibility.YES if verdict is Plausibility.MAYBE else verdict


class ZooKeeperRequestHeuristic(_ZooKeeperSense):
    """Heuristic for requests: a size, an xid and a known type; or a handshake."""

    LEAST = frames.HEAD
    PATTERN = _ASKS

    def fits(self, data: Data, at: int) -> bool:
        size, xid, kind = _REQUEST.unpack_from(data, at)
        if xid == 0 and look_zookeeper(data[at : at + 4 + _HANDSHAKE_END]) == "zookeeper":
            return True
        numbered = xid > 0 or xid in (PING_XID, AUTH_XID, WATCHES_XID)
        return kind in SENT and numbered and frames.HEAD <= size <= LIMITS.zookeeper_frame_bytes


def _is_greeting(data: Data, at: int, size: int) -> bool:
    """Return whether the handshake of a server is at a position."""
    if at + 4 + frames.ANSWER_HANDSHAKE > len(data):
        return False
    (password,) = _INT.unpack_from(data, at + frames.ANSWER_HANDSHAKE)
    return -1 <= password <= 64 and size - frames.ANSWER_HANDSHAKE - max(password, 0) in (0, 1)


class ZooKeeperResponseHeuristic(_ZooKeeperSense):
    """What answers look like: a size, an xid, a zxid and an error that is known; or, where one is
    waited for, the handshake of a server."""

    LEAST = frames.REPLY_HEAD
    PATTERN = _ANSWERS

    def __init__(self, in_flight: Callable[[], list[int]]) -> None:
        self._in_flight = in_flight

    def fits(self, data: Data, at: int) -> bool:
        size, xid, zxid, err = _ANSWER.unpack_from(data, at)
        if xid == 0 and 0 in self._in_flight() and _is_greeting(data, at, size):
            return True
        known = err in ZOOKEEPER["ZooKeeperError"]
        numbered = xid > 0 or xid in (EVENT_XID, PING_XID, AUTH_XID, WATCHES_XID)
        return (
            known
            and numbered
            and zxid >= -1
            and frames.REPLY_HEAD <= size <= LIMITS.zookeeper_frame_bytes
        )
