"""First releases of all versions, as data for `releases`.

One release per version, from version `first` on. Made once from the comparison of all releases from
0.8.0 to 4.4.0; a new version adds one word at the end of its API's list.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Facts(NamedTuple):
    """The releases of an API or message."""

    since: str
    """The first release with each version, in order of versions."""
    first: int = 0
    """The version that the list begins with."""
    stable: str = ""
    """`version:release` of those that were first there unfinished, behind a switch; or `never`."""
    removed: str = ""
    """`versions:release` that dropped them; `+versions:release` had them again."""
    listeners: str = ""
    """Kinds of listeners that serve it in any release: broker, controller, zkBroker."""
    former: str = ""
    """Names that older releases used."""


APIS: Final[dict[str, Facts]] = {
    "Produce": Facts(
        "0.8.0 0.9.0 0.10.0 0.11.0 1.0.0 1.0.0 2.0.0 2.1.0 2.4.0 2.8.0 3.7.0 3.8.0 4.0.0 4.1.0",
        removed="0-2:4.0.0",
        listeners="broker zkBroker",
    ),
    "Fetch": Facts(
        "0.8.0 0.9.0 0.10.0 0.10.1 0.11.0 0.11.0 1.0.0 1.1.0 2.0.0 2.1.0 2.1.0 2.3.0 2.7.0 "
        "3.1.0 3.5.0 3.5.0 3.7.0 3.9.0 4.1.0",
        removed="0-3:4.0.0",
        listeners="broker controller zkBroker",
    ),
    "ListOffsets": Facts(
        "0.8.0 0.10.1 0.11.0 2.0.0 2.1.0 2.2.0 2.8.0 3.0.0 3.5.0 3.9.0 4.0.0 4.2.0",
        removed="0:4.0.0",
        listeners="broker zkBroker",
        former="Offsets ListOffset",
    ),
    "Metadata": Facts(
        "0.8.0 0.10.0 0.10.1 0.11.0 0.11.0 1.0.0 2.0.0 2.1.0 2.3.0 2.4.0 2.8.0 2.8.0 3.1.0 4.0.0",
        listeners="broker zkBroker controller",
    ),
    "LeaderAndIsr": Facts(
        "0.8.0 1.0.0 2.2.0 2.4.0 2.4.0 2.8.0 3.2.0 3.4.0", removed="0-7:4.0.0", listeners="zkBroker"
    ),
    "StopReplica": Facts(
        "0.8.0 2.2.0 2.4.0 2.6.0 3.4.0", removed="0-4:4.0.0", listeners="zkBroker"
    ),
    "UpdateMetadata": Facts(
        "0.8.0 0.9.0 0.10.0 0.10.2 1.0.0 2.2.0 2.4.0 2.8.0 3.4.0",
        removed="0-8:4.0.0",
        listeners="zkBroker",
    ),
    "ControlledShutdown": Facts(
        "0.8.0 0.9.0 2.2.0 2.4.0", removed="0-3:4.0.0", listeners="zkBroker controller"
    ),
    "OffsetCommit": Facts(
        "0.8.1 0.8.2 0.9.0 0.11.0 2.0.0 2.1.0 2.1.0 2.3.0 2.4.0 3.6.0 4.1.0",
        stable="9:3.7.0 10:4.2.0",
        removed="0-1:4.0.0",
        listeners="broker zkBroker",
    ),
    "OffsetFetch": Facts(
        "0.8.1 0.8.2 0.10.2 0.11.0 2.0.0 2.1.0 2.4.0 2.5.0 3.0.0 3.7.0 4.1.0",
        stable="10:4.2.0",
        removed="0:4.0.0",
        listeners="broker zkBroker",
    ),
    "FindCoordinator": Facts(
        "0.8.2 0.11.0 2.0.0 2.4.0 3.0.0 3.8.0 3.9.0",
        listeners="broker zkBroker",
        former="ConsumerMetadata GroupCoordinator",
    ),
    "JoinGroup": Facts(
        "0.9.0 0.10.1 0.11.0 2.0.0 2.2.0 2.3.0 2.4.0 2.5.0 3.2.0 3.2.0",
        removed="0-1:4.0.0 +0-1:4.0.1",
        listeners="broker zkBroker",
    ),
    "Heartbeat": Facts("0.9.0 0.11.0 2.0.0 2.3.0 2.4.0", listeners="broker zkBroker"),
    "LeaveGroup": Facts("0.9.0 0.11.0 2.0.0 2.4.0 2.4.0 3.2.0", listeners="broker zkBroker"),
    "SyncGroup": Facts("0.9.0 0.11.0 2.0.0 2.3.0 2.4.0 2.5.0", listeners="broker zkBroker"),
    "DescribeGroups": Facts(
        "0.9.0 0.11.0 2.0.0 2.3.0 2.4.0 2.4.0 4.0.0", listeners="broker zkBroker"
    ),
    "ListGroups": Facts("0.9.0 0.11.0 2.0.0 2.4.0 2.6.0 3.8.0", listeners="broker zkBroker"),
    "SaslHandshake": Facts("0.10.0 1.0.0", listeners="broker controller zkBroker"),
    "ApiVersions": Facts(
        "0.10.0 0.11.0 2.0.0 2.4.0 3.9.0 4.4.0", listeners="broker controller zkBroker"
    ),
    "CreateTopics": Facts(
        "0.10.1 0.10.2 0.11.0 2.0.0 2.4.0 2.4.0 2.7.0 2.8.0",
        removed="0-1:4.0.0",
        listeners="broker controller zkBroker",
    ),
    "DeleteTopics": Facts(
        "0.10.1 0.11.0 2.0.0 2.1.0 2.4.0 2.7.0 2.8.0",
        removed="0:4.0.0",
        listeners="broker controller zkBroker",
    ),
    "DeleteRecords": Facts("0.11.0 2.0.0 2.6.0", listeners="broker zkBroker"),
    "InitProducerId": Facts(
        "0.11.0 2.0.0 2.4.0 2.5.0 2.7.0 3.8.0 4.1.0", stable="6:never", listeners="broker zkBroker"
    ),
    "OffsetForLeaderEpoch": Facts(
        "0.11.0 2.0.0 2.1.0 2.3.0 2.8.0", removed="0-1:4.0.0", listeners="broker zkBroker"
    ),
    "AddPartitionsToTxn": Facts(
        "0.11.0 2.0.0 2.7.0 2.8.0 3.5.0 3.8.0", stable="4:3.6.0", listeners="broker zkBroker"
    ),
    "AddOffsetsToTxn": Facts("0.11.0 2.0.0 2.7.0 2.8.0 3.8.0", listeners="broker zkBroker"),
    "EndTxn": Facts("0.11.0 2.0.0 2.7.0 2.8.0 3.8.0 4.0.0", listeners="broker zkBroker"),
    "WriteTxnMarkers": Facts("0.11.0 2.8.0 4.2.0", removed="0:4.0.0", listeners="broker zkBroker"),
    "TxnOffsetCommit": Facts(
        "0.11.0 2.0.0 2.1.0 2.5.0 3.8.0 4.0.0 4.4.0", listeners="broker zkBroker"
    ),
    "DescribeAcls": Facts(
        "0.11.0 2.0.0 2.5.0 3.3.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "CreateAcls": Facts(
        "0.11.0 2.0.0 2.5.0 3.3.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "DeleteAcls": Facts(
        "0.11.0 2.0.0 2.5.0 3.3.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "DescribeConfigs": Facts(
        "0.11.0 1.1.0 2.0.0 2.6.0 2.8.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "AlterConfigs": Facts("0.11.0 2.0.0 2.8.0", listeners="broker controller zkBroker"),
    "AlterReplicaLogDirs": Facts(
        "1.0.0 2.0.0 2.8.0", removed="0:4.0.0", listeners="broker zkBroker"
    ),
    "DescribeLogDirs": Facts(
        "1.0.0 2.0.0 2.6.0 3.2.0 3.3.0 4.3.0", removed="0:4.0.0", listeners="broker zkBroker"
    ),
    "SaslAuthenticate": Facts("1.0.0 2.2.0 2.5.0", listeners="broker controller zkBroker"),
    "CreatePartitions": Facts("1.0.0 2.0.0 2.5.0 2.7.0", listeners="broker controller zkBroker"),
    "CreateDelegationToken": Facts(
        "1.1.0 2.0.0 2.4.0 3.3.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "RenewDelegationToken": Facts(
        "1.1.0 2.0.0 2.5.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "ExpireDelegationToken": Facts(
        "1.1.0 2.0.0 2.5.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "DescribeDelegationToken": Facts(
        "1.1.0 2.0.0 2.5.0 3.3.0", removed="0:4.0.0", listeners="broker controller zkBroker"
    ),
    "DeleteGroups": Facts("1.1.0 2.0.0 2.4.0 4.4.0", listeners="broker zkBroker"),
    "ElectLeaders": Facts(
        "2.2.0 2.4.0 2.4.0", listeners="broker controller zkBroker", former="ElectPreferredLeaders"
    ),
    "IncrementalAlterConfigs": Facts("2.3.0 2.4.0", listeners="broker controller zkBroker"),
    "AlterPartitionReassignments": Facts("2.4.0 4.1.0", listeners="broker controller zkBroker"),
    "ListPartitionReassignments": Facts("2.4.0", listeners="broker controller zkBroker"),
    "OffsetDelete": Facts("2.4.0", listeners="broker zkBroker"),
    "DescribeClientQuotas": Facts("2.6.0 2.8.0", listeners="broker zkBroker"),
    "AlterClientQuotas": Facts("2.6.0 2.8.0", listeners="broker controller zkBroker"),
    "DescribeUserScramCredentials": Facts("2.7.0", listeners="broker controller zkBroker"),
    "AlterUserScramCredentials": Facts("2.7.0", listeners="broker controller zkBroker"),
    "Vote": Facts("2.7.0 3.9.0 4.0.0", listeners="controller"),
    "BeginQuorumEpoch": Facts("2.7.0 3.9.0", listeners="controller"),
    "EndQuorumEpoch": Facts("2.7.0 3.9.0", listeners="controller"),
    "DescribeQuorum": Facts("2.7.0 3.3.0 3.9.0", listeners="broker controller"),
    "AlterPartition": Facts(
        "2.7.0 3.2.0 3.3.0 3.5.0",
        removed="0-1:4.0.0",
        listeners="controller zkBroker",
        former="AlterIsr",
    ),
    "UpdateFeatures": Facts("2.7.0 3.3.0 4.0.0", listeners="broker controller zkBroker"),
    "Envelope": Facts("2.8.0", listeners="controller zkBroker"),
    "FetchSnapshot": Facts("2.8.0 3.9.0", listeners="controller"),
    "DescribeCluster": Facts("2.8.0 3.7.0 4.0.0", listeners="broker controller zkBroker"),
    "DescribeProducers": Facts("2.8.0", listeners="broker zkBroker"),
    "BrokerRegistration": Facts("2.8.0 3.4.0 3.7.0 3.7.0 3.9.0", listeners="controller"),
    "BrokerHeartbeat": Facts("2.8.0 3.7.0 4.3.0", listeners="controller"),
    "UnregisterBroker": Facts("2.8.0", listeners="broker controller"),
    "DescribeTransactions": Facts("3.0.0", listeners="broker zkBroker"),
    "ListTransactions": Facts("3.0.0 3.8.0 4.1.0", listeners="broker zkBroker"),
    "AllocateProducerIds": Facts("3.0.0", listeners="controller zkBroker"),
    "ConsumerGroupHeartbeat": Facts("3.5.0 4.0.0", stable="0:3.7.0", listeners="broker zkBroker"),
    "ConsumerGroupDescribe": Facts("3.7.0 4.0.0", stable="0:3.8.0", listeners="broker zkBroker"),
    "ControllerRegistration": Facts("3.7.0", listeners="controller"),
    "GetTelemetrySubscriptions": Facts("3.7.0", listeners="broker"),
    "PushTelemetry": Facts("3.7.0", listeners="broker"),
    "AssignReplicasToDirs": Facts("3.7.0", listeners="controller"),
    "ListConfigResources": Facts(
        "3.7.0 4.1.0", listeners="broker", former="ListClientMetricsResources"
    ),
    "DescribeTopicPartitions": Facts("3.8.0", listeners="broker"),
    "ShareGroupHeartbeat": Facts(
        "3.9.0 4.1.0", stable="0:never", removed="0:4.1.0", listeners="broker"
    ),
    "ShareGroupDescribe": Facts(
        "3.9.0 4.1.0", stable="0:never", removed="0:4.1.0", listeners="broker"
    ),
    "ShareFetch": Facts(
        "3.9.0 4.1.0 4.2.0", stable="0:never", removed="0:4.1.0", listeners="broker"
    ),
    "ShareAcknowledge": Facts(
        "3.9.0 4.1.0 4.2.0", stable="0:never", removed="0:4.1.0", listeners="broker"
    ),
    "AddRaftVoter": Facts("3.9.0 4.2.0", listeners="controller broker"),
    "RemoveRaftVoter": Facts("3.9.0", listeners="controller broker"),
    "UpdateRaftVoter": Facts("3.9.0", listeners="controller"),
    "InitializeShareGroupState": Facts("3.9.0", stable="0:4.1.0", listeners="broker"),
    "ReadShareGroupState": Facts("3.9.0", stable="0:4.1.0", listeners="broker"),
    "WriteShareGroupState": Facts("3.9.0 4.2.0", stable="0:4.1.0", listeners="broker"),
    "DeleteShareGroupState": Facts("3.9.0", stable="0:4.1.0", listeners="broker"),
    "ReadShareGroupStateSummary": Facts("3.9.0 4.2.0", stable="0:4.1.0", listeners="broker"),
    "StreamsGroupHeartbeat": Facts("4.1.0 4.4.0", stable="0:4.2.0", listeners="broker"),
    "StreamsGroupDescribe": Facts("4.1.0 4.4.0", stable="0:4.2.0", listeners="broker"),
    "DescribeShareGroupOffsets": Facts("4.1.0 4.2.0", listeners="broker"),
    "AlterShareGroupOffsets": Facts("4.1.0", listeners="broker"),
    "DeleteShareGroupOffsets": Facts("4.1.0", listeners="broker"),
    "StreamsGroupTopologyDescriptionUpdate": Facts("4.4.0", listeners="broker"),
    "UnregisterController": Facts("4.4.0", listeners="broker controller"),
}
"""Facts by name of the API; request and response always have the same versions."""

MESSAGES: Final[dict[str, Facts]] = {
    "RequestHeader": Facts("0.8.0 0.8.0 2.4.0", removed="0:4.0.0"),
    "ResponseHeader": Facts("0.8.0 2.4.0"),
    "LegacyOffsetCommitKey": Facts("0.8.2"),
    "LegacyOffsetCommitValue": Facts("0.8.2"),
    "OffsetCommitKey": Facts("0.9.0"),
    "OffsetCommitValue": Facts("0.8.2 0.9.0 2.1.0 2.1.0 3.4.1"),
    "GroupMetadataKey": Facts("0.9.0"),
    "GroupMetadataValue": Facts("0.9.0 0.10.1 2.1.0 2.3.0 3.4.1"),
    "ConsumerGroupMetadataKey": Facts("3.5.0"),
    "ConsumerGroupMetadataValue": Facts("3.5.0"),
    "ConsumerGroupPartitionMetadataKey": Facts("3.5.0"),
    "ConsumerGroupPartitionMetadataValue": Facts("3.5.0"),
    "ConsumerGroupMemberMetadataKey": Facts("3.5.0"),
    "ConsumerGroupMemberMetadataValue": Facts("3.5.0"),
    "ConsumerGroupTargetAssignmentMetadataKey": Facts("3.5.0"),
    "ConsumerGroupTargetAssignmentMetadataValue": Facts("3.5.0"),
    "ConsumerGroupTargetAssignmentMemberKey": Facts("3.5.0"),
    "ConsumerGroupTargetAssignmentMemberValue": Facts("3.5.0"),
    "ConsumerGroupCurrentMemberAssignmentKey": Facts("3.5.0"),
    "ConsumerGroupCurrentMemberAssignmentValue": Facts("3.5.0"),
    "ShareGroupPartitionMetadataKey": Facts("3.9.0", removed="0:4.1.0"),
    "ShareGroupPartitionMetadataValue": Facts("3.9.0", removed="0:4.1.0"),
    "ShareGroupMemberMetadataKey": Facts("3.9.0"),
    "ShareGroupMemberMetadataValue": Facts("3.9.0"),
    "ShareGroupMetadataKey": Facts("3.9.0"),
    "ShareGroupMetadataValue": Facts("3.9.0"),
    "ShareGroupTargetAssignmentMetadataKey": Facts("4.0.0"),
    "ShareGroupTargetAssignmentMetadataValue": Facts("4.0.0"),
    "ShareGroupTargetAssignmentMemberKey": Facts("4.0.0"),
    "ShareGroupTargetAssignmentMemberValue": Facts("4.0.0"),
    "ShareGroupCurrentMemberAssignmentKey": Facts("4.0.0"),
    "ShareGroupCurrentMemberAssignmentValue": Facts("4.0.0"),
    "ShareGroupStatePartitionMetadataKey": Facts("4.0.0"),
    "ShareGroupStatePartitionMetadataValue": Facts("4.0.0"),
    "ConsumerGroupRegularExpressionKey": Facts("4.0.0"),
    "ConsumerGroupRegularExpressionValue": Facts("4.0.0"),
    "StreamsGroupMetadataKey": Facts("4.1.0"),
    "StreamsGroupMetadataValue": Facts("4.1.0"),
    "StreamsGroupMemberMetadataKey": Facts("4.1.0"),
    "StreamsGroupMemberMetadataValue": Facts("4.1.0"),
    "StreamsGroupTargetAssignmentMetadataKey": Facts("4.1.0"),
    "StreamsGroupTargetAssignmentMetadataValue": Facts("4.1.0"),
    "StreamsGroupTargetAssignmentMemberKey": Facts("4.1.0"),
    "StreamsGroupTargetAssignmentMemberValue": Facts("4.1.0"),
    "StreamsGroupCurrentMemberAssignmentKey": Facts("4.1.0"),
    "StreamsGroupCurrentMemberAssignmentValue": Facts("4.1.0"),
    "StreamsGroupTopologyKey": Facts("4.1.0"),
    "StreamsGroupTopologyValue": Facts("4.1.0"),
    "ShareSnapshotKey": Facts("4.0.0"),
    "ShareSnapshotValue": Facts("4.0.0"),
    "ShareUpdateKey": Facts("4.0.0"),
    "ShareUpdateValue": Facts("4.0.0"),
    "TransactionLogKey": Facts("0.11.0"),
    "TransactionLogValue": Facts("0.11.0 3.4.1"),
    "AbortedTxn": Facts("0.11.0"),
    "ConsumerProtocolAssignment": Facts("0.9.0 2.4.0 3.4.0 3.4.0"),
    "ConsumerProtocolSubscription": Facts("0.9.0 2.4.0 3.4.0 3.4.0"),
    "ControlRecordTypeSchema": Facts("0.11.0"),
    "DefaultPrincipalData": Facts("2.8.0"),
    "EndTxnMarker": Facts("0.11.0"),
    "KRaftVersionRecord": Facts("3.8.0"),
    "LeaderChangeMessage": Facts("2.7.0 3.9.0"),
    "SnapshotFooterRecord": Facts("3.0.0"),
    "SnapshotHeaderRecord": Facts("3.0.0"),
    "VotersRecord": Facts("3.8.0"),
    "QuorumStateData": Facts("2.7.0 3.8.0"),
    "ProducerSnapshot": Facts("0.11.0", first=1),
    "SubscriptionInfoData": Facts(
        "0.10.0 0.10.1 2.0.0 2.1.0 2.4.0 2.5.0 2.6.0 2.6.1 2.8.0 3.0.0 3.2.0", first=1
    ),
    "RegisterBrokerRecord": Facts("2.8.0 3.3.0 3.4.0 3.7.0 4.3.0"),
    "UnregisterBrokerRecord": Facts("2.8.0"),
    "TopicRecord": Facts("2.8.0"),
    "PartitionRecord": Facts("2.8.0 3.7.0 3.7.0"),
    "ConfigRecord": Facts("2.8.0"),
    "PartitionChangeRecord": Facts("2.8.0 3.7.0 3.7.0"),
    "AccessControlRecord": Facts("2.8.0", removed="0:3.5.0"),
    "FenceBrokerRecord": Facts("2.8.0"),
    "UnfenceBrokerRecord": Facts("2.8.0"),
    "RemoveTopicRecord": Facts("2.8.0"),
    "DelegationTokenRecord": Facts("2.8.0"),
    "UserScramCredentialRecord": Facts("2.8.0"),
    "FeatureLevelRecord": Facts("2.8.0"),
    "ClientQuotaRecord": Facts("2.8.0"),
    "ProducerIdsRecord": Facts("3.0.0"),
    "RemoveFeatureLevelRecord": Facts("3.0.0", removed="0:3.3.0"),
    "BrokerRegistrationChangeRecord": Facts("3.0.0 3.3.0 3.7.0 4.3.0"),
    "AccessControlEntryRecord": Facts("3.2.0"),
    "RemoveAccessControlEntryRecord": Facts("3.2.0"),
    "NoOpRecord": Facts("3.3.0"),
    "ZkMigrationStateRecord": Facts("3.4.0"),
    "RemoveUserScramCredentialRecord": Facts("3.5.0"),
    "BeginTransactionRecord": Facts("3.6.0"),
    "EndTransactionRecord": Facts("3.6.0"),
    "AbortTransactionRecord": Facts("3.6.0"),
    "RemoveDelegationTokenRecord": Facts("3.6.0"),
    "RegisterControllerRecord": Facts("3.7.0"),
    "ClearElrRecord": Facts("4.0.0"),
    "UnregisterControllerRecord": Facts("4.4.0"),
    "RemoteLogSegmentMetadataRecord": Facts("3.0.0"),
    "RemoteLogSegmentMetadataUpdateRecord": Facts("3.0.0"),
    "RemotePartitionDeleteMetadataRecord": Facts("3.0.0"),
    "RemoteLogSegmentMetadataSnapshotRecord": Facts("3.1.0"),
}
"""Facts by name of a message that is no request or response."""

LATE_TAGS: Final[dict[str, dict[str, str]]] = {
    "ApiVersionsResponse": {
        "supported_features": "2.7.0",
        "finalized_features_epoch": "2.7.0",
        "finalized_features": "2.7.0",
        "zk_migration_ready": "3.4.0",
    },
    "FetchResponse": {"responses[].partitions[].snapshot_id": "2.8.0"},
    "UpdateMetadataRequest": {"type": "3.6.1"},
    "PartitionRecord": {"leader_recovery_state": "3.2.0"},
    "PartitionChangeRecord": {
        "replicas": "3.0.0",
        "removing_replicas": "3.0.0",
        "adding_replicas": "3.0.0",
        "leader_recovery_state": "3.2.0",
    },
    "RemoteLogSegmentMetadataRecord": {"txn_index_empty": "4.0.0"},
    "RemoteLogSegmentMetadataSnapshotRecord": {"txn_index_empty": "4.0.0"},
    "TransactionLogValue": {
        "previous_producer_id": "4.0.0",
        "next_producer_id": "4.0.0",
        "client_transaction_version": "4.0.0",
        "next_producer_epoch": "4.1.0",
    },
    "OffsetCommitValue": {"topic_id": "4.1.0"},
    "ConsumerGroupMemberMetadataValue": {"classic_member_metadata": "3.8.0"},
    "ConsumerGroupMetadataValue": {"metadata_hash": "4.1.0"},
    "ConsumerGroupTargetAssignmentMetadataValue": {"assignment_timestamp": "4.3.0"},
    "ShareGroupTargetAssignmentMetadataValue": {"assignment_timestamp": "4.3.0"},
    "StreamsGroupTargetAssignmentMetadataValue": {"assignment_timestamp": "4.3.0"},
    "ConsumerGroupCurrentMemberAssignmentValue": {
        "assigned_partitions[].assignment_epochs": "4.3.0",
        "partitions_pending_revocation[].assignment_epochs": "4.3.0",
    },
    "StreamsGroupCurrentMemberAssignmentValue": {
        "active_tasks[].assignment_epochs": "4.2.0",
        "standby_tasks[].assignment_epochs": "4.2.0",
        "warmup_tasks[].assignment_epochs": "4.2.0",
        "active_tasks_pending_revocation[].assignment_epochs": "4.2.0",
        "standby_tasks_pending_revocation[].assignment_epochs": "4.2.0",
        "warmup_tasks_pending_revocation[].assignment_epochs": "4.2.0",
    },
    "StreamsGroupMetadataValue": {
        "validated_topology_epoch": "4.2.0",
        "last_assignment_configs": "4.2.0",
        "stored_description_topology_epoch": "4.4.0",
        "failed_description_topology_epoch": "4.4.0",
    },
    "ShareSnapshotValue": {"delivery_complete_count": "4.2.0"},
    "ShareUpdateValue": {"delivery_complete_count": "4.2.0"},
}
"""Releases that added tagged fields to versions that were out already, by message and field."""
