"""DeleteShareGroupOffsets (api key 92)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, Uuid, request, response

DELETE_SHARE_GROUP_OFFSETS_REQUEST = request("DeleteShareGroupOffsets").of(
    String("group_id", "0+", entity="groupId"),
    Array("topics", "0+").of(String("topic_name", "0+", entity="topicName")),
)

DELETE_SHARE_GROUP_OFFSETS_RESPONSE = response("DeleteShareGroupOffsets").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    Array("responses", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Uuid("topic_id", "0+", volatile=True),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    ),
)
