"""UnregisterController (api key 94)."""

from kafkascope.dissectors.schema import Int16, Int32, String, request, response

UNREGISTER_CONTROLLER_REQUEST = request("UnregisterController").of(
    Int32("controller_id", "0+", subject="brokerId"),
)

UNREGISTER_CONTROLLER_RESPONSE = response("UnregisterController").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
)
