"""DeleteAcls (api key 31)."""

from kafkascope.dissectors.messages.common_structs import ACL_FILTER, ACL_PERMISSION
from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, String, request, response

DELETE_ACLS_REQUEST = request("DeleteAcls").of(Array("filters", "0+").of(*ACL_FILTER))

DELETE_ACLS_RESPONSE = response("DeleteAcls").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("filter_results", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
        Array("matching_acls", "0+").of(
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", subject="freeText"),
            Int8("resource_type", "0+", enum="AclResourceType"),
            String("resource_name", "0+", subject="resourceName"),
            Int8("pattern_type", "1+", default=3, enum="AclPatternType"),
            *ACL_PERMISSION,
        ),
    ),
)
