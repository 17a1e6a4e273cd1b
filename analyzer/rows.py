"""Exchange -> Row: one flat, typed record; the one table definition that every output uses.

A new column is a field of `Row`, a line in `COLUMNS` or `to_json`, and whatever `row_of` needs to
fill it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from analyzer.model import Note, State, Undecoded


class RowError(NamedTuple):
    """An error code of a response and what it is about."""

    code: int
    name: str
    top: bool = False
    """The response's own error, not one of a part of it."""
    topic: str | None = None
    topic_id: bytes | None = None
    partition: int | None = None
    group: str | None = None
    message: str | None = None
    """The broker's own text, where the response has one."""


@dataclass(frozen=True, slots=True)
class Row:
    """One exchange in a line. Lists keep the order of the wire, each value once."""

    number: int
    id: str
    time_ns: int
    """First byte of the request (of the response, when there is no request)."""
    connection: int
    client_address: str
    broker_address: str
    client_id: str | None
    software: str
    user: str
    api_key: int | None
    api: str
    api_version: int | None
    flexible: bool
    correlation_id: int | None
    request_bytes: int | None
    response_bytes: int | None
    latency_ns: int | None
    server_ns: int | None
    wait_ns: int
    """The part of the latency that the client asked for."""
    throttle_ms: int
    state: State
    reason: str
    errors: tuple[RowError, ...]
    """Without NONE."""
    topics: tuple[str, ...]
    """Names; an id whose name is not known (yet) as its first 8 characters and `?`."""
    topic_ids: tuple[bytes, ...]
    """Uuids as the messages have them."""
    partitions: tuple[int, ...]
    groups: tuple[str, ...]
    members: tuple[str, ...]
    generations: tuple[int, ...]
    producer_ids: tuple[int, ...]
    producer_epochs: tuple[int, ...]
    transactional_ids: tuple[str, ...]
    acks: int | None
    codecs: tuple[str, ...]
    records: int | None
    """Records in all batches of both sides; None when the API carries none."""
    batches: int | None
    offset: int | None
    """Base offset that the broker gave to the first partition of a Produce."""
    frames: tuple[int, ...]
    """Packets with the first byte of request and response."""
    undecoded: tuple[Undecoded, ...]
    notes: tuple[Note, ...]

    @property
    def excess_ns(self) -> int | None:
        """Latency without the wait."""
        return None if self.latency_ns is None else max(0, self.latency_ns - self.wait_ns)


def to_json(row: Row) -> dict[str, Any]:
    """The exchange/1 object of a row."""
    raise NotImplementedError


def result(row: Row) -> str:
    """What became of the exchange, in words for people: the last column of `ls`."""
    raise NotImplementedError
