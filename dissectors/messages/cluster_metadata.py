"""Records of `__cluster_metadata` (KRaft)."""

from kafkascope.dissectors.messages.common_structs import (
    ACL_PERMISSION,
    FEATURE,
    LISTENER,
    QUOTA_ENTITY,
)
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    metadata,
    variant,
)

REGISTER_BROKER_RECORD = (
    metadata("RegisterBrokerRecord", key=0, versions="0-4", flexible="0+")
    .of(
        Int32("broker_id", "0+", entity="brokerId"),
        Bool("is_migrating_zk_broker", "2+", default=False),
        Uuid("incarnation_id", "0+", volatile=True),
        Int64("broker_epoch", "0+", volatile=True),
        Array("end_points", "0+").of(*LISTENER),
        Array("features", "0+").of(*FEATURE),
        String("rack", "0+", nullable="0+", subject="rack"),
        Bool("fenced", "0+", default=True),
        Bool("in_controlled_shutdown", "1+", default=False),
        Array("log_dirs", "3+", tag=0).of(Uuid),
        Array("cordoned_log_dirs", "4+", nullable="4+", tag=1, default=None).of(Uuid),
    )
    .but(
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(
            Int32("broker_id", "0+", subject="brokerId"),
            Uuid("incarnation_id", "0+", volatile=True),
            Int64("broker_epoch", "0+", volatile=True),
            Array("end_points", "0+").of(*LISTENER),
            Array("features", "0+").of(*FEATURE),
            String("rack", "0+", nullable="0+", subject="rack"),
        ),
    )
)

UNREGISTER_BROKER_RECORD = (
    metadata("UnregisterBrokerRecord", key=1, versions="0", flexible="0+")
    .of(
        Int32("broker_id", "0+", entity="brokerId"),
        Int64("broker_epoch", "0+", volatile=True),
    )
    .but(
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(
            Int32("broker_id", "0+", subject="brokerId"),
            Int64("broker_epoch", "0+", volatile=True),
        ),
    )
)

TOPIC_RECORD = (
    metadata("TopicRecord", key=2, versions="0", flexible="0+")
    .of(
        String("name", "0+", entity="topicName"),
        Uuid("topic_id", "0+", volatile=True),
    )
    .but(
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(
            String("name", "0+", subject="topicName"),
            Uuid("topic_id", "0+", volatile=True),
        ),
    )
)

PARTITION_RECORD = (
    metadata("PartitionRecord", key=3, versions="0-2", flexible="0+")
    .of(
        Int32("partition_id", "0+", default=-1),
        Uuid("topic_id", "0+", volatile=True),
        Array("replicas", "0+", entity="brokerId").of(Int32),
        Array("isr", "0+", subject="brokerId").of(Int32),
        Array("removing_replicas", "0+", entity="brokerId").of(Int32),
        Array("adding_replicas", "0+", entity="brokerId").of(Int32),
        Int32("leader", "0+", default=-1, entity="brokerId", enum="PartitionLeader"),
        Int8("leader_recovery_state", "0+", tag=0, default=0, enum="LeaderRecoveryState"),
        Int32("leader_epoch", "0+", default=-1, volatile=True),
        Int32("partition_epoch", "0+", default=-1, volatile=True),
        Array("directories", "1+", enum="DirectoryId").of(Uuid),
        Array(
            "eligible_leader_replicas", "2+", nullable="2+", tag=1, default=None, entity="brokerId"
        ).of(Int32),
        Array("last_known_elr", "2+", nullable="2+", tag=2, default=None, entity="brokerId").of(
            Int32
        ),
    )
    .but(
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(
            Int32("partition_id", "0+", default=-1),
            Uuid("topic_id", "0+", volatile=True),
            Array("replicas", "0+").of(Int32),
            Array("isr", "0+", subject="brokerId").of(Int32),
            Array("removing_replicas", "0+", nullable="0+").of(Int32),
            Array("adding_replicas", "0+", nullable="0+").of(Int32),
            Int32("leader", "0+", default=-1, enum="PartitionLeader"),
            Int32("leader_epoch", "0+", default=-1, volatile=True),
            Int32("partition_epoch", "0+", default=-1, volatile=True),
        ),
    )
)

CONFIG_RECORD = (
    metadata("ConfigRecord", key=4, versions="0", flexible="0+")
    .of(
        Int8("resource_type", "0+", enum="ConfigResourceType"),
        String("resource_name", "0+", subject="resourceName"),
        String("name", "0+", word="ConfigName"),
        String("value", "0+", nullable="0+", subject="configValue"),
    )
    .but(
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(
            Int8("resource_type", "0+", enum="ConfigResourceType"),
            String("resource_name", "0+", subject="resourceName"),
            String("name", "0+", word="ConfigName"),
            String("value", "0+", subject="configValue"),
        ),
    )
)

PARTITION_CHANGE_RECORD = metadata(
    "PartitionChangeRecord", key=5, versions="0-2", flexible="0+"
).of(
    Int32("partition_id", "0+", default=-1),
    Uuid("topic_id", "0+", volatile=True),
    Array("isr", "0+", nullable="0+", tag=0, default=None, entity="brokerId").of(Int32),
    Int32("leader", "0+", tag=1, default=-2, entity="brokerId", enum="PartitionChangeLeader"),
    Array("replicas", "0+", nullable="0+", tag=2, default=None, entity="brokerId").of(Int32),
    Array("removing_replicas", "0+", nullable="0+", tag=3, default=None, entity="brokerId").of(
        Int32
    ),
    Array("adding_replicas", "0+", nullable="0+", tag=4, default=None, entity="brokerId").of(Int32),
    Int8("leader_recovery_state", "0+", tag=5, default=-1, enum="LeaderRecoveryState"),
    Array("directories", "1+", nullable="1+", tag=8, default=None, enum="DirectoryId").of(Uuid),
    Array(
        "eligible_leader_replicas", "2+", nullable="2+", tag=6, default=None, entity="brokerId"
    ).of(Int32),
    Array("last_known_elr", "2+", nullable="2+", tag=7, default=None, entity="brokerId").of(Int32),
)

ACCESS_CONTROL_RECORD = metadata("AccessControlRecord", key=6, versions="0", flexible="0+").of(
    Int8("resource_type", "0+", enum="AclResourceType"),
    String("resource_name", "0+", nullable="0+", subject="resourceName"),
    Int8("pattern_type", "0+", enum="AclPatternType"),
    *ACL_PERMISSION,
)

BROKER_EPOCH = (Int32("id", "0+", entity="brokerId"), Int64("epoch", "0+", volatile=True))

BROKER_EPOCH_2_8 = variant(0, releases="2.8.0-2.8.2", flexible=False).of(
    Int32("id", "0+", subject="brokerId"), Int64("epoch", "0+", volatile=True)
)

FENCE_BROKER_RECORD = (
    metadata("FenceBrokerRecord", key=7, versions="0", flexible="0+")
    .of(*BROKER_EPOCH)
    .but(BROKER_EPOCH_2_8)
)

UNFENCE_BROKER_RECORD = (
    metadata("UnfenceBrokerRecord", key=8, versions="0", flexible="0+")
    .of(*BROKER_EPOCH)
    .but(BROKER_EPOCH_2_8)
)

REMOVE_TOPIC_RECORD = (
    metadata("RemoveTopicRecord", key=9, versions="0", flexible="0+")
    .of(Uuid("topic_id", "0+", volatile=True))
    .but(
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(
            Uuid("topic_id", "0+", volatile=True),
        ),
    )
)

DELEGATION_TOKEN = (
    Array("renewers", "0+", subject="principal").of(String),
    Int64("issue_timestamp", "0+", unit="time_ms", volatile=True),
    Int64("max_timestamp", "0+", unit="time_ms", volatile=True),
    Int64("expiration_timestamp", "0+", unit="time_ms", volatile=True),
    String("token_id", "0+", volatile=True, subject="tokenId"),
)

DELEGATION_TOKEN_RECORD = (
    metadata("DelegationTokenRecord", key=10, versions="0", flexible="0+")
    .of(
        String("owner", "0+", subject="principal"),
        String("requester", "0+", subject="principal"),
        *DELEGATION_TOKEN,
    )
    .but(
        variant(0, releases="3.0.0-3.5.2", flexible=True).of(
            String("owner", "0+", subject="principal"),
            *DELEGATION_TOKEN,
        ),
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(
            String("owner", "0+", subject="principal"),
            *DELEGATION_TOKEN,
        ),
    )
)

SCRAM_CREDENTIALS_OF_2_8 = (
    String("name", "0+", subject="principal"),
    Array("credential_infos", "0+").of(
        Int8("mechanism", "0+", enum="ScramMechanism"),
        Bytes("salt", "0+", secret=True),
        Bytes("salted_password", "0+", secret=True),
        Int32("iterations", "0+"),
    ),
)

USER_SCRAM_CREDENTIAL_RECORD = (
    metadata("UserScramCredentialRecord", key=11, versions="0", flexible="0+")
    .of(
        String("name", "0+", subject="principal"),
        Int8("mechanism", "0+", enum="ScramMechanism"),
        Bytes("salt", "0+", secret=True),
        Bytes("stored_key", "0+", secret=True),
        Bytes("server_key", "0+", secret=True),
        Int32("iterations", "0+"),
    )
    .but(
        variant(0, releases="3.0.0-3.4.1", flexible=True).of(*SCRAM_CREDENTIALS_OF_2_8),
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(*SCRAM_CREDENTIALS_OF_2_8),
    )
)

FEATURE_LEVELS_OF_2_8 = (
    String("name", "0+", word="Feature"),
    Int16("min_feature_level", "0+", enum="FeatureLevel"),
    Int16("max_feature_level", "0+", enum="FeatureLevel"),
)

FEATURE_LEVEL_RECORD = (
    metadata("FeatureLevelRecord", key=12, versions="0", flexible="0+")
    .of(
        String("name", "0+", word="Feature"),
        Int16("feature_level", "0+", enum="FeatureLevel"),
    )
    .but(
        variant(0, releases="3.0.0-3.2.3", flexible=True).of(*FEATURE_LEVELS_OF_2_8),
        variant(0, releases="2.8.0-2.8.2", flexible=False).of(*FEATURE_LEVELS_OF_2_8),
    )
)

CLIENT_QUOTA = (
    Array("entity", "0+").of(*QUOTA_ENTITY),
    String("key", "0+", word="QuotaKey"),
    Float64("value", "0+"),
    Bool("remove", "0+"),
)

CLIENT_QUOTA_RECORD = (
    metadata("ClientQuotaRecord", key=14, versions="0", flexible="0+")
    .of(*CLIENT_QUOTA)
    .but(variant(0, releases="2.8.0-2.8.2", flexible=False).of(*CLIENT_QUOTA))
)

PRODUCER_IDS_RECORD = metadata("ProducerIdsRecord", key=15, versions="0", flexible="0+").of(
    Int32("broker_id", "0+", entity="brokerId"),
    Int64("broker_epoch", "0+", default=-1, volatile=True),
    Int64("next_producer_id", "0+", volatile=True),
)

REMOVE_FEATURE_LEVEL_RECORD = metadata(
    "RemoveFeatureLevelRecord", key=16, versions="0", flexible="0+"
).of(String("name", "0+", word="Feature"))

BROKER_REGISTRATION_CHANGE_RECORD = metadata(
    "BrokerRegistrationChangeRecord", key=17, versions="0-3", flexible="0+"
).of(
    Int32("broker_id", "0+", entity="brokerId"),
    Int64("broker_epoch", "0+", volatile=True),
    Int8("fenced", "0+", tag=0, enum="BrokerRegistrationFencingChange"),
    Int8(
        "in_controlled_shutdown", "1+", tag=1, enum="BrokerRegistrationInControlledShutdownChange"
    ),
    Array("log_dirs", "2+", tag=2).of(Uuid),
    Array("cordoned_log_dirs", "3+", nullable="3+", tag=3, default=None).of(Uuid),
)

ACCESS_CONTROL_ENTRY_RECORD = metadata(
    "AccessControlEntryRecord", key=18, versions="0", flexible="0+"
).of(
    Uuid("id", "0+", volatile=True),
    Int8("resource_type", "0+", enum="AclResourceType"),
    String("resource_name", "0+", subject="resourceName"),
    Int8("pattern_type", "0+", enum="AclPatternType"),
    *ACL_PERMISSION,
)

REMOVE_ACCESS_CONTROL_ENTRY_RECORD = metadata(
    "RemoveAccessControlEntryRecord", key=19, versions="0", flexible="0+"
).of(Uuid("id", "0+", volatile=True))

NO_OP_RECORD = metadata("NoOpRecord", key=20, versions="0", flexible="0+").of()

ZK_MIGRATION_STATE_RECORD = metadata(
    "ZkMigrationStateRecord", key=21, versions="0", flexible="0+"
).of(Int8("zk_migration_state", "0+"))

REMOVE_USER_SCRAM_CREDENTIAL_RECORD = metadata(
    "RemoveUserScramCredentialRecord", key=22, versions="0", flexible="0+"
).of(
    String("name", "0+", subject="principal"),
    Int8("mechanism", "0+", enum="ScramMechanism"),
)

BEGIN_TRANSACTION_RECORD = metadata(
    "BeginTransactionRecord", key=23, versions="0", flexible="0+"
).of(String("name", "0+", nullable="0+", tag=0, default=None, subject="freeText"))

END_TRANSACTION_RECORD = metadata("EndTransactionRecord", key=24, versions="0", flexible="0+").of()

ABORT_TRANSACTION_RECORD = metadata(
    "AbortTransactionRecord", key=25, versions="0", flexible="0+"
).of(String("reason", "0+", nullable="0+", tag=0, default=None, subject="freeText"))

REMOVE_DELEGATION_TOKEN_RECORD = metadata(
    "RemoveDelegationTokenRecord", key=26, versions="0", flexible="0+"
).of(String("token_id", "0+", volatile=True, subject="tokenId"))

REGISTER_CONTROLLER_RECORD = metadata(
    "RegisterControllerRecord", key=27, versions="0", flexible="0+"
).of(
    Int32("controller_id", "0+", subject="brokerId"),
    Uuid("incarnation_id", "0+", volatile=True),
    Bool("zk_migration_ready", "0+"),
    Array("end_points", "0+").of(*LISTENER),
    Array("features", "0+").of(*FEATURE),
)

CLEAR_ELR_RECORD = metadata("ClearElrRecord", key=28, versions="0", flexible="0+").of(
    String("topic_name", "0+", entity="topicName"),
)

UNREGISTER_CONTROLLER_RECORD = metadata(
    "UnregisterControllerRecord", key=29, versions="0", flexible="0+"
).of(Int32("controller_id", "0+", subject="brokerId"))
