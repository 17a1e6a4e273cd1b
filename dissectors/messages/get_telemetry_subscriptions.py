"""GetTelemetrySubscriptions (api key 71)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    String,
    Uuid,
    request,
    response,
)

GET_TELEMETRY_SUBSCRIPTIONS_REQUEST = request("GetTelemetrySubscriptions").of(
    Uuid("client_instance_id", "0+", volatile=True),
)

GET_TELEMETRY_SUBSCRIPTIONS_RESPONSE = response("GetTelemetrySubscriptions").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Uuid("client_instance_id", "0+", volatile=True),
    Int32("subscription_id", "0+", volatile=True),
    Array("accepted_compression_types", "0+", enum="CompressionType").of(Int8),
    Int32("push_interval_ms", "0+"),
    Int32("telemetry_max_bytes", "0+"),
    Bool("delta_temporality", "0+"),
    Array("requested_metrics", "0+", word="MetricName").of(String),
)
