"""Connections to ZooKeeper for tests: frames written by hand, apart from the declarations."""

from __future__ import annotations

import struct

from tests.kit.wire import START, Wire, framed

ACL = struct.pack(">ii", 1, 31) + struct.pack(">i5si6s", 5, b"world", 6, b"anyone")
PASSWORD = struct.pack(">i16s", 16, b"p" * 16)
OK = 0


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(data)) + data


def stat(
    zxid: int,
    owner: int = 0,
    version: int = 0,
    size: int = 0,
    born: int | None = None,
    clock_ms: int = 1,
) -> bytes:
    czxid = zxid if born is None else born
    times = clock_ms, clock_ms
    return struct.pack(">qqqqiiiqiiq", czxid, zxid, *times, version, 0, 0, owner, size, 0, czxid)


class ZooKeeperWire(Wire):
    """A connection of a session. Every method sends a request and its answer."""

    def __init__(self, session: int, *, number: int = 0, start_ns: int = START) -> None:
        super().__init__(port=2181, number=number, start_ns=start_ns)
        self.connection.a = self.connection.a._replace(port=40_000 + number)
        self.session = session
        self.xid = 0

    def connect(
        self, *, attach: bool = False, timeout_ms: int = 4000, refused: bool = False
    ) -> ZooKeeperWire:
        asked = self.session if attach else 0
        head = struct.pack(">iqiq", 0, 0, timeout_ms, asked)
        self.client(framed(head + PASSWORD + b"\0"))
        given = (0, 0) if refused else (timeout_ms, self.session)
        self.broker(framed(struct.pack(">iiq", 0, *given) + PASSWORD + b"\0"))
        return self

    def ask(self, kind: int, body: bytes) -> int:
        """Send a request without an answer; its xid."""
        self.xid += 1
        self.client(framed(struct.pack(">ii", self.xid, kind) + body))
        return self.xid

    def told(self, xid: int, zxid: int, error: int = OK, body: bytes = b"") -> ZooKeeperWire:
        self.broker(framed(struct.pack(">iqi", xid, zxid, error) + body))
        return self

    def create(
        self, path: str, data: bytes = b"", flags: int = 0, *, zxid: int = 1, error: int = OK
    ) -> ZooKeeperWire:
        xid = self.ask(1, text(path) + text(data) + ACL + struct.pack(">i", flags))
        return self.told(xid, zxid, error, b"" if error else text(path))

    def delete(self, path: str, *, zxid: int = 1, error: int = OK) -> ZooKeeperWire:
        return self.told(self.ask(2, text(path) + struct.pack(">i", -1)), zxid, error)

    def set(self, path: str, data: bytes, *, zxid: int = 1, version: int = 1) -> ZooKeeperWire:
        xid = self.ask(5, text(path) + text(data) + struct.pack(">i", -1))
        return self.told(xid, zxid, OK, stat(zxid, version=version, size=len(data), born=1))

    def get(
        self, path: str, data: bytes = b"", *, zxid: int = 1, error: int = OK, **kept: int
    ) -> ZooKeeperWire:
        xid = self.ask(4, text(path) + b"\0")
        body = b"" if error else text(data) + stat(zxid, size=len(data), **kept)
        return self.told(xid, zxid, error, body)

    def event(self, kind: int, path: str) -> ZooKeeperWire:
        self.broker(
            framed(struct.pack(">iqi", -1, -1, 0) + struct.pack(">ii", kind, 3) + text(path))
        )
        return self

    def close_session(self, *, zxid: int = 1) -> ZooKeeperWire:
        return self.told(self.ask(-11, b""), zxid)
