"""EndQuorumEpoch (api key 54)."""

from kafkascope.dissectors.messages.common_structs import QUORUM_EPOCH_RESPONSE, QUORUM_LISTENER
from kafkascope.dissectors.schema import Array, Int32, String, Uuid, request, response, variant

END_QUORUM_EPOCH_REQUEST = (
    request("EndQuorumEpoch")
    .of(
        String("cluster_id", "0+", nullable="0+", default=None, volatile=True, subject="clusterId"),
        Array("topics", "0+").of(
            String("topic_name", "0+", entity="topicName"),
            Array("partitions", "0+").of(
                Int32("partition_index", "0+"),
                Int32("leader_id", "0+", entity="brokerId"),
                Int32("leader_epoch", "0+", volatile=True),
                Array("preferred_successors", "0", subject="brokerId").of(Int32),
                Array("preferred_candidates", "1+").of(
                    Int32("candidate_id", "1+", entity="brokerId"),
                    Uuid("candidate_directory_id", "1+", volatile=True),
                ),
            ),
        ),
        Array("leader_endpoints", "1+").of(*QUORUM_LISTENER),
    )
    .but(
        variant(0, releases="2.7.0-2.7.2", flexible=False).of(
            String(
                "cluster_id", "0+", nullable="0+", default=None, volatile=True, subject="clusterId"
            ),
            Array("topics", "0+").of(
                String("topic_name", "0+", entity="topicName"),
                Array("partitions", "0+").of(
                    Int32("partition_index", "0+"),
                    Int32("replica_id", "0+", subject="brokerId"),
                    Int32("leader_id", "0+", subject="brokerId"),
                    Int32("leader_epoch", "0+", volatile=True),
                    Array("preferred_successors", "0+", subject="brokerId").of(Int32),
                ),
            ),
        ),
    )
)

END_QUORUM_EPOCH_RESPONSE = response("EndQuorumEpoch").of(*QUORUM_EPOCH_RESPONSE)
