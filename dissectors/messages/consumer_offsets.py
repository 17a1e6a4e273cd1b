"""Records of `__consumer_offsets`: offset commits and classic groups."""

from dissectors.schema import (
    Array,
    Bytes,
    Int32,
    Int64,
    String,
    Uuid,
    coordinator_key,
    coordinator_value,
)

LEGACY_OFFSET_COMMIT_KEY = coordinator_key("LegacyOffsetCommitKey", key=0, versions="0").of(
    String("group", "0+"),
    String("topic", "0+"),
    Int32("partition", "0+"),
)

LEGACY_OFFSET_COMMIT_VALUE = coordinator_value("LegacyOffsetCommitValue", key=0, versions="0").of(
    Int64("offset", "0+"),
    String("metadata", "0+"),
    Int64("commit_timestamp", "0+"),
)

OFFSET_COMMIT_KEY = coordinator_key("OffsetCommitKey", key=1, versions="0").of(
    String("group", "0+"),
    String("topic", "0+"),
    Int32("partition", "0+"),
)

OFFSET_COMMIT_VALUE = coordinator_value(
    "OffsetCommitValue", key=1, versions="0-4", flexible="4+"
).of(
    Int64("offset", "0+"),
    Int32("leader_epoch", "3+", default=-1),
    String("metadata", "0+"),
    Int64("commit_timestamp", "0+"),
    Int64("expire_timestamp", "1", default=-1),
    Uuid("topic_id", "4+", tag=0),
)

GROUP_METADATA_KEY = coordinator_key("GroupMetadataKey", key=2, versions="0").of(
    String("group", "0+"),
)

MEMBER_METADATA = (
    String("member_id", "0+"),
    String("group_instance_id", "3+", nullable="3+", default=None),
    String("client_id", "0+"),
    String("client_host", "0+"),
    Int32("rebalance_timeout", "1+", default=-1),
    Int32("session_timeout", "0+"),
    Bytes("subscription", "0+"),
    Bytes("assignment", "0+"),
)

GROUP_METADATA_VALUE = coordinator_value(
    "GroupMetadataValue", key=2, versions="0-4", flexible="4+"
).of(
    String("protocol_type", "0+"),
    Int32("generation", "0+"),
    String("protocol", "0+", nullable="0+"),
    String("leader", "0+", nullable="0+"),
    Int64("current_state_timestamp", "2+", default=-1),
    Array("members", "0+").of(*MEMBER_METADATA),
)
