"""RemoveRaftVoter (api key 81)."""

from kafkascope.dissectors.schema import Int16, Int32, String, Uuid, request, response

REMOVE_RAFT_VOTER_REQUEST = request("RemoveRaftVoter").of(
    String("cluster_id", "0+", nullable="0+", volatile=True, subject="clusterId"),
    Int32("voter_id", "0+", subject="brokerId"),
    Uuid("voter_directory_id", "0+", volatile=True),
)

REMOVE_RAFT_VOTER_RESPONSE = response("RemoveRaftVoter").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
)
