"""Records that Kafka writes for itself: internal topics, the metadata log and snapshots, control
records.

    __consumer_offsets, __transaction_state,      key   int16 record type | key message, version 0
    __share_group_state                           value int16 version | value message; null deletes
    __cluster_metadata, __remote_log_metadata     value uvarint frame version | uvarint type |
    uvarint version | message
    MirrorMaker 2's, see `mirror_maker`           key   message
                                                  value message, or int16 version | message
    control batches, any topic                    key   int16 version | int16 type
                                                  value see `_control_value`
"""

from __future__ import annotations

import importlib
import struct
from functools import cache
from typing import Any, Final, NamedTuple

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded.masking import masked, secrets_of
from kafkascope.dissectors.embedded.mirror_maker import MirrorMessages, mirror_messages
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated, UnknownVersion
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.reference.codes import ENUMS
from kafkascope.dissectors.registry import message, read_best, write_layout
from kafkascope.dissectors.schema import Message
from kafkascope.dissectors.values import read_uvarint

METADATA_TOPIC: Final = "__cluster_metadata"
CLUSTER_METADATA_ID: Final = bytes(15) + b"\1"
"""The topic id of `__cluster_metadata`."""

COORDINATOR_TOPICS: Final[dict[str, tuple[str, ...]]] = {
    "__consumer_offsets": (
        "consumer_offsets",
        "consumer_offsets_consumer",
        "consumer_offsets_share",
        "consumer_offsets_streams",
    ),
    "__transaction_state": ("transaction_state",),
    "__share_group_state": ("share_group_state",),
}
"""Modules that declare a topic's records, by topic."""

FRAMED_TOPICS: Final = {
    METADATA_TOPIC: "cluster_metadata",
    "__remote_log_metadata": "remote_log_metadata",
}
"""Module that declares a topic's records, by topic."""

_SHORT: Final = struct.Struct(">h")


class Content(NamedTuple):
    """A key or value, decoded."""

    message: str
    version: int
    body: Body
    note: str = ""
    """Not empty when the layout is one that only some releases had."""
    surplus: int = 0
    """Bytes after the end of the message."""
    layout: Layout | None = None
    """None for the key of a control record, which is two numbers."""


class Internal(NamedTuple):
    """Key and value of an internal record; a part that could not be decoded is None, and `error`
    says why."""

    key: Content | None
    value: Content | None
    error: DissectError | None = None


def is_internal(topic: str | None, topic_id: bytes | None = None) -> bool:
    """Whether the records of the topic are Kafka's own."""
    if is_metadata_log(topic, topic_id):
        return True
    return topic in COORDINATOR_TOPICS or topic in FRAMED_TOPICS or bool(mirror_messages(topic))


def is_metadata_log(topic: str | None, topic_id: bytes | None = None) -> bool:
    """Whether the records of the topic are KRaft's metadata log."""
    return topic_id == CLUSTER_METADATA_ID or topic == METADATA_TOPIC


def decode(
    topic: str | None,
    key: bytes | None,
    value: bytes | None,
    *,
    topic_id: bytes | None = None,
    control: bool = False,
) -> Internal | None:
    """Decode a record's key and value; None when neither the topic is internal nor the batch a
    control batch."""
    if control:
        return decode_control(key, value)
    if topic in COORDINATOR_TOPICS:
        return _coordinator(str(topic), key, value)
    if (declared := mirror_messages(topic)) is not None:
        return _mirrored(declared, key, value)
    module = FRAMED_TOPICS.get(METADATA_TOPIC if is_metadata_log(topic, topic_id) else str(topic))
    return None if module is None else _framed(module, value)


@cache
def _declared(module: str, kind: str) -> dict[int, Message]:
    loaded = importlib.import_module(f"kafkascope.dissectors.messages.{module}")
    found = [each for each in vars(loaded).values() if isinstance(each, Message)]
    return {each.key: each for each in found if each.kind == kind and each.key is not None}


@cache
def _record_types(topic: str, kind: str) -> dict[int, Message]:
    return {
        key: each
        for module in COORDINATOR_TOPICS[topic]
        for key, each in _declared(module, kind).items()
    }


def _short(data: bytes, at: int, what: str) -> int:
    if at + 2 > len(data):
        raise Truncated(f"the {what} is missing", offset=at)
    value: int = _SHORT.unpack_from(data, at)[0]
    return value


def _content(declared: Message, version: int, data: bytes, at: int) -> Content:
    if version not in declared.versions:
        text = f"{declared.name} has versions {declared.versions}, not {version}"
        raise UnknownVersion(text, offset=at)
    body, end, layout = read_best(declared, version, data, at)
    releases = layout.message.releases
    note = f"layout of Kafka {releases}" if releases else ""
    return Content(declared.name, version, body, note, len(data) - end, layout)


def _coordinator(topic: str, key: bytes | None, value: bytes | None) -> Internal:
    decoded_key = decoded_value = None
    try:
        if key is None:
            raise Malformed("a record of a coordinator has a key")
        record_type = _short(key, 0, "record type")
        declared = _record_types(topic, "coordinator-key").get(record_type)
        if declared is None:
            raise Malformed(f"{topic} has no record type {record_type}")
        decoded_key = _content(declared, 0, key, 2)
        if value is not None:
            values = _record_types(topic, "coordinator-value")
            decoded_value = _content(values[record_type], _short(value, 0, "version"), value, 2)
    except DissectError as error:
        return Internal(decoded_key, decoded_value, error.without_frames())
    return Internal(decoded_key, decoded_value)


def _mirrored(declared: MirrorMessages, key: bytes | None, value: bytes | None) -> Internal:
    decoded_key = decoded_value = None
    try:
        if key is not None:
            decoded_key = _content(declared.key, 0, key, 0)
        if value is not None:
            at = 2 if declared.versioned else 0
            version = _short(value, 0, "version") if at else 0
            decoded_value = _content(declared.value, version, value, at)
    except DissectError as error:
        return Internal(decoded_key, decoded_value, error.without_frames())
    return Internal(decoded_key, decoded_value)


def _framed(module: str, value: bytes | None) -> Internal:
    if value is None:
        return Internal(None, None)
    try:
        frame, at = read_uvarint(value, 0)
        if frame > 1:
            raise UnknownVersion(f"frame version {frame} is not known")
        record_type, at = read_uvarint(value, at)
        version, at = read_uvarint(value, at)
        declared = _declared(module, "metadata").get(record_type)
        if declared is None:
            raise Malformed(f"no release has a metadata record of type {record_type}", offset=at)
        return Internal(None, _content(declared, version, value, at))
    except DissectError as error:
        return Internal(None, None, error.without_frames())


def masked_content(content: Content) -> Body:
    """Return the body with asterisks for its secrets."""
    if content.layout is None:
        return content.body
    return masked(content.layout, content.body)


def without_secrets(found: Internal, value: bytes | None) -> bytes | None:
    """Return the record's value with asterisks for the secrets that were found in it (SCRAM
    credentials and passwords of configs in the metadata log)."""
    content = found.value
    if value is None or content is None or content.layout is None:
        return value
    body = masked_content(content)
    if body == content.body:
        return value
    end = len(value) - content.surplus
    hidden = write_layout(content.layout, body)
    at = end - len(hidden)
    if at >= 0 and write_layout(content.layout, content.body) == value[at:end]:
        return value[:at] + hidden + value[end:]
    # Not written as we would: the places of the secrets are not known.
    for secret in secrets_of(content.layout, content.body):
        value = value.replace(secret, b"*" * len(secret))
    return value


# --- control records
# ---------------------------------------------------------------------------------------

_VALUES: Final = {
    "ABORT": "EndTxnMarker",
    "COMMIT": "EndTxnMarker",
    "LEADER_CHANGE": "LeaderChangeMessage",
    "SNAPSHOT_HEADER": "SnapshotHeaderRecord",
    "SNAPSHOT_FOOTER": "SnapshotFooterRecord",
    "KRAFT_VERSION": "KRaftVersionRecord",
    "KRAFT_VOTERS": "VotersRecord",
}
"""Message of the value, by name of the control record's type."""


def decode_control(key: bytes | None, value: bytes | None) -> Internal:
    """Decode a control record. Readers skip unknown types, which have a key only."""
    decoded_key = None
    try:
        data = key or b""
        version, number = _short(data, 0, "version"), _short(data, 2, "type")
        word = ENUMS["ControlRecordType"].get(number, str(number))
        body: dict[str, Any] = {"version": version, "type": number}
        decoded_key = Content("ControlRecordType", version, body, word, len(data) - 4)
        name = _VALUES.get(word)
        if name is None or value is None:
            return Internal(decoded_key, None)
        declared = message(name)
        # Only transaction markers have their version before them; the others carry it as a field.
        own = name == "EndTxnMarker"
        stated = _short(value, 0, "version")
        # Readers take a newer version for the newest that they know.
        high = declared.versions.high
        known = min(stated, high) if own or stated in declared.versions else high
        return Internal(decoded_key, _content(declared, known, value, 2 if own else 0))
    except DissectError as error:
        return Internal(decoded_key, None, error.without_frames())
