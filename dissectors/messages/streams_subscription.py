"""User data in the subscription of a Kafka Streams member."""

from kafkascope.dissectors.schema import Array, Bytes, Int8, Int32, Int64, String, Uuid, data

CLIENT_TAG = (
    Bytes("key", "11+", subject="freeText"),
    Bytes("value", "11+", subject="freeText"),
)

PARTITION_TO_OFFSET_SUM = (
    Int32("partition", "7+"),
    Int64("offset_sum", "7+"),
)

TASK_ID = (
    Int32("topic_group_id", "1+"),
    Int32("partition", "1+"),
)

TASK_OFFSET_SUM = (
    Int32("topic_group_id", "7+"),
    Int32("partition", "10+"),
    Int64("offset_sum", "10+"),
    String("named_topology", "10+", nullable="10+", subject="nodeName"),
    Array("partition_to_offset_sum", "7-9").of(*PARTITION_TO_OFFSET_SUM),
)

SUBSCRIPTION_INFO_DATA = data("SubscriptionInfoData", versions="1-11").of(
    Int32("version", "1+"),
    Int32("latest_supported_version", "3+", default=-1),
    Uuid("process_id", "1+", volatile=True),
    Array("prev_tasks", "1-6").of(*TASK_ID),
    Array("standby_tasks", "1-6").of(*TASK_ID),
    Bytes("user_end_point", "2+", subject="freeText"),
    Array("task_offset_sums", "7+").of(*TASK_OFFSET_SUM),
    Int8("unique_field", "8+"),
    Int32("error_code", "9+", enum="ErrorCode"),
    Array("client_tags", "11+").of(*CLIENT_TAG),
)
