"""ListGroups (api key 16)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, request, response

LIST_GROUPS_REQUEST = request("ListGroups").of(
    Array("states_filter", "4+", enum="GroupState").of(String),
    Array("types_filter", "5+", enum="GroupType").of(String),
)

LIST_GROUPS_RESPONSE = response("ListGroups").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("groups", "0+").of(
        String("group_id", "0+", entity="groupId"),
        String("protocol_type", "0+", enum="ClassicGroupProtocolType"),
        String("group_state", "4+", enum="GroupState"),
        String("group_type", "5+", enum="GroupType"),
    ),
)
