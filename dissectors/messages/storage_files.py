"""Structures of a broker's own files."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, Uint32, Uuid, data

ABORTED_TXN = data("AbortedTxn", versions="0").of(
    Int64("producer_id", "0+", enum="ProducerId", volatile=True),
    Int64("first_offset", "0+"),
    Int64("last_offset", "0+"),
    Int64("last_stable_offset", "0+"),
)

QUORUM_STATE_DATA = data("QuorumStateData", versions="0-1", flexible="0+").of(
    String("cluster_id", "0", volatile=True, subject="clusterId"),
    Int32("leader_id", "0+", default=-1, subject="brokerId"),
    Int32("leader_epoch", "0+", default=-1, volatile=True),
    Int32("voted_id", "0+", default=-1, subject="brokerId"),
    Uuid("voted_directory_id", "1+", volatile=True),
    Int64("applied_offset", "0"),
    Array("current_voters", "0", nullable="0+").of(Int32("voter_id", "0+", subject="brokerId")),
)

PRODUCER_SNAPSHOT = data("ProducerSnapshot", versions="1").of(
    Uint32("crc", "1+"),
    Array("producer_entries", "1+").of(
        Int64("producer_id", "1+", enum="ProducerId", volatile=True),
        Int16("epoch", "1+", volatile=True),
        Int32("last_sequence", "1+"),
        Int64("last_offset", "1+"),
        Int32("offset_delta", "1+"),
        Int64("timestamp", "1+", unit="time_ms", volatile=True),
        Int32("coordinator_epoch", "1+", volatile=True),
        Int64("current_txn_first_offset", "1+"),
    ),
)
