"""AddRaftVoter (api key 80)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    String,
    Uint16,
    Uuid,
    request,
    response,
)

ADD_RAFT_VOTER_REQUEST = request("AddRaftVoter").of(
    String("cluster_id", "0+", nullable="0+", volatile=True, subject="clusterId"),
    Int32("timeout_ms", "0+"),
    Int32("voter_id", "0+", subject="brokerId"),
    Uuid("voter_directory_id", "0+", volatile=True),
    Array("listeners", "0+").of(
        String("name", "0+", map_key=True, word="Listener"),
        String("host", "0+", subject="address"),
        Uint16("port", "0+"),
    ),
    Bool("ack_when_committed", "1+", default=True),
)

ADD_RAFT_VOTER_RESPONSE = response("AddRaftVoter").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
)
