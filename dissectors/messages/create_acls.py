"""CreateAcls (api key 30)."""

from kafkascope.dissectors.messages.common_structs import ACL_PERMISSION
from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, String, request, response

CREATE_ACLS_REQUEST = request("CreateAcls").of(
    Array("creations", "0+").of(
        Int8("resource_type", "0+", enum="AclResourceType"),
        String("resource_name", "0+", subject="resourceName"),
        Int8("resource_pattern_type", "1+", default=3, enum="AclPatternType"),
        *ACL_PERMISSION,
    ),
)

CREATE_ACLS_RESPONSE = response("CreateAcls").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("results", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
    ),
)
