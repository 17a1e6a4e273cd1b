"""Tells which module declares which message. Modules load on first use: nothing here imports them.

`APIS` has the facts of each API that are needed without its messages; `DATA` has the modules of all
other messages. A test loads all of them and compares both lists with the folder.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Effect = Literal["read", "write", "group", "login", "brokers"]
"""What a request does: changes nothing, changes something, moves a group, authenticates, or is for
brokers and controllers among themselves."""
Server = Literal["node", "leader", "group", "transaction", "controller", "all"]
"""Which broker serves it: the one that is asked, the leader of the partition, the coordinator of
the group or of the transactional id, the controller (any broker hands it on), each its own part."""


class Declared(NamedTuple):
    """An API, before its messages are loaded."""

    name: str
    versions: str
    flexible: str
    """Versions with compact types and tags."""
    effect: Effect
    server: Server
    endpoints: tuple[str, ...] = ()
    """Structs of the response with a node id, a host and a port that clients connect to; "" is the
    response itself."""


APIS: Final[dict[int, Declared]] = {
    0: Declared("Produce", "0-13", "9+", "write", "leader", ("node_endpoints",)),
    1: Declared("Fetch", "0-18", "12+", "read", "leader", ("node_endpoints",)),
    2: Declared("ListOffsets", "0-11", "6+", "read", "leader"),
    3: Declared("Metadata", "0-13", "9+", "read", "node", ("brokers",)),
    4: Declared("LeaderAndIsr", "0-7", "4+", "brokers", "node"),
    5: Declared("StopReplica", "0-4", "2+", "brokers", "node"),
    6: Declared("UpdateMetadata", "0-8", "6+", "brokers", "node"),
    7: Declared("ControlledShutdown", "0-3", "3+", "brokers", "node"),
    8: Declared("OffsetCommit", "0-10", "8+", "group", "group"),
    9: Declared("OffsetFetch", "0-10", "6+", "read", "group"),
    10: Declared("FindCoordinator", "0-6", "3+", "read", "node", ("", "coordinators")),
    11: Declared("JoinGroup", "0-9", "6+", "group", "group"),
    12: Declared("Heartbeat", "0-4", "4+", "group", "group"),
    13: Declared("LeaveGroup", "0-5", "4+", "group", "group"),
    14: Declared("SyncGroup", "0-5", "4+", "group", "group"),
    15: Declared("DescribeGroups", "0-6", "5+", "read", "group"),
    16: Declared("ListGroups", "0-5", "3+", "read", "all"),
    17: Declared("SaslHandshake", "0-1", "none", "login", "node"),
    18: Declared("ApiVersions", "0-5", "3+", "read", "node"),
    19: Declared("CreateTopics", "0-7", "5+", "write", "controller"),
    20: Declared("DeleteTopics", "0-6", "4+", "write", "controller"),
    21: Declared("DeleteRecords", "0-2", "2+", "write", "leader"),
    22: Declared("InitProducerId", "0-6", "2+", "write", "transaction"),
    23: Declared("OffsetForLeaderEpoch", "0-4", "4+", "read", "leader"),
    24: Declared("AddPartitionsToTxn", "0-5", "3+", "write", "transaction"),
    25: Declared("AddOffsetsToTxn", "0-4", "3+", "group", "transaction"),
    26: Declared("EndTxn", "0-5", "3+", "write", "transaction"),
    27: Declared("WriteTxnMarkers", "0-2", "1+", "brokers", "node"),
    28: Declared("TxnOffsetCommit", "0-6", "3+", "group", "group"),
    29: Declared("DescribeAcls", "0-3", "2+", "read", "node"),
    30: Declared("CreateAcls", "0-3", "2+", "write", "controller"),
    31: Declared("DeleteAcls", "0-3", "2+", "write", "controller"),
    32: Declared("DescribeConfigs", "0-4", "4+", "read", "node"),
    33: Declared("AlterConfigs", "0-2", "2+", "write", "node"),
    34: Declared("AlterReplicaLogDirs", "0-2", "2+", "write", "node"),
    35: Declared("DescribeLogDirs", "0-5", "2+", "read", "node"),
    36: Declared("SaslAuthenticate", "0-2", "2+", "login", "node"),
    37: Declared("CreatePartitions", "0-3", "2+", "write", "controller"),
    38: Declared("CreateDelegationToken", "0-3", "2+", "write", "controller"),
    39: Declared("RenewDelegationToken", "0-2", "2+", "write", "controller"),
    40: Declared("ExpireDelegationToken", "0-2", "2+", "write", "controller"),
    41: Declared("DescribeDelegationToken", "0-3", "2+", "read", "node"),
    42: Declared("DeleteGroups", "0-3", "2+", "group", "group"),
    43: Declared("ElectLeaders", "0-2", "2+", "write", "controller"),
    44: Declared("IncrementalAlterConfigs", "0-1", "1+", "write", "node"),
    45: Declared("AlterPartitionReassignments", "0-1", "0+", "write", "controller"),
    46: Declared("ListPartitionReassignments", "0", "0+", "read", "controller"),
    47: Declared("OffsetDelete", "0", "none", "group", "group"),
    48: Declared("DescribeClientQuotas", "0-1", "1+", "read", "node"),
    49: Declared("AlterClientQuotas", "0-1", "1+", "write", "controller"),
    50: Declared("DescribeUserScramCredentials", "0", "0+", "read", "node"),
    51: Declared("AlterUserScramCredentials", "0", "0+", "write", "controller"),
    52: Declared("Vote", "0-2", "0+", "brokers", "node"),
    53: Declared("BeginQuorumEpoch", "0-1", "1+", "brokers", "node"),
    54: Declared("EndQuorumEpoch", "0-1", "1+", "brokers", "node"),
    55: Declared("DescribeQuorum", "0-2", "0+", "read", "node"),
    56: Declared("AlterPartition", "0-3", "0+", "brokers", "node"),
    57: Declared("UpdateFeatures", "0-2", "0+", "write", "controller"),
    58: Declared("Envelope", "0", "0+", "brokers", "node"),
    59: Declared("FetchSnapshot", "0-1", "0+", "brokers", "node"),
    60: Declared("DescribeCluster", "0-2", "0+", "read", "node", ("brokers",)),
    61: Declared("DescribeProducers", "0", "0+", "read", "leader"),
    62: Declared("BrokerRegistration", "0-4", "0+", "brokers", "node"),
    63: Declared("BrokerHeartbeat", "0-2", "0+", "brokers", "node"),
    64: Declared("UnregisterBroker", "0", "0+", "write", "controller"),
    65: Declared("DescribeTransactions", "0", "0+", "read", "transaction"),
    66: Declared("ListTransactions", "0-2", "0+", "read", "all"),
    67: Declared("AllocateProducerIds", "0", "0+", "brokers", "node"),
    68: Declared("ConsumerGroupHeartbeat", "0-1", "0+", "group", "group"),
    69: Declared("ConsumerGroupDescribe", "0-1", "0+", "read", "group"),
    70: Declared("ControllerRegistration", "0", "0+", "brokers", "node"),
    71: Declared("GetTelemetrySubscriptions", "0", "0+", "read", "node"),
    72: Declared("PushTelemetry", "0", "0+", "write", "node"),
    73: Declared("AssignReplicasToDirs", "0", "0+", "brokers", "node"),
    74: Declared("ListConfigResources", "0-1", "0+", "read", "node"),
    75: Declared("DescribeTopicPartitions", "0", "0+", "read", "node"),
    76: Declared("ShareGroupHeartbeat", "0-1", "0+", "group", "group"),
    77: Declared("ShareGroupDescribe", "0-1", "0+", "read", "group"),
    78: Declared("ShareFetch", "0-2", "0+", "group", "leader", ("node_endpoints",)),
    79: Declared("ShareAcknowledge", "0-2", "0+", "group", "leader", ("node_endpoints",)),
    80: Declared("AddRaftVoter", "0-1", "0+", "write", "controller"),
    81: Declared("RemoveRaftVoter", "0", "0+", "write", "controller"),
    82: Declared("UpdateRaftVoter", "0", "0+", "brokers", "node"),
    83: Declared("InitializeShareGroupState", "0", "0+", "brokers", "node"),
    84: Declared("ReadShareGroupState", "0", "0+", "brokers", "node"),
    85: Declared("WriteShareGroupState", "0-1", "0+", "brokers", "node"),
    86: Declared("DeleteShareGroupState", "0", "0+", "brokers", "node"),
    87: Declared("ReadShareGroupStateSummary", "0-1", "0+", "brokers", "node"),
    88: Declared("StreamsGroupHeartbeat", "0-1", "0+", "group", "group"),
    89: Declared("StreamsGroupDescribe", "0-1", "0+", "read", "group"),
    90: Declared("DescribeShareGroupOffsets", "0-1", "0+", "read", "group"),
    91: Declared("AlterShareGroupOffsets", "0", "0+", "group", "group"),
    92: Declared("DeleteShareGroupOffsets", "0", "0+", "group", "group"),
    93: Declared("StreamsGroupTopologyDescriptionUpdate", "0", "0+", "group", "group"),
    94: Declared("UnregisterController", "0", "0+", "write", "controller"),
}
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
