"""ShareAcknowledge (api key 79)."""

from kafkascope.dissectors.messages.common_structs import ACKNOWLEDGEMENT_BATCH, SHARE_NODE_ENDPOINT
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    String,
    Struct,
    Uuid,
    request,
    response,
)

SHARE_ACKNOWLEDGE_REQUEST = request("ShareAcknowledge").of(
    String("group_id", "0+", nullable="0+", default=None, entity="groupId"),
    String("member_id", "0+", nullable="0+", volatile=True, subject="memberId"),
    Int32("share_session_epoch", "0+", enum="ShareSessionEpoch", volatile=True),
    Bool("is_renew_ack", "2+", default=False),
    Array("topics", "0+").of(
        Uuid("topic_id", "0+", map_key=True, volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+", map_key=True),
            Array("acknowledgement_batches", "0+").of(*ACKNOWLEDGEMENT_BATCH),
        ),
    ),
)

SHARE_ACKNOWLEDGE_RESPONSE = response("ShareAcknowledge").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    Int32("acquisition_lock_timeout_ms", "2+"),
    Array("responses", "0+").of(
        Uuid("topic_id", "0+", map_key=True, volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
            Struct("current_leader", "0+").of(
                Int32("leader_id", "0+", subject="brokerId"),
                Int32("leader_epoch", "0+", volatile=True),
            ),
        ),
    ),
    Array("node_endpoints", "0+").of(*SHARE_NODE_ENDPOINT),
)
