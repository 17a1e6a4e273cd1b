"""StreamsGroupHeartbeat (api key 88)."""

from kafkascope.dissectors.messages.common_structs import (
    CLIENT_TAG,
    COPARTITION_GROUP,
    STREAMS_ENDPOINT,
    STREAMS_TOPIC,
    TASK_IDS,
    TASK_OFFSET,
)
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    request,
    response,
)

STREAMS_GROUP_HEARTBEAT_REQUEST = request("StreamsGroupHeartbeat").of(
    String("group_id", "0+", entity="groupId"),
    String("member_id", "0+", volatile=True, subject="memberId"),
    Int32("member_epoch", "0+", enum="StreamsGroupMemberEpoch", volatile=True),
    Int32("endpoint_information_epoch", "0+"),
    String("instance_id", "0+", nullable="0+", default=None, subject="memberId"),
    String("rack_id", "0+", nullable="0+", default=None, subject="rack"),
    Int32("rebalance_timeout_ms", "0+", default=-1),
    Struct("topology", "0+", nullable="0+", default=None).of(
        Int32("epoch", "0+"),
        Array("subtopologies", "0+").of(
            String("subtopology_id", "0+", subject="subtopologyId"),
            Array("source_topics", "0+", entity="topicName").of(String),
            Array("source_topic_regex", "0+", subject="topicName").of(String),
            Array("state_changelog_topics", "0+").of(*STREAMS_TOPIC),
            Array("repartition_sink_topics", "0+", entity="topicName").of(String),
            Array("repartition_source_topics", "0+").of(*STREAMS_TOPIC),
            Array("copartition_groups", "0+").of(*COPARTITION_GROUP),
        ),
    ),
    Array("active_tasks", "0+", nullable="0+", default=None).of(*TASK_IDS),
    Array("standby_tasks", "0+", nullable="0+", default=None).of(*TASK_IDS),
    Array("warmup_tasks", "0+", nullable="0+", default=None).of(*TASK_IDS),
    String("process_id", "0+", nullable="0+", default=None, subject="memberId"),
    Struct("user_endpoint", "0+", nullable="0+", default=None).of(*STREAMS_ENDPOINT),
    Array("client_tags", "0+", nullable="0+", default=None).of(*CLIENT_TAG),
    Array("task_offsets", "0+", nullable="0+", default=None).of(*TASK_OFFSET),
    Array("task_end_offsets", "0+", nullable="0+", default=None).of(*TASK_OFFSET),
    Bool("shutdown_application", "0+", default=False),
)

STATUS = (
    Int8("status_code", "0+", enum="StreamsGroupHeartbeatStatus"),
    String("status_detail", "0+", subject="freeText"),
)

TOPIC_PARTITION = (
    String("topic", "0+", entity="topicName"),
    Array("partitions", "0+").of(Int32),
)

STREAMS_GROUP_HEARTBEAT_RESPONSE = response("StreamsGroupHeartbeat").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    String("member_id", "0+", volatile=True, subject="memberId"),
    Int32("member_epoch", "0+", enum="StreamsGroupMemberEpoch", volatile=True),
    Int32("heartbeat_interval_ms", "0+"),
    Int32("acceptable_recovery_lag_legacy", "0"),
    Int32("task_offset_interval_ms", "0+"),
    Int64("acceptable_recovery_lag", "1+", default=-1),
    Array("status", "0+", nullable="0+").of(*STATUS),
    Array("active_tasks", "0+", nullable="0+", default=None).of(*TASK_IDS),
    Array("standby_tasks", "0+", nullable="0+", default=None).of(*TASK_IDS),
    Array("warmup_tasks", "0+", nullable="0+", default=None).of(*TASK_IDS),
    Bool("topology_description_required", "1+", default=False),
    Int32("endpoint_information_epoch", "0+"),
    Array("partitions_by_user_endpoint", "0+", nullable="0+", default=None).of(
        Struct("user_endpoint", "0+").of(*STREAMS_ENDPOINT),
        Array("active_partitions", "0+").of(*TOPIC_PARTITION),
        Array("standby_partitions", "0+").of(*TOPIC_PARTITION),
    ),
)
