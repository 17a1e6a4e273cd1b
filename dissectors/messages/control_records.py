"""Keys and values of control records."""

from kafkascope.dissectors.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uint16,
    Uuid,
    data,
    variant,
)

CONTROL_RECORD_TYPE_SCHEMA = data("ControlRecordTypeSchema", versions="0").of(
    Int16("type", "0+", enum="ControlRecordType"),
)

END_TXN_MARKER = data("EndTxnMarker", versions="0").of(
    Int32("coordinator_epoch", "0+", volatile=True),
)

K_RAFT_VERSION_RECORD = data("KRaftVersionRecord", versions="0", flexible="0+").of(
    Int16("version", "0+"),
    Int16("kraft_version", "0+", enum="FeatureLevel kraft.version"),
)

VOTER = (
    Int32("voter_id", "0+", subject="brokerId"),
    Uuid("voter_directory_id", "1+", volatile=True),
)

LEADER_CHANGE_MESSAGE = (
    data("LeaderChangeMessage", versions="0-1", flexible="0+")
    .of(
        Int16("version", "0+"),
        Int32("leader_id", "0+", entity="brokerId"),
        Array("voters", "0+").of(*VOTER),
        Array("granting_voters", "0+").of(*VOTER),
    )
    .but(
        variant(0, releases="2.8.0-2.8.2", flexible=True).of(
            Int32("leader_id", "0+", subject="brokerId"),
            Array("voters", "0+").of(Int32("voter_id", "0+", subject="brokerId")),
            Array("granting_voters", "0+").of(Int32("voter_id", "0+", subject="brokerId")),
        ),
        variant(0, releases="2.7.0-2.7.2", flexible=True).of(
            Int32("leader_id", "0+", subject="brokerId"),
            Array("voters", "0+").of(Int32("voter_id", "0+", subject="brokerId")),
        ),
    )
)

SNAPSHOT_FOOTER_RECORD = data("SnapshotFooterRecord", versions="0", flexible="0+").of(
    Int16("version", "0+"),
)

SNAPSHOT_HEADER_RECORD = data("SnapshotHeaderRecord", versions="0", flexible="0+").of(
    Int16("version", "0+"),
    Int64("last_contained_log_timestamp", "0+", unit="time_ms", volatile=True),
)

VOTERS_RECORD = data("VotersRecord", versions="0", flexible="0+").of(
    Int16("version", "0+"),
    Array("voters", "0+").of(
        Int32("voter_id", "0+", entity="brokerId"),
        Uuid("voter_directory_id", "0+", volatile=True),
        Array("endpoints", "0+").of(
            String("name", "0+", map_key=True, word="Listener"),
            String("host", "0+", subject="address"),
            Uint16("port", "0+"),
        ),
        Struct("kraft_version_feature", "0+").of(
            Int16("min_supported_version", "0+", enum="FeatureLevel kraft.version"),
            Int16("max_supported_version", "0+", enum="FeatureLevel kraft.version"),
        ),
    ),
)
