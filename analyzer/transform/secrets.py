"""Secrets out of whole frames that are written somewhere: same length, so that every offset stays.

Which fields are secret is in the declarations (`secret=True`). Bytes that cannot be read where a
secret may be are hidden as a whole: nothing leaks for our ignorance.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from kafkascope.analyzer.model import Side
from kafkascope.dissectors.embedded.internal import CLUSTER_METADATA_ID, without_secrets
from kafkascope.dissectors.embedded.internal import decode as decode_record
from kafkascope.dissectors.embedded.masking import has_secrets, masked
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import decode
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.redaction import with_values
from kafkascope.dissectors.registry import (
    APIS,
    decode_response,
    layout_of,
    read_layout,
    read_request_header,
    response_header_version,
    write_layout,
)
from kafkascope.dissectors.zookeeper.frames import HEAD, REPLY_HEAD
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT

HIDDEN: Final = b"*"
SIZE_BYTES: Final = 4
# Of a correlation id.
ID_BYTES: Final = 4
METADATA_TOPIC: Final = b"__cluster_metadata"
METADATA_LOG: Final = {1: ("responses", "records"), 59: ("topics", "unaligned_records")}
"""Keys of the APIs by which the metadata log is read, Fetch and FetchSnapshot -> where it is."""
# Bytes at the start of a response, size and all, that name the metadata log if it is in it: nobody
# fetches it together with other topics.
TOLD_BY: Final = 64


@cache
def _secret(name: str, key: int, version: int) -> bool:
    api = APIS.get(key)
    if api is None:
        return False
    versions = api.versions
    if version in versions:
        return has_secrets(layout_of(f"{api.name}{name}", version))
    return has_secrets(layout_of(f"{api.name}{name}", versions.high))


def in_request(key: int, version: int) -> bool:
    """Whether a request may carry a secret."""
    return _secret("Request", key, version)


def in_response(key: int, version: int) -> bool:
    """Whether a response may carry a secret."""
    return _secret("Response", key, version)


def reads_metadata_log(key: int) -> bool:
    """Whether responses of an API may contain the metadata log; `TOLD_BY` bytes decide."""
    return key in METADATA_LOG


def of_metadata_log(data: bytes) -> bool:
    """Whether a response to who reads it, or its beginning, names the metadata log."""
    return METADATA_TOPIC in data or CLUSTER_METADATA_ID in data


def hidden_token(frame: bytes) -> bytes:
    """A raw SASL token, size and all."""
    return frame[:4] + HIDDEN * (len(frame) - 4)


def masked_request(frame: bytes, key: int, version: int) -> bytes:
    """A whole request, size and all, as it may be recorded."""
    if not in_request(key, version):
        return frame
    try:
        at = 4 + read_request_header(frame[4:]).end
    except DissectError:
        at = 14
    return _masked("Request", key, version, frame, at)


def masked_response(frame: bytes, key: int, version: int) -> bytes:
    """A whole response, size and all, as it may be recorded. Only batches of the metadata log that
    were compressed may get another size."""
    if reads_metadata_log(key) and of_metadata_log(frame):
        return _masked_metadata_log(frame, key, version)
    if not in_response(key, version):
        return frame
    return _masked("Response", key, version, frame, 8 + response_header_version(key, version))


def _masked_metadata_log(frame: bytes, key: int, version: int) -> bytes:
    """Put asterisks for the secrets in records of Kafka's metadata log (SCRAM credentials,
    passwords of configs), which brokers fetch from controllers."""
    payload = frame[SIZE_BYTES:]
    arrays, field = METADATA_LOG[key]
    try:
        decoded = decode_response(payload, key, version)
    except DissectError:
        kept = SIZE_BYTES + ID_BYTES
        return frame[:kept] + HIDDEN * (len(frame) - kept)
    for topic in decoded.body[arrays]:
        name = topic.get("topic", topic.get("name"))
        is_metadata = (
            name == METADATA_TOPIC.decode() or topic.get("topic_id") == CLUSTER_METADATA_ID
        )
        for partition in topic["partitions"] if is_metadata else ():
            if partition[field]:
                partition[field] = with_values(partition[field], _without_credentials)
    written = decoded.with_body(payload, decoded.body)
    return len(written).to_bytes(SIZE_BYTES, "big") + written


def _without_credentials(record: Record) -> bytes | None:
    found = decode_record(None, record.key, record.value, topic_id=CLUSTER_METADATA_ID)
    return record.value if found is None else without_secrets(found, record.value)


def _masked(kind: str, key: int, version: int, frame: bytes, at: int) -> bytes:
    api = APIS[key]
    try:
        layout = layout_of(f"{api.name}{kind}", version)
        body, end = read_layout(layout, frame, at)
        hidden = frame[:at] + write_layout(layout, masked(layout, body))
        hidden += HIDDEN * (len(frame) - end)
        if len(hidden) == len(frame):
            return hidden
    except DissectError:
        pass
    return frame[:at] + HIDDEN * (len(frame) - at)


# --- of ZooKeeper


def masked_zookeeper(payload: bytes, key: int, side: Side) -> bytes:
    """Return the payload with asterisks in place of secrets, and of all that cannot be read."""
    try:
        found = decode(payload, key, 0, side)
        rest = HIDDEN * (len(payload) - found.end)
        return found.with_body(payload, masked(found.layout, found.body), rest)
    except DissectError:
        return unread_zookeeper(payload, key, side)


def unread_zookeeper(payload: bytes, key: int, side: Side) -> bytes:
    """Return the header of a payload, asterisks behind it."""
    head = REPLY_HEAD if side == "response" else HEAD
    kept = 0 if key == BASE + CONNECT else min(head, len(payload))
    return payload[:kept] + HIDDEN * (len(payload) - kept)
