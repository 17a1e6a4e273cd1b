"""Opens a whole TLS connection with a key log: as little code as that takes, for bytes that are
complete and in order. A witness for what makes connections, and a user of the stateless modules."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from struct import pack
from typing import NamedTuple

from kafkascope.captures.tls.keys.derive import key_block
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.keys.protection import Buffer, Protection, protection_12, protection_13
from kafkascope.captures.tls.keys.suites import Suite, suite_of

CHANGE, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
RETRY = hashlib.sha256(b"HelloRetryRequest").digest()
HEADER = 5


class Opened(NamedTuple):
    suite: Suite
    version: int
    encrypt_then_mac: bool
    records: list[tuple[int, int, bytes]]
    """Direction, content type, plaintext of what was encrypted."""

    def data(self, direction: int) -> bytes:
        return b"".join(p for d, kind, p in self.records if d == direction and kind == DATA)


def records(data: bytes) -> list[tuple[int, int, bytes]]:
    """Kind, version, body of each record."""
    found = []
    while data:
        end = HEADER + int.from_bytes(data[3:5], "big")
        assert len(data) >= end
        found.append((data[0], int.from_bytes(data[1:3], "big"), data[HEADER:end]))
        data = data[end:]
    return found


def extensions(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        end = 4 + int.from_bytes(data[2:4], "big")
        found[int.from_bytes(data[:2], "big")] = data[4:end]
        data = data[end:]
    return found


def open_with(
    protection: Protection, sequence: int, kind: int, version: int, body: Buffer
) -> tuple[int, bytes]:
    """What opens behind a header of these."""
    return protection.open(sequence, pack(">BHH", kind, version, len(body)), body)


def opened(talk: Iterable[tuple[int, bytes]], log: KeyLog) -> Opened:
    """What both sides said: (direction, whole records), direction 0 being the client."""
    client_random = b""
    hello: tuple[Suite, int, bytes, bool] | None = None
    readers: list[Protection | None] = [None, None]
    numbers = [0, 0]
    out: list[tuple[int, int, bytes]] = []
    for direction, data in talk:
        for kind, version, body in records(data):
            reader = readers[direction]
            if reader is not None and not (kind == CHANGE and hello and hello[1] == 0x304):
                kind, plain = open_with(reader, numbers[direction], kind, version, body)
                numbers[direction] += 1
                out.append((direction, kind, plain))
                if hello and hello[1] == 0x304 and kind == HANDSHAKE:
                    after = _after_finished(plain)
                    if after:
                        secrets = log.secrets(client_random)
                        assert secrets
                        secret = (secrets.client_traffic, secrets.server_traffic)[direction]
                        assert secret
                        readers[direction] = protection_13(hello[0], secret)
                        numbers[direction] = 0
            elif kind == HANDSHAKE and body[0] == 1:
                client_random = body[6:38]
            elif kind == HANDSHAKE and body[0] == 2 and body[6:38] != RETRY:
                behind = 39 + body[38]
                size = int.from_bytes(body[1:4], "big")
                suite = suite_of(int.from_bytes(body[behind : behind + 2], "big"))
                extra = extensions(body[behind + 5 : 4 + size])
                chosen = int.from_bytes(extra.get(43, b"\3\3"), "big")
                hello = (suite, chosen, body[6:38], 22 in extra)
                if chosen == 0x304:
                    secrets = log.secrets(client_random)
                    assert secrets
                    assert secrets.client_handshake
                    assert secrets.server_handshake
                    readers = [
                        protection_13(suite, secrets.client_handshake),
                        protection_13(suite, secrets.server_handshake),
                    ]
            elif kind == CHANGE and hello and hello[1] == 0x303:
                secrets = log.secrets(client_random)
                assert secrets
                assert secrets.master
                keys = key_block(hello[0], secrets.master, client_random, hello[2])
                readers[direction] = protection_12(hello[0], keys[direction], hello[3])
    assert hello
    return Opened(hello[0], hello[1], hello[3], out)


def _after_finished(plain: bytes) -> bool:
    """Whether a Finished is the last of these handshake messages, each of which is whole."""
    kind = 0
    while plain:
        kind = plain[0]
        plain = plain[4 + int.from_bytes(plain[1:4], "big") :]
    return kind == 20
