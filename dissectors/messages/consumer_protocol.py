"""What members of a classic consumer group tell each other inside JoinGroup and SyncGroup."""

from kafkascope.dissectors.schema import Array, Bytes, Int32, String, data

CONSUMER_PROTOCOL_ASSIGNMENT = data("ConsumerProtocolAssignment", versions="0-3").of(
    Array("assigned_partitions", "0+").of(
        String("topic", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(Int32),
    ),
    Bytes("user_data", "0+", nullable="0+", default=None, subject="freeText"),
)

CONSUMER_PROTOCOL_SUBSCRIPTION = data("ConsumerProtocolSubscription", versions="0-3").of(
    Array("topics", "0+", subject="topicName").of(String),
    Bytes("user_data", "0+", nullable="0+", default=None, subject="freeText"),
    Array("owned_partitions", "1+").of(
        String("topic", "1+", entity="topicName", map_key=True),
        Array("partitions", "1+").of(Int32),
    ),
    Int32("generation_id", "2+", default=-1, volatile=True),
    String("rack_id", "3+", nullable="3+", default=None, subject="rack"),
)
