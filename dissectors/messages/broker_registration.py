"""BrokerRegistration (api key 62)."""

from kafkascope.dissectors.messages.common_structs import FEATURE, LISTENER
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    request,
    response,
)

BROKER_REGISTRATION_REQUEST = request("BrokerRegistration").of(
    Int32("broker_id", "0+", entity="brokerId"),
    String("cluster_id", "0+", volatile=True, subject="clusterId"),
    Uuid("incarnation_id", "0+", volatile=True),
    Array("listeners", "0+").of(*LISTENER),
    Array("features", "0+").of(*FEATURE),
    String("rack", "0+", nullable="0+", subject="rack"),
    Bool("is_migrating_zk_broker", "1+", default=False),
    Array("log_dirs", "2+").of(Uuid),
    Int64("previous_broker_epoch", "3+", default=-1, volatile=True),
)

BROKER_REGISTRATION_RESPONSE = response("BrokerRegistration").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Int64("broker_epoch", "0+", default=-1, volatile=True),
)
