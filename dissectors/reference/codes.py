"""Error codes and named values, as data: what a number on the wire is called and what it means."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER, named_values


class ErrorCode(NamedTuple):
    """An error code of the protocol."""

    code: int
    name: str
    retriable: bool
    """Whether Kafka's own exception for it is retriable."""
    since: str
    """The first release that had it."""
    former_names: tuple[str, ...] = ()


ERRORS: Final[dict[int, ErrorCode]] = {
    error.code: error
    for error in (
        ErrorCode(-1, "UNKNOWN_SERVER_ERROR", False, "0.8.0", ("UNKNOWN",)),
        ErrorCode(0, "NONE", False, "0.8.0"),
        ErrorCode(1, "OFFSET_OUT_OF_RANGE", False, "0.8.0"),
        ErrorCode(2, "CORRUPT_MESSAGE", True, "0.8.0"),
        ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", True, "0.8.0"),
        ErrorCode(4, "INVALID_FETCH_SIZE", False, "0.8.0"),
        ErrorCode(5, "LEADER_NOT_AVAILABLE", True, "0.8.0"),
        ErrorCode(6, "NOT_LEADER_OR_FOLLOWER", True, "0.8.0", ("NOT_LEADER_FOR_PARTITION",)),
        ErrorCode(7, "REQUEST_TIMED_OUT", True, "0.8.0"),
        ErrorCode(8, "BROKER_NOT_AVAILABLE", False, "0.8.0"),
        ErrorCode(9, "REPLICA_NOT_AVAILABLE", True, "0.8.0"),
        ErrorCode(10, "MESSAGE_TOO_LARGE", False, "0.8.0"),
        ErrorCode(11, "STALE_CONTROLLER_EPOCH", False, "0.8.0"),
        ErrorCode(12, "OFFSET_METADATA_TOO_LARGE", False, "0.8.1"),
        ErrorCode(13, "NETWORK_EXCEPTION", True, "0.8.1", ("StaleLeaderEpochCode",)),
        ErrorCode(14, "COORDINATOR_LOAD_IN_PROGRESS", True, "0.8.2", ("GROUP_LOAD_IN_PROGRESS",)),
        ErrorCode(
            15, "COORDINATOR_NOT_AVAILABLE", True, "0.8.2", ("GROUP_COORDINATOR_NOT_AVAILABLE",)
        ),
        ErrorCode(16, "NOT_COORDINATOR", True, "0.8.2", ("NOT_COORDINATOR_FOR_GROUP",)),
        ErrorCode(17, "INVALID_TOPIC_EXCEPTION", False, "0.8.2"),
        ErrorCode(18, "RECORD_LIST_TOO_LARGE", False, "0.8.2"),
        ErrorCode(19, "NOT_ENOUGH_REPLICAS", True, "0.8.2"),
        ErrorCode(20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, "0.8.2"),
        ErrorCode(21, "INVALID_REQUIRED_ACKS", False, "0.9.0"),
        ErrorCode(22, "ILLEGAL_GENERATION", False, "0.9.0"),
        ErrorCode(23, "INCONSISTENT_GROUP_PROTOCOL", False, "0.9.0"),
        ErrorCode(24, "INVALID_GROUP_ID", False, "0.9.0"),
        ErrorCode(25, "UNKNOWN_MEMBER_ID", False, "0.9.0"),
        ErrorCode(26, "INVALID_SESSION_TIMEOUT", False, "0.9.0"),
        ErrorCode(27, "REBALANCE_IN_PROGRESS", False, "0.9.0"),
        ErrorCode(28, "INVALID_COMMIT_OFFSET_SIZE", False, "0.9.0"),
        ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", False, "0.9.0"),
        ErrorCode(30, "GROUP_AUTHORIZATION_FAILED", False, "0.9.0"),
        ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", False, "0.9.0"),
        ErrorCode(32, "INVALID_TIMESTAMP", False, "0.10.0"),
        ErrorCode(33, "UNSUPPORTED_SASL_MECHANISM", False, "0.10.0"),
        ErrorCode(34, "ILLEGAL_SASL_STATE", False, "0.10.0"),
        ErrorCode(35, "UNSUPPORTED_VERSION", False, "0.10.0"),
        ErrorCode(36, "TOPIC_ALREADY_EXISTS", False, "0.10.1"),
        ErrorCode(37, "INVALID_PARTITIONS", False, "0.10.1"),
        ErrorCode(38, "INVALID_REPLICATION_FACTOR", False, "0.10.1"),
        ErrorCode(39, "INVALID_REPLICA_ASSIGNMENT", False, "0.10.1"),
        ErrorCode(40, "INVALID_CONFIG", False, "0.10.1"),
        ErrorCode(41, "NOT_CONTROLLER", True, "0.10.1"),
        ErrorCode(42, "INVALID_REQUEST", False, "0.10.1"),
        ErrorCode(43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", False, "0.10.1"),
        ErrorCode(44, "POLICY_VIOLATION", False, "0.10.2"),
        ErrorCode(45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, "0.11.0"),
        ErrorCode(46, "DUPLICATE_SEQUENCE_NUMBER", False, "0.11.0"),
        ErrorCode(47, "INVALID_PRODUCER_EPOCH", False, "0.11.0"),
        ErrorCode(48, "INVALID_TXN_STATE", False, "0.11.0"),
        ErrorCode(49, "INVALID_PRODUCER_ID_MAPPING", False, "0.11.0"),
        ErrorCode(50, "INVALID_TRANSACTION_TIMEOUT", False, "0.11.0"),
        ErrorCode(51, "CONCURRENT_TRANSACTIONS", True, "0.11.0"),
        ErrorCode(52, "TRANSACTION_COORDINATOR_FENCED", False, "0.11.0"),
        ErrorCode(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "0.11.0"),
        ErrorCode(54, "SECURITY_DISABLED", False, "0.11.0"),
        ErrorCode(55, "OPERATION_NOT_ATTEMPTED", False, "0.11.0"),
        ErrorCode(56, "KAFKA_STORAGE_ERROR", True, "1.0.0"),
        ErrorCode(57, "LOG_DIR_NOT_FOUND", False, "1.0.0"),
        ErrorCode(58, "SASL_AUTHENTICATION_FAILED", False, "1.0.0"),
        ErrorCode(59, "UNKNOWN_PRODUCER_ID", False, "1.0.0"),
        ErrorCode(60, "REASSIGNMENT_IN_PROGRESS", False, "1.0.0"),
        ErrorCode(61, "DELEGATION_TOKEN_AUTH_DISABLED", False, "1.1.0"),
        ErrorCode(62, "DELEGATION_TOKEN_NOT_FOUND", False, "1.1.0"),
        ErrorCode(63, "DELEGATION_TOKEN_OWNER_MISMATCH", False, "1.1.0"),
        ErrorCode(64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", False, "1.1.0"),
        ErrorCode(65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", False, "1.1.0"),
        ErrorCode(66, "DELEGATION_TOKEN_EXPIRED", False, "1.1.0"),
        ErrorCode(67, "INVALID_PRINCIPAL_TYPE", False, "1.1.0"),
        ErrorCode(68, "NON_EMPTY_GROUP", False, "1.1.0"),
        ErrorCode(69, "GROUP_ID_NOT_FOUND", False, "1.1.0"),
        ErrorCode(70, "FETCH_SESSION_ID_NOT_FOUND", True, "1.1.0"),
        ErrorCode(71, "INVALID_FETCH_SESSION_EPOCH", True, "1.1.0"),
        ErrorCode(72, "LISTENER_NOT_FOUND", True, "2.0.0"),
        ErrorCode(73, "TOPIC_DELETION_DISABLED", False, "2.1.0"),
        ErrorCode(74, "FENCED_LEADER_EPOCH", True, "2.1.0"),
        ErrorCode(75, "UNKNOWN_LEADER_EPOCH", True, "2.1.0"),
        ErrorCode(76, "UNSUPPORTED_COMPRESSION_TYPE", False, "2.1.0"),
        ErrorCode(77, "STALE_BROKER_EPOCH", False, "2.2.0"),
        ErrorCode(78, "OFFSET_NOT_AVAILABLE", True, "2.2.0"),
        ErrorCode(79, "MEMBER_ID_REQUIRED", False, "2.2.0"),
        ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", True, "2.2.0"),
        ErrorCode(81, "GROUP_MAX_SIZE_REACHED", False, "2.2.0"),
        ErrorCode(82, "FENCED_INSTANCE_ID", False, "2.3.0"),
        ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", True, "2.4.0"),
        ErrorCode(84, "ELECTION_NOT_NEEDED", True, "2.4.0"),
        ErrorCode(85, "NO_REASSIGNMENT_IN_PROGRESS", False, "2.4.0"),
        ErrorCode(86, "GROUP_SUBSCRIBED_TO_TOPIC", False, "2.4.0"),
        ErrorCode(87, "INVALID_RECORD", False, "2.4.0"),
        ErrorCode(88, "UNSTABLE_OFFSET_COMMIT", True, "2.5.0"),
        ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", True, "2.7.0"),
        ErrorCode(90, "PRODUCER_FENCED", False, "2.7.0"),
        ErrorCode(91, "RESOURCE_NOT_FOUND", False, "2.7.0"),
        ErrorCode(92, "DUPLICATE_RESOURCE", False, "2.7.0"),
        ErrorCode(93, "UNACCEPTABLE_CREDENTIAL", False, "2.7.0"),
        ErrorCode(94, "INCONSISTENT_VOTER_SET", False, "2.7.0"),
        ErrorCode(95, "INVALID_UPDATE_VERSION", False, "2.7.0"),
        ErrorCode(96, "FEATURE_UPDATE_FAILED", False, "2.7.0"),
        ErrorCode(97, "PRINCIPAL_DESERIALIZATION_FAILURE", False, "2.8.0"),
        ErrorCode(98, "SNAPSHOT_NOT_FOUND", False, "2.8.0"),
        ErrorCode(99, "POSITION_OUT_OF_RANGE", False, "2.8.0"),
        ErrorCode(100, "UNKNOWN_TOPIC_ID", True, "2.8.0"),
        ErrorCode(101, "DUPLICATE_BROKER_REGISTRATION", False, "2.8.0"),
        ErrorCode(102, "BROKER_ID_NOT_REGISTERED", False, "2.8.0"),
        ErrorCode(103, "INCONSISTENT_TOPIC_ID", True, "2.8.0"),
        ErrorCode(104, "INCONSISTENT_CLUSTER_ID", False, "2.8.0"),
        ErrorCode(105, "TRANSACTIONAL_ID_NOT_FOUND", False, "3.0.0"),
        ErrorCode(106, "FETCH_SESSION_TOPIC_ID_ERROR", True, "3.1.0"),
        ErrorCode(107, "INELIGIBLE_REPLICA", False, "3.3.0"),
        ErrorCode(108, "NEW_LEADER_ELECTED", False, "3.3.0"),
        ErrorCode(109, "OFFSET_MOVED_TO_TIERED_STORAGE", False, "3.5.0"),
        ErrorCode(110, "FENCED_MEMBER_EPOCH", False, "3.5.0"),
        ErrorCode(111, "UNRELEASED_INSTANCE_ID", False, "3.5.0"),
        ErrorCode(112, "UNSUPPORTED_ASSIGNOR", False, "3.5.0"),
        ErrorCode(113, "STALE_MEMBER_EPOCH", False, "3.6.0"),
        ErrorCode(114, "MISMATCHED_ENDPOINT_TYPE", False, "3.7.0"),
        ErrorCode(115, "UNSUPPORTED_ENDPOINT_TYPE", False, "3.7.0"),
        ErrorCode(116, "UNKNOWN_CONTROLLER_ID", False, "3.7.0"),
        ErrorCode(117, "UNKNOWN_SUBSCRIPTION_ID", False, "3.7.0"),
        ErrorCode(118, "TELEMETRY_TOO_LARGE", False, "3.7.0"),
        ErrorCode(119, "INVALID_REGISTRATION", False, "3.7.0"),
        ErrorCode(120, "TRANSACTION_ABORTABLE", False, "3.8.0"),
        ErrorCode(121, "INVALID_RECORD_STATE", False, "3.9.0"),
        ErrorCode(122, "SHARE_SESSION_NOT_FOUND", True, "3.9.0"),
        ErrorCode(123, "INVALID_SHARE_SESSION_EPOCH", True, "3.9.0"),
        ErrorCode(124, "FENCED_STATE_EPOCH", False, "3.9.0"),
        ErrorCode(125, "INVALID_VOTER_KEY", False, "3.9.0"),
        ErrorCode(126, "DUPLICATE_VOTER", False, "3.9.0"),
        ErrorCode(127, "VOTER_NOT_FOUND", False, "3.9.0"),
        ErrorCode(128, "INVALID_REGULAR_EXPRESSION", False, "4.0.0"),
        ErrorCode(129, "REBOOTSTRAP_REQUIRED", False, "4.0.0"),
        ErrorCode(130, "STREAMS_INVALID_TOPOLOGY", False, "4.1.0"),
        ErrorCode(131, "STREAMS_INVALID_TOPOLOGY_EPOCH", False, "4.1.0"),
        ErrorCode(132, "STREAMS_TOPOLOGY_FENCED", False, "4.1.0"),
        ErrorCode(133, "SHARE_SESSION_LIMIT_REACHED", True, "4.1.0"),
        ErrorCode(134, "GROUP_DELETION_FAILED", False, "4.4.0"),
        ErrorCode(135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", False, "4.4.0"),
        ErrorCode(136, "CONTROLLER_ID_NOT_REGISTERED", False, "4.4.0"),
    )
}


def error_code(text: str) -> int | None:
    """Return the code of an error by its number, name or former name; None: there is none."""
    if text.isascii() and text.removeprefix("-").isdecimal():
        return int(text)
    wanted = text.upper()
    for error in ERRORS.values():
        if any(name.upper() == wanted for name in (error.name, *error.former_names)):
            return error.code
    return None


def error_name(code: int) -> str:
    """Return Kafka's name of an error code; the number as text when no release has it."""
    error = ERRORS.get(code)
    return error.name if error else str(code)


_TEXT: Final = {
    "AcknowledgeType": "0=GAP 1=ACCEPT 2=RELEASE 3=REJECT 4=RENEW",
    "AclOperation": (
        "0=UNKNOWN 1=ANY 2=ALL 3=READ 4=WRITE 5=CREATE 6=DELETE 7=ALTER 8=DESCRIBE "
        "9=CLUSTER_ACTION 10=DESCRIBE_CONFIGS 11=ALTER_CONFIGS 12=IDEMPOTENT_WRITE "
        "13=CREATE_TOKENS 14=DESCRIBE_TOKENS 15=TWO_PHASE_COMMIT"
    ),
    "AclPatternType": "0=UNKNOWN 1=ANY 2=MATCH 3=LITERAL 4=PREFIXED",
    "AclPermissionType": "0=UNKNOWN 1=ANY 2=DENY 3=ALLOW",
    "AclResourceType": (
        "0=UNKNOWN 1=ANY 2=TOPIC 3=GROUP 4=CLUSTER 5=TRANSACTIONAL_ID 6=DELEGATION_TOKEN 7=USER"
    ),
    "AuthorizedOperations": "-2147483648=NOT_REQUESTED",
    "BatchAttributesBits": (
        "0-2=CompressionType 3=TimestampType 4=TRANSACTIONAL 5=CONTROL_BATCH "
        "6=DELETE_HORIZON_IN_BASE_TIMESTAMP"
    ),
    "BrokerRegistrationFencingChange": "-1=UNFENCE 0=NONE 1=FENCE",
    "BrokerRegistrationInControlledShutdownChange": "0=NONE 1=IN_CONTROLLED_SHUTDOWN",
    "ClassicGroupProtocolType": "consumer=CONSUMER connect=CONNECT",
    "ClientQuotaEntityType": "user=USER client-id=CLIENT_ID ip=IP",
    "ClientQuotaMatchType": "0=EXACT 1=DEFAULT 2=SPECIFIED",
    "CompressionType": "0=NONE 1=GZIP 2=SNAPPY 3=LZ4 4=ZSTD",
    "ConfigOperation": "0=SET 1=DELETE 2=APPEND 3=SUBTRACT",
    "ConfigResourceType": "0=UNKNOWN 2=TOPIC 4=BROKER 8=BROKER_LOGGER 16=CLIENT_METRICS 32=GROUP",
    "ConfigSource": (
        "0=UNKNOWN 1=TOPIC_CONFIG 2=DYNAMIC_BROKER_CONFIG 3=DYNAMIC_DEFAULT_BROKER_CONFIG "
        "4=STATIC_BROKER_CONFIG 5=DEFAULT_CONFIG 6=DYNAMIC_BROKER_LOGGER_CONFIG "
        "7=CLIENT_METRICS_CONFIG 8=GROUP_CONFIG"
    ),
    "ConfigType": (
        "0=UNKNOWN 1=BOOLEAN 2=STRING 3=INT 4=SHORT 5=LONG 6=DOUBLE 7=LIST 8=CLASS 9=PASSWORD"
    ),
    "ConsumerGroupMemberEpoch": "0=JOIN -1=LEAVE -2=LEAVE_STATIC",
    "ConsumerGroupMemberState": (
        "0=STABLE 1=UNREVOKED_PARTITIONS 2=UNRELEASED_PARTITIONS 127=UNKNOWN"
    ),
    "ConsumerGroupMemberType": "-1=UNKNOWN 0=CLASSIC 1=CONSUMER",
    "ControlRecordType": (
        "-1=UNKNOWN 0=ABORT 1=COMMIT 2=LEADER_CHANGE 3=SNAPSHOT_HEADER 4=SNAPSHOT_FOOTER "
        "5=KRAFT_VERSION 6=KRAFT_VOTERS"
    ),
    "CoordinatorType": "0=GROUP 1=TRANSACTION 2=SHARE",
    "DirectoryId": (
        "00000000-0000-0000-0000-000000000000=MIGRATING "
        "00000000-0000-0000-0000-000000000001=UNASSIGNED 00000000-0000-0000-0000-000000000002=LOST"
    ),
    "ElectionType": "0=PREFERRED 1=UNCLEAN",
    "EndpointType": "0=UNKNOWN 1=BROKER 2=CONTROLLER",
    "FeatureLevel eligible.leader.replicas.version": "0=ELRV_0 1=ELRV_1",
    "FeatureLevel group.version": "0=GV_0 1=GV_1",
    "FeatureLevel kraft.version": "0=KRAFT_VERSION_0 1=KRAFT_VERSION_1",
    "FeatureLevel metadata.version": (
        "1=3.0-IV1 2=3.1-IV0 3=3.2-IV0 4=3.3-IV0 5=3.3-IV1 6=3.3-IV2 7=3.3-IV3 8=3.4-IV0 9=3.5-IV0 "
        "10=3.5-IV1 11=3.5-IV2 12=3.6-IV0 13=3.6-IV1 14=3.6-IV2 15=3.7-IV0 16=3.7-IV1 17=3.7-IV2 "
        "18=3.7-IV3 19=3.7-IV4 20=3.8-IV0 21=3.9-IV0 22=4.0-IV0 23=4.0-IV1 24=4.0-IV2 25=4.0-IV3 "
        "26=4.1-IV0 27=4.1-IV1 28=4.2-IV0 29=4.2-IV1 30=4.3-IV0 31=4.4-IV0 32=4.4-IV1 33=4.4-IV2"
    ),
    "FeatureLevel share.version": "0=SV_0 1=SV_1 2=SV_2",
    "FeatureLevel streams.version": "0=SV_0 1=SV_1",
    "FeatureLevel transaction.version": "0=TV_0 1=TV_1 2=TV_2",
    "FeatureUpgradeType": "0=UNKNOWN 1=UPGRADE 2=SAFE_DOWNGRADE 3=UNSAFE_DOWNGRADE",
    "FetchSessionEpoch": "0=INITIAL -1=FINAL",
    "FetchSessionId": "0=NONE",
    "GroupState": (
        "Unknown=UNKNOWN PreparingRebalance=PREPARING_REBALANCE "
        "CompletingRebalance=COMPLETING_REBALANCE Stable=STABLE Dead=DEAD Empty=EMPTY "
        "Assigning=ASSIGNING Reconciling=RECONCILING NotReady=NOT_READY"
    ),
    "GroupType": "Unknown=UNKNOWN Consumer=CONSUMER Classic=CLASSIC Share=SHARE Streams=STREAMS",
    "IsolationLevel": "0=READ_UNCOMMITTED 1=READ_COMMITTED",
    "LeaderRecoveryState": "0=RECOVERED 1=RECOVERING",
    "ListenerType": "broker=BROKER controller=CONTROLLER zkBroker=ZK_BROKER",
    "ListOffsetsTimestamp": (
        "-1=LATEST -2=EARLIEST -3=MAX_TIMESTAMP -4=EARLIEST_LOCAL -5=LATEST_TIERED "
        "-6=EARLIEST_PENDING_UPLOAD"
    ),
    "MessageAttributesBits": "0-2=CompressionType 3=TimestampType",
    "OffsetCommitRetentionTime": "-1=BROKER_DEFAULT",
    "PartitionChangeLeader": "-1=NO_LEADER -2=NO_LEADER_CHANGE",
    "PartitionLeader": "-1=NO_LEADER -2=LEADER_DURING_DELETE",
    "PartitionLeaderEpoch": "-1=NO_EPOCH -2=EPOCH_DURING_DELETE",
    "ProducerId": "-1=NONE",
    "RemoteLogSegmentState": (
        "0=COPY_SEGMENT_STARTED 1=COPY_SEGMENT_FINISHED 2=DELETE_SEGMENT_STARTED "
        "3=DELETE_SEGMENT_FINISHED"
    ),
    "RemotePartitionDeleteState": (
        "0=DELETE_PARTITION_MARKED 1=DELETE_PARTITION_STARTED 2=DELETE_PARTITION_FINISHED"
    ),
    "ReplicaId": "-1=CONSUMER -2=DEBUGGING_CONSUMER -3=FUTURE_LOCAL_REPLICA",
    "RequiredAcks": "0=NONE 1=LEADER -1=ALL",
    "SaslMechanism": (
        "PLAIN=PLAIN GSSAPI=GSSAPI SCRAM-SHA-256=SCRAM_SHA_256 SCRAM-SHA-512=SCRAM_SHA_512 "
        "OAUTHBEARER=OAUTHBEARER"
    ),
    "ScramMechanism": "0=UNKNOWN 1=SCRAM_SHA_256 2=SCRAM_SHA_512",
    "SecurityProtocol": "0=PLAINTEXT 1=SSL 2=SASL_PLAINTEXT 3=SASL_SSL",
    "ShareAcquireMode": "0=BATCH_OPTIMIZED 1=RECORD_LIMIT",
    "ShareGroupMemberEpoch": "0=JOIN -1=LEAVE",
    "ShareRecordState": "0=AVAILABLE 1=ACQUIRED 2=ACKNOWLEDGED 3=ARCHIVING 4=ARCHIVED",
    "ShareSessionEpoch": "0=INITIAL -1=FINAL",
    "StreamsGroupHeartbeatStatus": (
        "0=STALE_TOPOLOGY 1=MISSING_SOURCE_TOPICS 2=INCORRECTLY_PARTITIONED_TOPICS "
        "3=MISSING_INTERNAL_TOPICS 4=SHUTDOWN_APPLICATION 5=ASSIGNMENT_DELAYED "
        "6=MISSING_CLIENT_TAGS"
    ),
    "StreamsGroupMemberEpoch": "0=JOIN -1=LEAVE -2=LEAVE_STATIC",
    "StreamsGroupMemberState": "1=STABLE 2=UNREVOKED_TASKS 3=UNRELEASED_TASKS 127=UNKNOWN",
    "StreamsTopologyDescriptionStatus": "0=NOT_REQUESTED 1=NOT_STORED 2=ERROR 3=AVAILABLE",
    "StreamsTopologyNodeType": "1=SOURCE 2=PROCESSOR 3=SINK",
    "TimestampType": "-1=NO_TIMESTAMP_TYPE 0=CREATE_TIME 1=LOG_APPEND_TIME",
    "TransactionLogState": (
        "0=EMPTY 1=ONGOING 2=PREPARE_COMMIT 3=PREPARE_ABORT 4=COMPLETE_COMMIT 5=COMPLETE_ABORT "
        "6=DEAD 7=PREPARE_EPOCH_FENCE"
    ),
    "TransactionResult": "0=ABORT 1=COMMIT",
    "TransactionStateName": (
        "Ongoing=ONGOING PrepareAbort=PREPARE_ABORT PrepareCommit=PREPARE_COMMIT "
        "CompleteAbort=COMPLETE_ABORT CompleteCommit=COMPLETE_COMMIT Empty=EMPTY "
        "PrepareEpochFence=PREPARE_EPOCH_FENCE Unknown=UNKNOWN"
    ),
    "UpdateMetadataType": "0=UNKNOWN 1=INCREMENTAL 2=FULL",
}
"""Value and name, as they are on the wire and in Kafka's source."""

ENUMS: Final = {name: named_values(text) for name, text in _TEXT.items()} | ZOOKEEPER
"""Names of values on the wire, by set; of bit numbers where the set's name ends in `Bits`."""
