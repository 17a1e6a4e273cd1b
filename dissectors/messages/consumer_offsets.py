"""Records of `__consumer_offsets`: offset commits and classic groups."""

from kafkascope.dissectors.schema import (
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
    String("group", "0+", subject="groupId"),
    String("topic", "0+", subject="topicName"),
    Int32("partition", "0+"),
)

LEGACY_OFFSET_COMMIT_VALUE = coordinator_value("LegacyOffsetCommitValue", key=0, versions="0").of(
    Int64("offset", "0+"),
    String("metadata", "0+", subject="freeText"),
    Int64("commit_timestamp", "0+", unit="time_ms", volatile=True),
)

OFFSET_COMMIT_KEY = coordinator_key("OffsetCommitKey", key=1, versions="0").of(
    String("group", "0+", subject="groupId"),
    String("topic", "0+", subject="topicName"),
    Int32("partition", "0+"),
)

OFFSET_COMMIT_VALUE = coordinator_value(
    "OffsetCommitValue", key=1, versions="0-4", flexible="4+"
).of(
    Int64("offset", "0+"),
    Int32("leader_epoch", "3+", default=-1, volatile=True),
    String("metadata", "0+", subject="freeText"),
    Int64("commit_timestamp", "0+", unit="time_ms", volatile=True),
    Int64("expire_timestamp", "1", default=-1, unit="time_ms", volatile=True),
    Uuid("topic_id", "4+", tag=0, volatile=True),
)

GROUP_METADATA_KEY = coordinator_key("GroupMetadataKey", key=2, versions="0").of(
    String("group", "0+", subject="groupId"),
)

MEMBER_METADATA = (
    String("member_id", "0+", volatile=True, subject="memberId"),
    String("group_instance_id", "3+", nullable="3+", default=None, subject="memberId"),
    String("client_id", "0+", subject="clientId"),
    String("client_host", "0+", subject="address"),
    Int32("rebalance_timeout", "1+", default=-1),
    Int32("session_timeout", "0+"),
    Bytes("subscription", "0+"),
    Bytes("assignment", "0+"),
)

GROUP_METADATA_VALUE = coordinator_value(
    "GroupMetadataValue", key=2, versions="0-4", flexible="4+"
).of(
    String("protocol_type", "0+", enum="ClassicGroupProtocolType"),
    Int32("generation", "0+", volatile=True),
    String("protocol", "0+", nullable="0+", word="ProtocolName"),
    String("leader", "0+", nullable="0+", subject="memberId"),
    Int64("current_state_timestamp", "2+", default=-1, unit="time_ms", volatile=True),
    Array("members", "0+").of(*MEMBER_METADATA),
)
