"""Structs that several messages have, like `commonStructs` of Kafka's own definitions."""

from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, Int64, String, Uint16, Uuid

TOPIC_PARTITIONS = (
    Uuid("topic_id", "0+", volatile=True),
    Array("partitions", "0+").of(Int32),
)

NAMED_TOPIC_PARTITIONS = (
    Uuid("topic_id", "0+", volatile=True),
    String("topic_name", "0+", entity="topicName"),
    Array("partitions", "0+").of(Int32),
)

LISTENER = (
    String("name", "0+", map_key=True, word="Listener"),
    String("host", "0+", subject="address"),
    Uint16("port", "0+"),
    Int16("security_protocol", "0+", enum="SecurityProtocol"),
)

FEATURE = (
    String("name", "0+", map_key=True, word="Feature"),
    Int16("min_supported_version", "0+", enum="FeatureLevel"),
    Int16("max_supported_version", "0+", enum="FeatureLevel"),
)

SHARE_STATE_BATCH = (
    Int64("first_offset", "0+"),
    Int64("last_offset", "0+"),
    Int8("delivery_state", "0+", enum="ShareRecordState"),
    Int16("delivery_count", "0+"),
)

SHARE_STATE_RESULT = (
    Uuid("topic_id", "0+", volatile=True),
    Array("partitions", "0+").of(
        Int32("partition", "0+"),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    ),
)

SHARE_STATE_QUERY = (
    Uuid("topic_id", "0+", volatile=True),
    Array("partitions", "0+").of(
        Int32("partition", "0+"),
        Int32("leader_epoch", "0+", volatile=True),
    ),
)

ACKNOWLEDGEMENT_BATCH = (
    Int64("first_offset", "0+"),
    Int64("last_offset", "0+"),
    Array("acknowledge_types", "0+", enum="AcknowledgeType").of(Int8),
)

SHARE_NODE_ENDPOINT = (
    Int32("node_id", "0+", entity="brokerId", map_key=True),
    String("host", "0+", endpoint=True, subject="address"),
    Int32("port", "0+", endpoint=True),
    String("rack", "0+", nullable="0+", default=None, subject="rack"),
)

QUOTA_ENTITY = (
    String("entity_type", "0+", enum="ClientQuotaEntityType"),
    String("entity_name", "0+", nullable="0+", subject="resourceName"),
)

ACL_PERMISSION = (
    String("principal", "0+", subject="principal"),
    String("host", "0+", subject="address"),
    Int8("operation", "0+", enum="AclOperation"),
    Int8("permission_type", "0+", enum="AclPermissionType"),
)

ACL_FILTER = (
    Int8("resource_type_filter", "0+", enum="AclResourceType"),
    String("resource_name_filter", "0+", nullable="0+", subject="resourceName"),
    Int8("pattern_type_filter", "1+", default=3, enum="AclPatternType"),
    String("principal_filter", "0+", nullable="0+", subject="principal"),
    String("host_filter", "0+", nullable="0+", subject="address"),
    Int8("operation", "0+", enum="AclOperation"),
    Int8("permission_type", "0+", enum="AclPermissionType"),
)

STREAMS_ENDPOINT = (
    String("host", "0+", subject="address"),
    Uint16("port", "0+"),
)

CLIENT_TAG = (
    String("key", "0+", subject="clientTag"),
    String("value", "0+", subject="clientTag"),
)

TOPIC_CONFIG = (
    String("key", "0+", word="ConfigName"),
    String("value", "0+", subject="configValue"),
)

TASK_IDS = (
    String("subtopology_id", "0+", subject="subtopologyId"),
    Array("partitions", "0+").of(Int32),
)

TASK_OFFSET = (
    String("subtopology_id", "0+", subject="subtopologyId"),
    Int32("partition", "0+"),
    Int64("offset", "0+"),
)

STREAMS_TOPIC = (
    String("name", "0+", entity="topicName"),
    Int32("partitions", "0+"),
    Int16("replication_factor", "0+"),
    Array("topic_configs", "0+").of(*TOPIC_CONFIG),
)

COPARTITION_GROUP = (
    Array("source_topics", "0+").of(Int16),
    Array("source_topic_regex", "0+").of(Int16),
    Array("repartition_source_topics", "0+").of(Int16),
)

TOPIC_METADATA = (
    Uuid("topic_id", "0+", volatile=True),
    String("topic_name", "0+", subject="topicName"),
    Int32("num_partitions", "0+"),
    Array("partition_metadata", "0+").of(
        Int32("partition", "0+"),
        Array("racks", "0+", subject="rack").of(String),
    ),
)

GROUP_KEY = (String("group_id", "0+", subject="groupId"),)

MEMBER_KEY = (
    *GROUP_KEY,
    String("member_id", "0+", volatile=True, subject="memberId"),
)

TARGET_ASSIGNMENT_METADATA = (
    Int32("assignment_epoch", "0+", volatile=True),
    Int64("assignment_timestamp", "0+", tag=0, default=0, unit="time_ms", volatile=True),
)

QUORUM_NODE_ENDPOINT = (
    Int32("node_id", "1+", entity="brokerId", map_key=True),
    String("host", "1+", subject="address"),
    Uint16("port", "1+"),
)

QUORUM_PARTITION = (
    Int32("partition_index", "0+"),
    Int16("error_code", "0+", enum="ErrorCode"),
    Int32("leader_id", "0+", entity="brokerId"),
    Int32("leader_epoch", "0+", volatile=True),
)

QUORUM_EPOCH_RESPONSE = (
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("topics", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Array("partitions", "0+").of(*QUORUM_PARTITION),
    ),
    Array("node_endpoints", "1+", tag=0).of(*QUORUM_NODE_ENDPOINT),
)

QUORUM_LISTENER = (
    String("name", "1+", map_key=True, word="Listener"),
    String("host", "1+", subject="address"),
    Uint16("port", "1+"),
)

DESCRIBED_GROUP = (
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    String("group_id", "0+", entity="groupId"),
    String("group_state", "0+", enum="GroupState"),
    Int32("group_epoch", "0+", volatile=True),
    Int32("assignment_epoch", "0+", volatile=True),
)
