"""FindCoordinator (api key 10)."""

from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, String, request, response

FIND_COORDINATOR_REQUEST = request("FindCoordinator").of(
    String("key", "0-3", subject="coordinatorKey"),
    Int8("key_type", "1+", default=0, enum="CoordinatorType"),
    Array("coordinator_keys", "4+", subject="coordinatorKey").of(String),
)

FIND_COORDINATOR_RESPONSE = response("FindCoordinator").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Int16("error_code", "0-3", enum="ErrorCode"),
    String("error_message", "1-3", nullable="1+", subject="freeText"),
    Int32("node_id", "0-3", entity="brokerId"),
    String("host", "0-3", endpoint=True, subject="address"),
    Int32("port", "0-3", endpoint=True),
    Array("coordinators", "4+").of(
        String("key", "4+", subject="coordinatorKey"),
        Int32("node_id", "4+", entity="brokerId"),
        String("host", "4+", endpoint=True, subject="address"),
        Int32("port", "4+", endpoint=True),
        Int16("error_code", "4+", enum="ErrorCode"),
        String("error_message", "4+", nullable="4+", subject="freeText"),
    ),
)
