"""Tells which module declares which message. Modules load on first use: nothing here imports them.

`APIS` has the facts of each API that are needed without its messages; `DATA` has the modules of all
other messages. A test loads all of them and compares both lists with the folder.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from kafkascope.dissectors.values import Versions

Effect = Literal["read", "write", "group", "login", "brokers"]
"""What a request does: changes nothing, changes something, moves a group, authenticates, or is for
brokers and controllers among themselves."""
Server = Literal["node", "leader", "group", "transaction", "controller", "all"]
"""Which broker serves it: the one that is asked, the leader of the partition, the coordinator of
the group or of the transactional id, the controller (any broker hands it on), each its own part."""


class Api(NamedTuple):
    """An API: a request and its response, over all versions."""

    key: int
    name: str
    versions: Versions
    flexible: Versions
    """Versions with compact types and tags."""
    effect: Effect
    server: Server
    endpoints: tuple[str, ...]
    """Structs of the response with a node id, a host and a port that clients connect to; "" is the
    response itself."""

    @property
    def module(self) -> str:
        """Name of the module with its messages: DescribeAcls is in `messages/describe_acls.py`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()


def _api(
    key: int, name: str, versions: str, flexible: str, effect: Effect, server: Server, *nodes: str
) -> Api:
    return Api(key, name, Versions.parse(versions), Versions.parse(flexible), effect, server, nodes)


_APIS: Final = (
    _api(0, "Produce", "0-13", "9+", "write", "leader", "node_endpoints"),
    _api(1, "Fetch", "0-18", "12+", "read", "leader", "node_endpoints"),
    _api(2, "ListOffsets", "0-11", "6+", "read", "leader"),
    _api(3, "Metadata", "0-13", "9+", "read", "node", "brokers"),
    _api(4, "LeaderAndIsr", "0-7", "4+", "brokers", "node"),
    _api(5, "StopReplica", "0-4", "2+", "brokers", "node"),
    _api(6, "UpdateMetadata", "0-8", "6+", "brokers", "node"),
    _api(7, "ControlledShutdown", "0-3", "3+", "brokers", "node"),
    _api(8, "OffsetCommit", "0-10", "8+", "group", "group"),
    _api(9, "OffsetFetch", "0-10", "6+", "read", "group"),
    _api(10, "FindCoordinator", "0-6", "3+", "read", "node", "", "coordinators"),
    _api(11, "JoinGroup", "0-9", "6+", "group", "group"),
    _api(12, "Heartbeat", "0-4", "4+", "group", "group"),
    _api(13, "LeaveGroup", "0-5", "4+", "group", "group"),
    _api(14, "SyncGroup", "0-5", "4+", "group", "group"),
    _api(15, "DescribeGroups", "0-6", "5+", "read", "group"),
    _api(16, "ListGroups", "0-5", "3+", "read", "all"),
    _api(17, "SaslHandshake", "0-1", "none", "login", "node"),
    _api(18, "ApiVersions", "0-5", "3+", "read", "node"),
    _api(19, "CreateTopics", "0-7", "5+", "write", "controller"),
    _api(20, "DeleteTopics", "0-6", "4+", "write", "controller"),
    _api(21, "DeleteRecords", "0-2", "2+", "write", "leader"),
    _api(22, "InitProducerId", "0-6", "2+", "write", "transaction"),
    _api(23, "OffsetForLeaderEpoch", "0-4", "4+", "read", "leader"),
    _api(24, "AddPartitionsToTxn", "0-5", "3+", "write", "transaction"),
    _api(25, "AddOffsetsToTxn", "0-4", "3+", "group", "transaction"),
    _api(26, "EndTxn", "0-5", "3+", "write", "transaction"),
    _api(27, "WriteTxnMarkers", "0-2", "1+", "brokers", "node"),
    _api(28, "TxnOffsetCommit", "0-6", "3+", "group", "group"),
    _api(29, "DescribeAcls", "0-3", "2+", "read", "node"),
    _api(30, "CreateAcls", "0-3", "2+", "write", "controller"),
    _api(31, "DeleteAcls", "0-3", "2+", "write", "controller"),
    _api(32, "DescribeConfigs", "0-4", "4+", "read", "node"),
    _api(33, "AlterConfigs", "0-2", "2+", "write", "node"),
    _api(34, "AlterReplicaLogDirs", "0-2", "2+", "write", "node"),
    _api(35, "DescribeLogDirs", "0-5", "2+", "read", "node"),
    _api(36, "SaslAuthenticate", "0-2", "2+", "login", "node"),
    _api(37, "CreatePartitions", "0-3", "2+", "write", "controller"),
    _api(38, "CreateDelegationToken", "0-3", "2+", "write", "controller"),
    _api(39, "RenewDelegationToken", "0-2", "2+", "write", "controller"),
    _api(40, "ExpireDelegationToken", "0-2", "2+", "write", "controller"),
    _api(41, "DescribeDelegationToken", "0-3", "2+", "read", "node"),
    _api(42, "DeleteGroups", "0-3", "2+", "group", "group"),
    _api(43, "ElectLeaders", "0-2", "2+", "write", "controller"),
    _api(44, "IncrementalAlterConfigs", "0-1", "1+", "write", "node"),
    _api(45, "AlterPartitionReassignments", "0-1", "0+", "write", "controller"),
    _api(46, "ListPartitionReassignments", "0", "0+", "read", "controller"),
    _api(47, "OffsetDelete", "0", "none", "group", "group"),
    _api(48, "DescribeClientQuotas", "0-1", "1+", "read", "node"),
    _api(49, "AlterClientQuotas", "0-1", "1+", "write", "controller"),
    _api(50, "DescribeUserScramCredentials", "0", "0+", "read", "node"),
    _api(51, "AlterUserScramCredentials", "0", "0+", "write", "controller"),
    _api(52, "Vote", "0-2", "0+", "brokers", "node"),
    _api(53, "BeginQuorumEpoch", "0-1", "1+", "brokers", "node"),
    _api(54, "EndQuorumEpoch", "0-1", "1+", "brokers", "node"),
    _api(55, "DescribeQuorum", "0-2", "0+", "read", "node"),
    _api(56, "AlterPartition", "0-3", "0+", "brokers", "node"),
    _api(57, "UpdateFeatures", "0-2", "0+", "write", "controller"),
    _api(58, "Envelope", "0", "0+", "brokers", "node"),
    _api(59, "FetchSnapshot", "0-1", "0+", "brokers", "node"),
    _api(60, "DescribeCluster", "0-2", "0+", "read", "node", "brokers"),
    _api(61, "DescribeProducers", "0", "0+", "read", "leader"),
    _api(62, "BrokerRegistration", "0-4", "0+", "brokers", "node"),
    _api(63, "BrokerHeartbeat", "0-2", "0+", "brokers", "node"),
    _api(64, "UnregisterBroker", "0", "0+", "write", "controller"),
    _api(65, "DescribeTransactions", "0", "0+", "read", "transaction"),
    _api(66, "ListTransactions", "0-2", "0+", "read", "all"),
    _api(67, "AllocateProducerIds", "0", "0+", "brokers", "node"),
    _api(68, "ConsumerGroupHeartbeat", "0-1", "0+", "group", "group"),
    _api(69, "ConsumerGroupDescribe", "0-1", "0+", "read", "group"),
    _api(70, "ControllerRegistration", "0", "0+", "brokers", "node"),
    _api(71, "GetTelemetrySubscriptions", "0", "0+", "read", "node"),
    _api(72, "PushTelemetry", "0", "0+", "write", "node"),
    _api(73, "AssignReplicasToDirs", "0", "0+", "brokers", "node"),
    _api(74, "ListConfigResources", "0-1", "0+", "read", "node"),
    _api(75, "DescribeTopicPartitions", "0", "0+", "read", "node"),
    _api(76, "ShareGroupHeartbeat", "0-1", "0+", "group", "group"),
    _api(77, "ShareGroupDescribe", "0-1", "0+", "read", "group"),
    _api(78, "ShareFetch", "0-2", "0+", "group", "leader", "node_endpoints"),
    _api(79, "ShareAcknowledge", "0-2", "0+", "group", "leader", "node_endpoints"),
    _api(80, "AddRaftVoter", "0-1", "0+", "write", "controller"),
    _api(81, "RemoveRaftVoter", "0", "0+", "write", "controller"),
    _api(82, "UpdateRaftVoter", "0", "0+", "brokers", "node"),
    _api(83, "InitializeShareGroupState", "0", "0+", "brokers", "node"),
    _api(84, "ReadShareGroupState", "0", "0+", "brokers", "node"),
    _api(85, "WriteShareGroupState", "0-1", "0+", "brokers", "node"),
    _api(86, "DeleteShareGroupState", "0", "0+", "brokers", "node"),
    _api(87, "ReadShareGroupStateSummary", "0-1", "0+", "brokers", "node"),
    _api(88, "StreamsGroupHeartbeat", "0-1", "0+", "group", "group"),
    _api(89, "StreamsGroupDescribe", "0-1", "0+", "read", "group"),
    _api(90, "DescribeShareGroupOffsets", "0-1", "0+", "read", "group"),
    _api(91, "AlterShareGroupOffsets", "0", "0+", "group", "group"),
    _api(92, "DeleteShareGroupOffsets", "0", "0+", "group", "group"),
    _api(93, "StreamsGroupTopologyDescriptionUpdate", "0", "0+", "group", "group"),
    _api(94, "UnregisterController", "0", "0+", "write", "controller"),
)
APIS: Final = {api.key: api for api in _APIS}
"""Declared APIs by key."""

_DATA: Final = (
    ("header", "RequestHeader ResponseHeader"),
    (
        "consumer_offsets",
        "LegacyOffsetCommitKey LegacyOffsetCommitValue OffsetCommitKey OffsetCommitValue "
        "GroupMetadataKey GroupMetadataValue",
    ),
    (
        "consumer_offsets_consumer",
        "ConsumerGroupMetadataKey ConsumerGroupMetadataValue ConsumerGroupPartitionMetadataKey "
        "ConsumerGroupPartitionMetadataValue ConsumerGroupMemberMetadataKey "
        "ConsumerGroupMemberMetadataValue ConsumerGroupTargetAssignmentMetadataKey "
        "ConsumerGroupTargetAssignmentMetadataValue ConsumerGroupTargetAssignmentMemberKey "
        "ConsumerGroupTargetAssignmentMemberValue ConsumerGroupCurrentMemberAssignmentKey "
        "ConsumerGroupCurrentMemberAssignmentValue",
    ),
    (
        "consumer_offsets_share",
        "ShareGroupPartitionMetadataKey ShareGroupPartitionMetadataValue "
        "ShareGroupMemberMetadataKey ShareGroupMemberMetadataValue ShareGroupMetadataKey "
        "ShareGroupMetadataValue ShareGroupTargetAssignmentMetadataKey "
        "ShareGroupTargetAssignmentMetadataValue ShareGroupTargetAssignmentMemberKey "
        "ShareGroupTargetAssignmentMemberValue ShareGroupCurrentMemberAssignmentKey "
        "ShareGroupCurrentMemberAssignmentValue ShareGroupStatePartitionMetadataKey "
        "ShareGroupStatePartitionMetadataValue",
    ),
    (
        "consumer_offsets_consumer",
        "ConsumerGroupRegularExpressionKey ConsumerGroupRegularExpressionValue",
    ),
    (
        "consumer_offsets_streams",
        "StreamsGroupMetadataKey StreamsGroupMetadataValue StreamsGroupMemberMetadataKey "
        "StreamsGroupMemberMetadataValue StreamsGroupTargetAssignmentMetadataKey "
        "StreamsGroupTargetAssignmentMetadataValue StreamsGroupTargetAssignmentMemberKey "
        "StreamsGroupTargetAssignmentMemberValue StreamsGroupCurrentMemberAssignmentKey "
        "StreamsGroupCurrentMemberAssignmentValue StreamsGroupTopologyKey "
        "StreamsGroupTopologyValue",
    ),
    ("share_group_state", "ShareSnapshotKey ShareSnapshotValue ShareUpdateKey ShareUpdateValue"),
    ("transaction_state", "TransactionLogKey TransactionLogValue"),
    ("storage_files", "AbortedTxn"),
    ("consumer_protocol", "ConsumerProtocolAssignment ConsumerProtocolSubscription"),
    ("control_records", "ControlRecordTypeSchema"),
    ("principal", "DefaultPrincipalData"),
    (
        "control_records",
        "EndTxnMarker KRaftVersionRecord LeaderChangeMessage SnapshotFooterRecord "
        "SnapshotHeaderRecord VotersRecord",
    ),
    ("storage_files", "QuorumStateData ProducerSnapshot"),
    ("streams_subscription", "SubscriptionInfoData"),
    (
        "cluster_metadata",
        "RegisterBrokerRecord UnregisterBrokerRecord TopicRecord PartitionRecord ConfigRecord "
        "PartitionChangeRecord AccessControlRecord FenceBrokerRecord UnfenceBrokerRecord "
        "RemoveTopicRecord DelegationTokenRecord UserScramCredentialRecord FeatureLevelRecord "
        "ClientQuotaRecord ProducerIdsRecord RemoveFeatureLevelRecord "
        "BrokerRegistrationChangeRecord AccessControlEntryRecord RemoveAccessControlEntryRecord "
        "NoOpRecord ZkMigrationStateRecord RemoveUserScramCredentialRecord BeginTransactionRecord "
        "EndTransactionRecord AbortTransactionRecord RemoveDelegationTokenRecord "
        "RegisterControllerRecord ClearElrRecord UnregisterControllerRecord",
    ),
    (
        "remote_log_metadata",
        "RemoteLogSegmentMetadataRecord RemoteLogSegmentMetadataUpdateRecord "
        "RemotePartitionDeleteMetadataRecord RemoteLogSegmentMetadataSnapshotRecord",
    ),
    (
        "zookeeper",
        "zk.RequestHeader zk.ReplyHeader zk.Nothing zk.ConnectRequest zk.ConnectResponse "
        "zk.AuthPacket zk.CreateRequest zk.CreateTTLRequest zk.CreateResponse zk.Create2Response "
        "zk.DeleteRequest zk.CheckVersionRequest zk.ExistsRequest zk.ExistsResponse "
        "zk.GetDataRequest zk.GetDataResponse zk.SetDataRequest zk.SetDataResponse "
        "zk.GetACLRequest zk.GetACLResponse zk.SetACLRequest zk.SetACLResponse "
        "zk.GetChildrenRequest zk.GetChildrenResponse zk.GetChildren2Request "
        "zk.GetChildren2Response zk.SyncRequest zk.SyncResponse zk.ReconfigRequest "
        "zk.CheckWatchesRequest zk.RemoveWatchesRequest zk.AddWatchRequest zk.ErrorResponse "
        "zk.SetWatches zk.SetWatches2 zk.GetSASLRequest zk.SetSASLResponse "
        "zk.GetEphemeralsRequest zk.GetEphemeralsResponse zk.GetAllChildrenNumberRequest "
        "zk.GetAllChildrenNumberResponse zk.WhoAmIResponse zk.WatcherEvent zk.MultiRequest "
        "zk.MultiResponse",
    ),
)
DATA: Final = {name: module for module, names in _DATA for name in names.split()}
"""Modules by name, for messages that are no requests or responses."""
