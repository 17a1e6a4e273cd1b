"""Which broker a request is for: the leader of a partition, a coordinator, the controller, one."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Role(Enum):
    """The part that a broker plays for a request."""

    LEADER = "leader of the partition"
    GROUP = "coordinator of the group"
    TRANSACTION = "coordinator of the transactional id"
    CONTROLLER = "controller"
    NODE = "the same node"
    ALL = "every node, when the capture's cluster had but one"


_LISTS: Final = {
    Role.LEADER: """Produce Fetch ListOffsets OffsetForLeaderEpoch DeleteRecords DescribeProducers
        ShareFetch ShareAcknowledge""",
    Role.GROUP: """OffsetCommit OffsetFetch JoinGroup Heartbeat LeaveGroup SyncGroup DescribeGroups
        TxnOffsetCommit DeleteGroups OffsetDelete ConsumerGroupHeartbeat ConsumerGroupDescribe
        ShareGroupHeartbeat ShareGroupDescribe DescribeShareGroupOffsets AlterShareGroupOffsets
        DeleteShareGroupOffsets StreamsGroupHeartbeat StreamsGroupDescribe
        StreamsGroupTopologyDescriptionUpdate""",
    Role.TRANSACTION: """InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn
        DescribeTransactions""",
    Role.ALL: "ListGroups ListTransactions",
    Role.CONTROLLER: """CreateTopics DeleteTopics CreatePartitions ElectLeaders
        AlterPartitionReassignments ListPartitionReassignments CreateAcls DeleteAcls
        AlterClientQuotas AlterUserScramCredentials UpdateFeatures CreateDelegationToken
        RenewDelegationToken ExpireDelegationToken UnregisterBroker UnregisterController
        AddRaftVoter RemoveRaftVoter""",
}
_ROLES: Final = {name: role for role, names in _LISTS.items() for name in names.split()}


def role_of(api: str) -> Role:
    """Of an API; what is not listed goes to the node that got it in the capture."""
    return _ROLES.get(api, Role.NODE)
