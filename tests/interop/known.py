"""The records that every driver makes (java/Known.java too) and the rows they are told as.

This file is also imported by the client programs, so it knows only the standard library.
"""

import base64
from typing import NamedTuple

EPOCH_MS = 1_700_000_000_000

Payload = str | dict[str, str] | None


class Row(NamedTuple):
    """A record as told by a client: payloads in the form of `records --json`."""

    topic: str
    partition: int
    offset: int | None
    time_ms: int
    key: Payload
    value: Payload
    headers: list[list[Payload]]


class Known(NamedTuple):
    """A record to be produced."""

    topic: str
    partition: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    def row(self, offset: int | None, headers: bool = True) -> Row:
        """What there should be to see of it."""
        told = [[name, payload(value)] for name, value in self.headers] if headers else []
        key, value = payload(self.key), payload(self.value)
        return Row(self.topic, self.partition, offset, self.time_ms, key, value, told)


def payload(data: bytes | None) -> Payload:
    """Text when it is UTF-8, else {"base64": ...}."""
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def known(topic: str, index: int, partitions: int = 2, null_headers: bool = True) -> Known:
    """Record `index` of `topic`."""
    key: bytes | None
    value: bytes | None
    if index % 17 == 16:
        key, value = b"gone", None
    else:
        key = None if index % 5 == 0 else b"k%d" % (index % 7)
        tail = " äö€🚀" if index % 10 == 9 else ""
        text = f"{topic}/{index}/{'abcdefghij' * (1 + index % 12)}{tail}"
        value = bytes([0xFF, 0xFE, index & 0xFF]) if index % 13 == 12 else text.encode()
    headers: list[tuple[str, bytes | None]] = []
    if index % 3 == 0:
        headers = [("n", str(index).encode()), ("src", topic.encode())]
        if index % 6 == 0:
            headers += [("nil", None if null_headers else b""), ("n", b"again")]
    return Known(topic, index % partitions, EPOCH_MS + index * 1000, key, value, headers)
