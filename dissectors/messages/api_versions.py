"""ApiVersions (api key 18)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, Int64, String, request, response

API_VERSIONS_REQUEST = request("ApiVersions").of(
    String("client_software_name", "3+", word="ClientSoftware"),
    String("client_software_version", "3+", word="SoftwareVersion"),
    String("cluster_id", "5+", nullable="5+", default=None, volatile=True, subject="clusterId"),
    Int32("node_id", "5+", default=-1, subject="brokerId"),
)

API_VERSIONS_RESPONSE = response("ApiVersions").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("api_keys", "0+").of(
        Int16("api_key", "0+", map_key=True, enum="ApiKey"),
        Int16("min_version", "0+"),
        Int16("max_version", "0+"),
    ),
    Int32("throttle_time_ms", "1+", volatile=True),
    Array("supported_features", "3+", tag=0).of(
        String("name", "3+", map_key=True, word="Feature"),
        Int16("min_version", "3+", enum="FeatureLevel"),
        Int16("max_version", "3+", enum="FeatureLevel"),
    ),
    Int64("finalized_features_epoch", "3+", tag=1, default=-1, volatile=True),
    Array("finalized_features", "3+", tag=2).of(
        String("name", "3+", map_key=True, word="Feature"),
        Int16("max_version_level", "3+", enum="FeatureLevel"),
        Int16("min_version_level", "3+", enum="FeatureLevel"),
    ),
    Bool("zk_migration_ready", "3+", tag=3, default=False),
)
