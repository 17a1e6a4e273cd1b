"""DescribeConfigs (api key 32)."""

from kafkascope.dissectors.schema import Array, Bool, Int8, Int16, Int32, String, request, response

DESCRIBE_CONFIGS_REQUEST = request("DescribeConfigs").of(
    Array("resources", "0+").of(
        Int8("resource_type", "0+", enum="ConfigResourceType"),
        String("resource_name", "0+", subject="resourceName"),
        Array("configuration_keys", "0+", nullable="0+", word="ConfigName").of(String),
    ),
    Bool("include_synonyms", "1+", default=False),
    Bool("include_documentation", "3+", default=False),
)

DESCRIBE_CONFIGS_RESPONSE = response("DescribeConfigs").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("results", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
        Int8("resource_type", "0+", enum="ConfigResourceType"),
        String("resource_name", "0+", subject="resourceName"),
        Array("configs", "0+").of(
            String("name", "0+", word="ConfigName"),
            String("value", "0+", nullable="0+", subject="configValue"),
            Bool("read_only", "0+"),
            Bool("is_default", "0"),
            Int8("config_source", "1+", default=-1, enum="ConfigSource"),
            Bool("is_sensitive", "0+"),
            Array("synonyms", "1+").of(
                String("name", "1+", word="ConfigName"),
                String("value", "1+", nullable="1+", subject="configValue"),
                Int8("source", "1+", enum="ConfigSource"),
            ),
            Int8("config_type", "3+", default=0, enum="ConfigType"),
            String("documentation", "3+", nullable="3+", subject="freeText"),
        ),
    ),
)
