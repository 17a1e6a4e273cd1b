"""Is there a Kafka frame at this place? Judged by content alone, for detection on any port and for
finding the next frame after a gap.

A strict test: size, api key, version, correlation id and client id all have to make sense. Random
bytes pass it about once in 10**12 positions, text and TLS never.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Container, Iterable
from enum import Enum
from typing import Final, TypeAlias

from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.dissectors.registry import API_VERSIONS, APIS, request_header_version

# Correlation ids count up by one; so many requests may be missing between two we see.
NEAR: Final = 1000


# Size, key, version, correlation id and the client id's length.
HEAD_BYTES: Final = 14

Data: TypeAlias = bytes | bytearray


class Plausibility(Enum):
    """Verdict on the bytes at a position."""

    NO = "no frame"
    MORE = "too few bytes to decide"
    MAYBE = "a frame, if what follows it is one too"
    YES = "a frame"


_SHORT = struct.Struct(">h")
_BATCH = struct.Struct(">iqi4xB")
# Bytes of the smallest entry of a message set, after its length: null as key and as value.
_MIN_BATCH: Final = 14
_SIZE_AND_ID = struct.Struct(">ii")
_UNPRINTABLE = re.compile(rb"[\x00-\x1f\x7f]")

_KEYS = b"".join(re.escape(bytes([key])) for key in APIS if key < 256)
_NEWEST = max(api.versions.high for api in APIS.values())
_REQUEST = re.compile(
    rb"(?=[\x00-\x1f][\x00-\xff]{3}\x00[" + _KEYS + rb"]\x00[\x00-" + bytes([_NEWEST]) + rb"])",
    re.DOTALL,
)


def client_id_end(data: Data, at: int) -> int | None:
    """Return the offset after a client id that people could have chosen; -1 when bytes are
    missing, None when it is nonsense."""
    if at + 2 > len(data):
        return -1
    length: int = _SHORT.unpack_from(data, at)[0]
    if length == -1:
        return at + 2
    if not 0 <= length <= LIMITS.client_id_bytes:
        return None
    text = bytes(data[at + 2 : at + 2 + length])
    if _UNPRINTABLE.search(text):
        return None
    if len(text) < length:
        return -1
    try:
        text.decode()
    except UnicodeDecodeError:
        return None
    return at + 2 + length


def judge_request(
    data: Data, at: int, known_versions: bool = True, client_id: bytes | None = None
) -> Plausibility:
    """Return whether a request (size field first) starts at `at`, by its header; never more than
    MAYBE. `client_id`: that of the connection, which may be an unusual one.

    Without `known_versions`, keys and versions that no release has pass as well, when they are
    small: what a newer Kafka may send on a port that is known to be Kafka's.
    """
    if at + 8 > len(data):
        start = bytes(data[at : at + 8])
        return Plausibility.MORE if not start or start[0] < 0x20 else Plausibility.NO
    size, key, version = struct.unpack_from(">ihh", data, at)
    if not 8 <= size <= LIMITS.frame_bytes:
        return Plausibility.NO
    api = APIS.get(key)
    if api is None or version not in api.versions:
        # A client may ask for any version of ApiVersions; the response shows it better (KIP-511).
        if known_versions and not (key == API_VERSIONS and 0 <= version < 128):
            return Plausibility.NO
        if not (0 <= key < 1024 and 0 <= version < 1024):
            return Plausibility.NO
    if at + 12 > len(data):
        return Plausibility.MORE
    (correlation_id,) = struct.unpack_from(">i", data, at + 8)
    # librdkafka and Java start at 0 or 1; Java's SASL requests count down from the top (KIP-368).
    if correlation_id < -1 or _is_records(data, at):
        return Plausibility.NO
    if request_header_version(key, version) == 0:
        return Plausibility.MAYBE
    if size < HEAD_BYTES - 4:
        return Plausibility.NO  # nothing is left for the client id, whatever follows the request
    end = client_id_end(data, at + 12)
    if end is None and same_client(data, at, client_id):
        end = at + HEAD_BYTES + len(client_id or b"")
    if end is None or (end > 0 and end - at - 4 > size):
        return Plausibility.NO
    return Plausibility.MORE if end == -1 else Plausibility.MAYBE


def _is_records(data: Data, at: int) -> bool:
    """Return whether the records of a Produce begin at `at`, with their size: the base offset 0 of
    their first batch looks like Produce v0 with correlation id 0, the first half of the batch's
    length like an empty client id."""
    if len(data) < at + _BATCH.size:
        return False
    size, base_offset, length, magic = _BATCH.unpack_from(data, at)
    return bool(base_offset == 0 and _MIN_BATCH <= length <= size - 12 and magic <= 2)


def cut_request(data: Data, at: int, known_versions: bool = True) -> bool:
    """Return whether these bytes may be the first ones of a request of which the capture lacks the
    rest. Less of a client id is enough, but not nothing of the header."""
    if at + HEAD_BYTES > len(data):
        return False
    return judge_request(data, at, known_versions) is not Plausibility.NO


def finder_of(pattern: re.Pattern[bytes]) -> Callable[[Data, int], int]:
    """Return a function that takes (bytes, from) and returns where a pattern is found; -1 for
    nowhere."""

    def find(data: Data, at: int) -> int:
        found = pattern.search(data, at)
        return -1 if found is None else found.start()

    return find


find_request: Final = finder_of(_REQUEST)
"""Finds what may be the start of a request."""


def same_client(data: Data, at: int, client_id: bytes | None) -> bool:
    """Return whether the request at `at` has this client id, which is not empty."""
    if not client_id:
        return False
    return data[at + 12 : at + 14 + len(client_id)] == _SHORT.pack(len(client_id)) + client_id


def judge_response(data: Data, at: int, expected: Container[int]) -> Plausibility:
    """Return whether a response may start at `at`: MAYBE for an id in flight, NO for nonsense."""
    if at + 8 > len(data):
        return Plausibility.MORE
    size, correlation_id = _SIZE_AND_ID.unpack_from(data, at)
    if not 4 <= size <= LIMITS.frame_bytes or correlation_id not in expected:
        return Plausibility.NO
    return Plausibility.MAYBE


def response_finder(expected: Iterable[int]) -> Callable[[Data, int], int]:
    """Return a function like `find_request` for responses to requests in flight."""
    ids = [re.escape(struct.pack(">i", each)) for each in expected]
    if not ids:
        return lambda data, at: -1
    pattern = rb"(?=[\x00-\x1f][\x00-\xff]{3}(?:" + b"|".join(ids) + rb"))"
    return finder_of(re.compile(pattern, re.DOTALL))


def request_within(payload: bytes, at: int, client_id: str | None) -> int:
    """Return where another request of the same client begins inside a request, from `at` on; -1
    where none does. Its size field comes first."""
    if not client_id:
        return -1
    name = client_id.encode("utf-8", "surrogateescape")
    mark = _SHORT.pack(len(name)) + name
    found = payload.find(mark, at + HEAD_BYTES - 2)
    while found >= 0:
        start = found - (HEAD_BYTES - 2)
        if judge_request(payload, start, client_id=name) is Plausibility.MAYBE:
            return start
        found = payload.find(mark, found + 1)
    return -1
