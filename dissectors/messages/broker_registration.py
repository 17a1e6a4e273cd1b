"""BrokerRegistration (api key 62)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    request,
    response,
)

BROKER_REGISTRATION_REQUEST = request(
    "BrokerRegistration", key=62, versions="0-4", flexible="0+"
).of(
    Int32("broker_id", "0+", entity="brokerId"),
    String("cluster_id", "0+", volatile=True, subject="clusterId"),
    Uuid("incarnation_id", "0+", volatile=True),
    Array("listeners", "0+").of(
        String("name", "0+", map_key=True, word="Listener"),
        String("host", "0+", subject="address"),
        Uint16("port", "0+"),
        Int16("security_protocol", "0+", enum="SecurityProtocol"),
    ),
    Array("features", "0+").of(
        String("name", "0+", map_key=True, word="Feature"),
        Int16("min_supported_version", "0+", enum="FeatureLevel"),
        Int16("max_supported_version", "0+", enum="FeatureLevel"),
    ),
    String("rack", "0+", nullable="0+", subject="rack"),
    Bool("is_migrating_zk_broker", "1+", default=False),
    Array("log_dirs", "2+").of(Uuid),
    Int64("previous_broker_epoch", "3+", default=-1, volatile=True),
)

BROKER_REGISTRATION_RESPONSE = response(
    "BrokerRegistration", key=62, versions="0-4", flexible="0+"
).of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Int64("broker_epoch", "0+", default=-1, volatile=True),
)
