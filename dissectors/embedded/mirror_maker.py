"""Declares the records of MirrorMaker 2's internal topics (KIP-382)."""

from __future__ import annotations

from typing import NamedTuple

from kafkascope.dissectors.schema import Int32, Int64, Message, String, data


class MirrorMessages(NamedTuple):
    """The key and the value of a topic's records."""

    key: Message
    value: Message
    versioned: bool = True
    """Whether the value has its version, an int16, before it."""


_PARTITION = (String("topic", "0+", entity="topicName"), Int32("partition", "0+"))
_OFFSETS = (Int64("upstream_offset", "0+"), Int64("offset", "0+", doc="in the target cluster"))

_OFFSET_SYNC = MirrorMessages(
    data("OffsetSyncKey", versions="0").of(*_PARTITION),
    data("OffsetSyncValue", versions="0").of(*_OFFSETS),
    versioned=False,
)
_CHECKPOINT = MirrorMessages(
    data("CheckpointKey", versions="0").of(String("group", "0+", subject="groupId"), *_PARTITION),
    data("CheckpointValue", versions="0").of(
        *_OFFSETS, String("metadata", "0+", subject="freeText")
    ),
)


def mirror_messages(topic: str | None) -> MirrorMessages | None:
    """Return the declarations of a topic, by the names of the default replication policy; None for
    all others, and for `heartbeats`, which anybody may call a topic."""
    if topic is None or not topic.endswith(".internal"):
        return None
    if topic.startswith("mm2-offset-syncs."):
        return _OFFSET_SYNC
    return _CHECKPOINT if topic.endswith(".checkpoints.internal") else None
