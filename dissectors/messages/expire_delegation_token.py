"""ExpireDelegationToken (api key 40)."""

from kafkascope.dissectors.schema import Bytes, Int16, Int32, Int64, request, response

EXPIRE_DELEGATION_TOKEN_REQUEST = request("ExpireDelegationToken").of(
    Bytes("hmac", "0+", secret=True, volatile=True),
    Int64("expiry_time_period_ms", "0+"),
)

EXPIRE_DELEGATION_TOKEN_RESPONSE = response("ExpireDelegationToken").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Int64("expiry_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Int32("throttle_time_ms", "0+", volatile=True),
)
