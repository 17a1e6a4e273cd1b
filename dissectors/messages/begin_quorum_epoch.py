"""BeginQuorumEpoch (api key 53)."""

from kafkascope.dissectors.messages.common_structs import QUORUM_EPOCH_RESPONSE, QUORUM_LISTENER
from kafkascope.dissectors.schema import Array, Int32, String, Uuid, request, response

BEGIN_QUORUM_EPOCH_REQUEST = request("BeginQuorumEpoch").of(
    String("cluster_id", "0+", nullable="0+", default=None, volatile=True, subject="clusterId"),
    Int32("voter_id", "1+", default=-1, entity="brokerId"),
    Array("topics", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Uuid("voter_directory_id", "1+", volatile=True),
            Int32("leader_id", "0+", entity="brokerId"),
            Int32("leader_epoch", "0+", volatile=True),
        ),
    ),
    Array("leader_endpoints", "1+").of(*QUORUM_LISTENER),
)

BEGIN_QUORUM_EPOCH_RESPONSE = response("BeginQuorumEpoch").of(*QUORUM_EPOCH_RESPONSE)
