"""DescribeAcls (api key 29)."""

from dissectors.schema import Array, Int8, Int16, Int32, String, request, response

DESCRIBE_ACLS_REQUEST = request("DescribeAcls", key=29, versions="0-3", flexible="2+").of(
    Int8("resource_type_filter", "0+"),
    String("resource_name_filter", "0+", nullable="0+"),
    Int8("pattern_type_filter", "1+", default=3),
    String("principal_filter", "0+", nullable="0+"),
    String("host_filter", "0+", nullable="0+"),
    Int8("operation", "0+"),
    Int8("permission_type", "0+"),
)

DESCRIBE_ACLS_RESPONSE = response("DescribeAcls", key=29, versions="0-3", flexible="2+").of(
    Int32("throttle_time_ms", "0+"),
    Int16("error_code", "0+"),
    String("error_message", "0+", nullable="0+"),
    Array("resources", "0+").of(
        Int8("resource_type", "0+"),
        String("resource_name", "0+"),
        Int8("pattern_type", "1+", default=3),
        Array("acls", "0+").of(
            String("principal", "0+"),
            String("host", "0+"),
            Int8("operation", "0+"),
            Int8("permission_type", "0+"),
        ),
    ),
)
