"""AlterConfigs (api key 33)."""

from dissectors.schema import Array, Bool, Int8, Int16, Int32, String, request, response

ALTER_CONFIGS_REQUEST = request("AlterConfigs", key=33, versions="0-2", flexible="2+").of(
    Array("resources", "0+").of(
        Int8("resource_type", "0+", map_key=True),
        String("resource_name", "0+", map_key=True),
        Array("configs", "0+").of(
            String("name", "0+", map_key=True),
            String("value", "0+", nullable="0+"),
        ),
    ),
    Bool("validate_only", "0+"),
)

ALTER_CONFIGS_RESPONSE = response("AlterConfigs", key=33, versions="0-2", flexible="2+").of(
    Int32("throttle_time_ms", "0+"),
    Array("responses", "0+").of(
        Int16("error_code", "0+"),
        String("error_message", "0+", nullable="0+"),
        Int8("resource_type", "0+"),
        String("resource_name", "0+"),
    ),
)
