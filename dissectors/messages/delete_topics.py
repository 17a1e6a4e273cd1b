"""DeleteTopics (api key 20)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, Uuid, request, response

DELETE_TOPICS_REQUEST = request("DeleteTopics").of(
    Array("topics", "6+").of(
        String("name", "6+", nullable="6+", default=None, entity="topicName"),
        Uuid("topic_id", "6+", volatile=True),
    ),
    Array("topic_names", "0-5", entity="topicName").of(String),
    Int32("timeout_ms", "0+"),
)

DELETE_TOPICS_RESPONSE = response("DeleteTopics").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Array("responses", "0+").of(
        String("name", "0+", nullable="6+", entity="topicName", map_key=True),
        Uuid("topic_id", "6+", volatile=True),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "5+", nullable="5+", default=None, subject="freeText"),
    ),
)
