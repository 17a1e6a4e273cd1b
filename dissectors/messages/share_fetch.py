"""ShareFetch (api key 78)."""

from kafkascope.dissectors.messages.common_structs import (
    ACKNOWLEDGEMENT_BATCH,
    SHARE_NODE_ENDPOINT,
    TOPIC_PARTITIONS,
)
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    Uuid,
    request,
    response,
)

SHARE_FETCH_REQUEST = request("ShareFetch").of(
    String("group_id", "0+", nullable="0+", default=None, entity="groupId"),
    String("member_id", "0+", nullable="0+", volatile=True, subject="memberId"),
    Int32("share_session_epoch", "0+", enum="ShareSessionEpoch", volatile=True),
    Int32("max_wait_ms", "0+"),
    Int32("min_bytes", "0+"),
    Int32("max_bytes", "0+", default=0x7FFFFFFF),
    Int32("max_records", "1+"),
    Int32("batch_size", "1+"),
    Int8("share_acquire_mode", "2+", default=0, enum="ShareAcquireMode"),
    Bool("is_renew_ack", "2+", default=False),
    Array("topics", "0+").of(
        Uuid("topic_id", "0+", map_key=True, volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+", map_key=True),
            Int32("partition_max_bytes", "0"),
            Array("acknowledgement_batches", "0+").of(*ACKNOWLEDGEMENT_BATCH),
        ),
    ),
    Array("forgotten_topics_data", "0+").of(*TOPIC_PARTITIONS),
)

SHARE_FETCH_RESPONSE = response("ShareFetch").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    Int32("acquisition_lock_timeout_ms", "1+"),
    Array("responses", "0+").of(
        Uuid("topic_id", "0+", map_key=True, volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
            Int16("acknowledge_error_code", "0+", enum="ErrorCode"),
            String(
                "acknowledge_error_message", "0+", nullable="0+", default=None, subject="freeText"
            ),
            Struct("current_leader", "0+").of(
                Int32("leader_id", "0+", subject="brokerId"),
                Int32("leader_epoch", "0+", volatile=True),
            ),
            Records("records", "0+", nullable="0"),
            Array("acquired_records", "0+").of(
                Int64("first_offset", "0+"),
                Int64("last_offset", "0+"),
                Int16("delivery_count", "0+"),
            ),
        ),
    ),
    Array("node_endpoints", "0+").of(*SHARE_NODE_ENDPOINT),
)
