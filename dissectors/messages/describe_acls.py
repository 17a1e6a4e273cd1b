"""DescribeAcls (api key 29)."""

from kafkascope.dissectors.messages.common_structs import ACL_FILTER, ACL_PERMISSION
from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, String, request, response

DESCRIBE_ACLS_REQUEST = request("DescribeAcls").of(*ACL_FILTER)

DESCRIBE_ACLS_RESPONSE = response("DescribeAcls").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
    Array("resources", "0+").of(
        Int8("resource_type", "0+", enum="AclResourceType"),
        String("resource_name", "0+", subject="resourceName"),
        Int8("pattern_type", "1+", default=3, enum="AclPatternType"),
        Array("acls", "0+").of(*ACL_PERMISSION),
    ),
)
