"""IncrementalAlterConfigs (api key 44)."""

from kafkascope.dissectors.schema import Array, Bool, Int8, Int16, Int32, String, request, response

INCREMENTAL_ALTER_CONFIGS_REQUEST = request("IncrementalAlterConfigs").of(
    Array("resources", "0+").of(
        Int8("resource_type", "0+", map_key=True, enum="ConfigResourceType"),
        String("resource_name", "0+", map_key=True, subject="resourceName"),
        Array("configs", "0+").of(
            String("name", "0+", map_key=True, word="ConfigName"),
            Int8("config_operation", "0+", map_key=True, enum="ConfigOperation"),
            String("value", "0+", nullable="0+", subject="configValue"),
        ),
    ),
    Bool("validate_only", "0+"),
)

INCREMENTAL_ALTER_CONFIGS_RESPONSE = response("IncrementalAlterConfigs").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("responses", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
        Int8("resource_type", "0+", enum="ConfigResourceType"),
        String("resource_name", "0+", subject="resourceName"),
    ),
)
