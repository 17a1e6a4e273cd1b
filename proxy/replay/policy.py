"""What may be sent to a live broker. Every API stands on one list; a test holds that."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkascope.dissectors.registry import APIS


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


READS: Final = _names(
    """Fetch ListOffsets Metadata OffsetFetch FindCoordinator DescribeGroups ListGroups ApiVersions
    OffsetForLeaderEpoch DescribeAcls DescribeConfigs DescribeLogDirs DescribeDelegationToken
    ListPartitionReassignments DescribeClientQuotas DescribeUserScramCredentials DescribeQuorum
    DescribeCluster DescribeProducers DescribeTransactions ListTransactions ConsumerGroupDescribe
    GetTelemetrySubscriptions ListConfigResources DescribeTopicPartitions ShareGroupDescribe
    StreamsGroupDescribe DescribeShareGroupOffsets"""
)
"""Change nothing, so they are sent without being asked twice."""

WRITES: Final = _names(
    """Produce CreateTopics DeleteTopics DeleteRecords InitProducerId AddPartitionsToTxn EndTxn
    CreateAcls DeleteAcls AlterConfigs IncrementalAlterConfigs AlterReplicaLogDirs CreatePartitions
    CreateDelegationToken RenewDelegationToken ExpireDelegationToken ElectLeaders
    AlterPartitionReassignments AlterClientQuotas AlterUserScramCredentials UpdateFeatures
    UnregisterBroker PushTelemetry AddRaftVoter RemoveRaftVoter UnregisterController"""
)
"""Need --allow-writes."""

GROUPS: Final = _names(
    """JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit TxnOffsetCommit AddOffsetsToTxn
    OffsetDelete DeleteGroups ConsumerGroupHeartbeat ShareGroupHeartbeat ShareFetch ShareAcknowledge
    StreamsGroupHeartbeat StreamsGroupTopologyDescriptionUpdate AlterShareGroupOffsets
    DeleteShareGroupOffsets"""
)
"""Move a group: need --allow-writes, and --group-prefix or --same-groups."""

OURS: Final = frozenset({"SaslHandshake", "SaslAuthenticate"})
"""Done afresh, with credentials that are given."""

BROKERS: Final = _names(
    """LeaderAndIsr StopReplica UpdateMetadata ControlledShutdown WriteTxnMarkers Vote
    BeginQuorumEpoch EndQuorumEpoch AlterPartition Envelope FetchSnapshot BrokerRegistration
    BrokerHeartbeat AllocateProducerIds ControllerRegistration AssignReplicasToDirs UpdateRaftVoter
    InitializeShareGroupState ReadShareGroupState WriteShareGroupState DeleteShareGroupState
    ReadShareGroupStateSummary"""
)
"""Brokers among themselves: nobody but a broker sends them."""


class Permit(NamedTuple):
    """What the user allowed."""

    writes: bool = False
    groups: bool = False
    """A prefix for groups was given, or the same groups are wanted."""


def refusal(key: int | None, body: dict[str, Any] | None, permit: Permit) -> str:
    """Why a request is not sent; empty when it is."""
    api = None if key is None else APIS.get(key)
    if api is None:
        return "not a request of a known API"
    name = api.name
    if name in OURS:
        return "authentication is done afresh"
    if name in BROKERS or _of_replica(body):
        return "brokers among themselves"
    if body is None:
        return "the request cannot be decoded"
    if name in READS:
        return ""
    if not permit.writes:
        return "changes something (--allow-writes)"
    if name in GROUPS and not permit.groups:
        return "moves a group (--group-prefix P or --same-groups)"
    return ""


def _of_replica(body: dict[str, Any] | None) -> bool:
    """Fetch, ListOffsets and OffsetForLeaderEpoch of a follower."""
    if body is None:
        return False
    state = body.get("replica_state")
    replica = state["replica_id"] if isinstance(state, dict) else body.get("replica_id", -1)
    return isinstance(replica, int) and replica >= 0
