"""ListConfigResources (api key 74)."""

from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, String, request, response

LIST_CONFIG_RESOURCES_REQUEST = request("ListConfigResources").of(
    Array("resource_types", "1+", enum="ConfigResourceType").of(Int8),
)

LIST_CONFIG_RESOURCES_RESPONSE = response("ListConfigResources").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("config_resources", "0+").of(
        String("resource_name", "0+", subject="resourceName"),
        Int8("resource_type", "1+", default=16, enum="ConfigResourceType"),
    ),
)
