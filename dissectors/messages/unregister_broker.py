"""UnregisterBroker (api key 64)."""

from kafkascope.dissectors.schema import Int16, Int32, String, request, response

UNREGISTER_BROKER_REQUEST = request("UnregisterBroker").of(
    Int32("broker_id", "0+", entity="brokerId"),
)

UNREGISTER_BROKER_RESPONSE = response("UnregisterBroker").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
)
