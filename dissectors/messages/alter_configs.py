"""AlterConfigs (api key 33)."""

from kafkascope.dissectors.schema import Array, Bool, Int8, Int16, Int32, String, request, response

ALTER_CONFIGS_REQUEST = request("AlterConfigs").of(
    Array("resources", "0+").of(
        Int8("resource_type", "0+", map_key=True, enum="ConfigResourceType"),
        String("resource_name", "0+", map_key=True, subject="resourceName"),
        Array("configs", "0+").of(
            String("name", "0+", map_key=True, word="ConfigName"),
            String("value", "0+", nullable="0+", subject="configValue"),
        ),
    ),
    Bool("validate_only", "0+"),
)

ALTER_CONFIGS_RESPONSE = response("AlterConfigs").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("responses", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
        Int8("resource_type", "0+", enum="ConfigResourceType"),
        String("resource_name", "0+", subject="resourceName"),
    ),
)
