"""BrokerHeartbeat (api key 63)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, Int64, Uuid, request, response

BROKER_HEARTBEAT_REQUEST = request("BrokerHeartbeat").of(
    Int32("broker_id", "0+", entity="brokerId"),
    Int64("broker_epoch", "0+", default=-1, volatile=True),
    Int64("current_metadata_offset", "0+"),
    Bool("want_fence", "0+"),
    Bool("want_shut_down", "0+"),
    Array("offline_log_dirs", "1+", tag=0).of(Uuid),
    Array("cordoned_log_dirs", "2+", nullable="2+", tag=1, default=None).of(Uuid),
)

BROKER_HEARTBEAT_RESPONSE = response("BrokerHeartbeat").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Bool("is_caught_up", "0+", default=False),
    Bool("is_fenced", "0+", default=True),
    Bool("should_shut_down", "0+"),
)
