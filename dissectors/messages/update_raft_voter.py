"""UpdateRaftVoter (api key 82)."""

from kafkascope.dissectors.schema import (
    Array,
    Int16,
    Int32,
    String,
    Struct,
    Uint16,
    Uuid,
    request,
    response,
)

UPDATE_RAFT_VOTER_REQUEST = request("UpdateRaftVoter").of(
    String("cluster_id", "0+", nullable="0+", volatile=True, subject="clusterId"),
    Int32("current_leader_epoch", "0+", volatile=True),
    Int32("voter_id", "0+", subject="brokerId"),
    Uuid("voter_directory_id", "0+", volatile=True),
    Array("listeners", "0+").of(
        String("name", "0+", map_key=True, word="Listener"),
        String("host", "0+", subject="address"),
        Uint16("port", "0+"),
    ),
    Struct("kraft_version_feature", "0+").of(
        Int16("min_supported_version", "0+", enum="FeatureLevel kraft.version"),
        Int16("max_supported_version", "0+", enum="FeatureLevel kraft.version"),
    ),
)

UPDATE_RAFT_VOTER_RESPONSE = response("UpdateRaftVoter").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Struct("current_leader", "0+", tag=0).of(
        Int32("leader_id", "0+", default=-1, entity="brokerId"),
        Int32("leader_epoch", "0+", default=-1, volatile=True),
        String("host", "0+", subject="address"),
        Int32("port", "0+"),
    ),
)
