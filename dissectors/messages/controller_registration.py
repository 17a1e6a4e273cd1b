"""ControllerRegistration (api key 70)."""

from kafkascope.dissectors.messages.common_structs import FEATURE, LISTENER
from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, String, Uuid, request, response

CONTROLLER_REGISTRATION_REQUEST = request("ControllerRegistration").of(
    Int32("controller_id", "0+", subject="brokerId"),
    Uuid("incarnation_id", "0+", volatile=True),
    Bool("zk_migration_ready", "0+"),
    Array("listeners", "0+").of(*LISTENER),
    Array("features", "0+").of(*FEATURE),
)

CONTROLLER_REGISTRATION_RESPONSE = response("ControllerRegistration").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
)
