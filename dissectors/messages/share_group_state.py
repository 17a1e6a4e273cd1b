"""Records of `__share_group_state` (KIP-932)."""

from kafkascope.dissectors.messages.common_structs import SHARE_STATE_BATCH
from kafkascope.dissectors.schema import (
    Array,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    coordinator_key,
    coordinator_value,
    variant,
)

SHARE_PARTITION_KEY = (
    String("group_id", "0+", subject="groupId"),
    Uuid("topic_id", "0+", volatile=True),
    Int32("partition", "0+"),
)

SHARE_SNAPSHOT_KEY = coordinator_key("ShareSnapshotKey", key=0, versions="0").of(
    *SHARE_PARTITION_KEY
)

SHARE_SNAPSHOT_VALUE = (
    coordinator_value("ShareSnapshotValue", key=0, versions="0", flexible="0+")
    .of(
        Int32("snapshot_epoch", "0+", volatile=True),
        Int32("state_epoch", "0+", volatile=True),
        Int32("leader_epoch", "0+", volatile=True),
        Int64("start_offset", "0+"),
        Int32("delivery_complete_count", "0+", tag=0, default=-1),
        Int64("create_timestamp", "0+", unit="time_ms", volatile=True),
        Int64("write_timestamp", "0+", unit="time_ms", volatile=True),
        Array("state_batches", "0+").of(*SHARE_STATE_BATCH),
    )
    .but(
        variant(0, releases="4.0.0-4.0.1", flexible=True).of(
            Uint16("snapshot_epoch", "0+", volatile=True),
            Int32("state_epoch", "0+", volatile=True),
            Int32("leader_epoch", "0+", volatile=True),
            Int64("start_offset", "0+"),
            Array("state_batches", "0+").of(*SHARE_STATE_BATCH),
        ),
    )
)

SHARE_UPDATE_KEY = coordinator_key("ShareUpdateKey", key=1, versions="0").of(*SHARE_PARTITION_KEY)

SHARE_UPDATE_VALUE = (
    coordinator_value("ShareUpdateValue", key=1, versions="0", flexible="0+")
    .of(
        Int32("snapshot_epoch", "0+", volatile=True),
        Int32("leader_epoch", "0+", volatile=True),
        Int64("start_offset", "0+"),
        Int32("delivery_complete_count", "0+", tag=0, default=-1),
        Array("state_batches", "0+").of(*SHARE_STATE_BATCH),
    )
    .but(
        variant(0, releases="4.0.0-4.0.1", flexible=True).of(
            Uint16("snapshot_epoch", "0+", volatile=True),
            Int32("leader_epoch", "0+", volatile=True),
            Int64("start_offset", "0+"),
            Array("state_batches", "0+").of(*SHARE_STATE_BATCH),
        ),
    )
)
