"""Vote (api key 52)."""

from kafkascope.dissectors.messages.common_structs import QUORUM_NODE_ENDPOINT, QUORUM_PARTITION
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

VOTE_REQUEST = request("Vote").of(
    String("cluster_id", "0+", nullable="0+", default=None, volatile=True, subject="clusterId"),
    Int32("voter_id", "1+", default=-1, entity="brokerId"),
    Array("topics", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int32("replica_epoch", "0+", volatile=True),
            Int32("replica_id", "0+", entity="brokerId"),
            Uuid("replica_directory_id", "1+", volatile=True),
            Uuid("voter_directory_id", "1+", volatile=True),
            Int32("last_offset_epoch", "0+", volatile=True),
            Int64("last_offset", "0+"),
            Bool("pre_vote", "2+"),
        ),
    ),
)

VOTE_RESPONSE = response("Vote").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("topics", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            *QUORUM_PARTITION,
            Bool("vote_granted", "0+"),
        ),
    ),
    Array("node_endpoints", "1+", tag=0).of(*QUORUM_NODE_ENDPOINT),
)
