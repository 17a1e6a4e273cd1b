"""DescribeClientQuotas (api key 48)."""

from kafkascope.dissectors.messages.common_structs import QUOTA_ENTITY
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    String,
    request,
    response,
)

DESCRIBE_CLIENT_QUOTAS_REQUEST = request("DescribeClientQuotas").of(
    Array("components", "0+").of(
        String("entity_type", "0+", enum="ClientQuotaEntityType"),
        Int8("match_type", "0+", enum="ClientQuotaMatchType"),
        String("match", "0+", nullable="0+", subject="resourceName"),
    ),
    Bool("strict", "0+"),
)

DESCRIBE_CLIENT_QUOTAS_RESPONSE = response("DescribeClientQuotas").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
    Array("entries", "0+", nullable="0+").of(
        Array("entity", "0+").of(*QUOTA_ENTITY),
        Array("values", "0+").of(
            String("key", "0+", word="QuotaKey"),
            Float64("value", "0+"),
        ),
    ),
)
