"""Records of `__remote_log_metadata` (tiered storage, KIP-405)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Bytes,
    Int8,
    Int32,
    Int64,
    String,
    Struct,
    Uuid,
    metadata,
    variant,
)

TOPIC_ID_PARTITION = (
    String("name", "0+", subject="topicName"),
    Uuid("id", "0+", volatile=True),
    Int32("partition", "0+"),
)

SEGMENT_ID = (
    Struct("topic_id_partition", "0+").of(*TOPIC_ID_PARTITION),
    Uuid("id", "0+", volatile=True),
)

SEGMENT = (
    Int64("start_offset", "0+"),
    Int64("end_offset", "0+"),
    Int32("broker_id", "0+", subject="brokerId"),
    Int64("max_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Int64("event_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Array("segment_leader_epochs", "0+").of(
        Int32("leader_epoch", "0+", volatile=True), Int64("offset", "0+")
    ),
    Int32("segment_size_in_bytes", "0+"),
)

SEGMENT_STATE = (
    Bytes("custom_metadata", "0+", nullable="0+", default=None, subject="freeText"),
    Int8("remote_log_segment_state", "0+", enum="RemoteLogSegmentState"),
)

REMOTE_LOG_SEGMENT_METADATA_RECORD = (
    metadata("RemoteLogSegmentMetadataRecord", key=0, versions="0", flexible="0+")
    .of(
        Struct("remote_log_segment_id", "0+").of(*SEGMENT_ID),
        *SEGMENT,
        *SEGMENT_STATE,
        Bool("txn_index_empty", "0+", tag=0),
    )
    .but(
        variant(0, releases="3.0.0-3.5.2", flexible=True).of(
            Struct("remote_log_segment_id", "0+").of(*SEGMENT_ID),
            *SEGMENT,
            Int8("remote_log_segment_state", "0+", enum="RemoteLogSegmentState"),
        ),
    )
)

REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD = (
    metadata("RemoteLogSegmentMetadataUpdateRecord", key=1, versions="0", flexible="0+")
    .of(
        Struct("remote_log_segment_id", "0+").of(*SEGMENT_ID),
        Int32("broker_id", "0+", subject="brokerId"),
        Int64("event_timestamp_ms", "0+", unit="time_ms", volatile=True),
        *SEGMENT_STATE,
    )
    .but(
        variant(0, releases="3.0.0-3.5.2", flexible=True).of(
            Struct("remote_log_segment_id", "0+").of(*SEGMENT_ID),
            Int32("broker_id", "0+", subject="brokerId"),
            Int64("event_timestamp_ms", "0+", unit="time_ms", volatile=True),
            Int8("remote_log_segment_state", "0+", enum="RemoteLogSegmentState"),
        ),
    )
)

REMOTE_PARTITION_DELETE_METADATA_RECORD = metadata(
    "RemotePartitionDeleteMetadataRecord", key=2, versions="0", flexible="0+"
).of(
    Struct("topic_id_partition", "0+").of(*TOPIC_ID_PARTITION),
    Int32("broker_id", "0+", subject="brokerId"),
    Int64("event_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Int8("remote_partition_delete_state", "0+", enum="RemotePartitionDeleteState"),
)

REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD = (
    metadata("RemoteLogSegmentMetadataSnapshotRecord", key=3, versions="0", flexible="0+")
    .of(
        Uuid("segment_id", "0+", volatile=True),
        *SEGMENT,
        *SEGMENT_STATE,
        Bool("txn_index_empty", "0+", tag=0),
    )
    .but(
        variant(0, releases="3.1.0-3.5.2", flexible=True).of(
            Uuid("segment_id", "0+", volatile=True),
            *SEGMENT,
            Int8("remote_log_segment_state", "0+", enum="RemoteLogSegmentState"),
        ),
    )
)
