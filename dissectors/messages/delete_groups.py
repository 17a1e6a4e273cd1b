"""DeleteGroups (api key 42)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, request, response

DELETE_GROUPS_REQUEST = request("DeleteGroups").of(
    Array("groups_names", "0+", entity="groupId").of(String),
)

DELETE_GROUPS_RESPONSE = response("DeleteGroups").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("results", "0+").of(
        String("group_id", "0+", entity="groupId", map_key=True),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "3+", nullable="3+", default=None, subject="freeText"),
    ),
)
