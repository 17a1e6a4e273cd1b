"""UpdateMetadata (api key 6)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    request,
    response,
)

UPDATE_METADATA_PARTITION_STATE = (
    String("topic_name", "0-4", entity="topicName"),
    Int32("partition_index", "0+"),
    Int32("controller_epoch", "0+", volatile=True),
    Int32("leader", "0+", entity="brokerId", enum="PartitionLeader"),
    Int32("leader_epoch", "0+", volatile=True),
    Array("isr", "0+", entity="brokerId").of(Int32),
    Int32("zk_version", "0+"),
    Array("replicas", "0+", entity="brokerId").of(Int32),
    Array("offline_replicas", "4+", entity="brokerId").of(Int32),
)

UPDATE_METADATA_REQUEST = request("UpdateMetadata").of(
    Int32("controller_id", "0+", entity="brokerId"),
    Bool("is_kraft_controller", "8+", default=False),
    Int8("type", "8+", tag=0, default=0, enum="UpdateMetadataType"),
    Int32("controller_epoch", "0+", volatile=True),
    Int64("broker_epoch", "5+", default=-1, volatile=True),
    Array("ungrouped_partition_states", "0-4").of(*UPDATE_METADATA_PARTITION_STATE),
    Array("topic_states", "5+").of(
        String("topic_name", "5+", entity="topicName"),
        Uuid("topic_id", "7+", volatile=True),
        Array("partition_states", "5+").of(*UPDATE_METADATA_PARTITION_STATE),
    ),
    Array("live_brokers", "0+").of(
        Int32("id", "0+", entity="brokerId"),
        String("v0_host", "0", subject="address"),
        Int32("v0_port", "0"),
        Array("endpoints", "1+").of(
            Int32("port", "1+"),
            String("host", "1+", subject="address"),
            String("listener", "3+", word="Listener"),
            Int16("security_protocol", "1+", enum="SecurityProtocol"),
        ),
        String("rack", "2+", nullable="2+", subject="rack"),
    ),
)

UPDATE_METADATA_RESPONSE = response("UpdateMetadata").of(
    Int16("error_code", "0+", enum="ErrorCode"),
)
