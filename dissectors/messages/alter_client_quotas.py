"""AlterClientQuotas (api key 49)."""

from kafkascope.dissectors.messages.common_structs import QUOTA_ENTITY
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Float64,
    Int16,
    Int32,
    String,
    request,
    response,
)

ALTER_CLIENT_QUOTAS_REQUEST = request("AlterClientQuotas").of(
    Array("entries", "0+").of(
        Array("entity", "0+").of(*QUOTA_ENTITY),
        Array("ops", "0+").of(
            String("key", "0+", word="QuotaKey"),
            Float64("value", "0+"),
            Bool("remove", "0+"),
        ),
    ),
    Bool("validate_only", "0+"),
)

ALTER_CLIENT_QUOTAS_RESPONSE = response("AlterClientQuotas").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("entries", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
        Array("entity", "0+").of(*QUOTA_ENTITY),
    ),
)
