"""PushTelemetry (api key 72)."""

from kafkascope.dissectors.schema import Bool, Bytes, Int8, Int16, Int32, Uuid, request, response

PUSH_TELEMETRY_REQUEST = request("PushTelemetry").of(
    Uuid("client_instance_id", "0+", volatile=True),
    Int32("subscription_id", "0+", volatile=True),
    Bool("terminating", "0+"),
    Int8("compression_type", "0+", enum="CompressionType"),
    Bytes("metrics", "0+"),
)

PUSH_TELEMETRY_RESPONSE = response("PushTelemetry").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
)
