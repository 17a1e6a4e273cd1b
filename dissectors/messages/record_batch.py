"""What stands in a records field before the records; the version is the magic.

Not on the list of messages: nothing on the wire has these as a body. `batches` reads them by hand,
trees and documents read this. The records of magic 2 consist of varints: see `record_reader`.
"""

from kafkascope.dissectors.schema import Bytes, Int8, Int16, Int32, Int64, Uint32, data

RECORD_BATCH = data("RecordBatch", versions="2").of(
    Int64("base_offset", "2"),
    Int32("batch_length", "2", doc="bytes of all that follows"),
    Int32("partition_leader_epoch", "2", doc="-1 from producers"),
    Int8("magic", "2"),
    Uint32("crc", "2", doc="CRC-32C of all that follows"),
    Int16("attributes", "2", doc="bits 0-2 codec, 3 log append time, 4 transactional, 5 control"),
    Int32("last_offset_delta", "2", doc="stays when compaction removes records"),
    Int64("base_timestamp", "2", unit="time_ms", volatile=True),
    Int64("max_timestamp", "2", unit="time_ms", volatile=True),
    Int64("producer_id", "2", enum="ProducerId", volatile=True),
    Int16("producer_epoch", "2", doc="-1 without a producer id"),
    Int32("base_sequence", "2", doc="-1 without a producer id and in control batches"),
    Int32("record_count", "2"),
)

MESSAGE_SET_ENTRY = data("MessageSetEntry", versions="0-1").of(
    Int64("offset", "0+", doc="of a compressed message set: of its last message"),
    Int32("message_size", "0+", doc="bytes of all that follows"),
    Uint32("crc", "0+", doc="CRC-32 of all that follows"),
    Int8("magic", "0+"),
    Int8("attributes", "0+", doc="bits 0-2 codec, 3 log append time"),
    Int64("timestamp", "1", unit="time_ms", volatile=True),
    Bytes("key", "0+", nullable="0+", subject="freeText"),
    Bytes(
        "value",
        "0+",
        nullable="0+",
        doc="with a codec a compressed message set",
        subject="freeText",
    ),
)
