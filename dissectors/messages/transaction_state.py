"""Records of `__transaction_state`."""

from kafkascope.dissectors.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    coordinator_key,
    coordinator_value,
)

TRANSACTION_LOG_KEY = coordinator_key("TransactionLogKey", key=0, versions="0").of(
    String("transactional_id", "0+", subject="transactionalId"),
)

TRANSACTION_LOG_VALUE = coordinator_value(
    "TransactionLogValue", key=0, versions="0-1", flexible="1+"
).of(
    Int64("producer_id", "0+", enum="ProducerId", volatile=True),
    Int64("previous_producer_id", "1+", tag=0, default=-1, volatile=True),
    Int64("next_producer_id", "1+", tag=1, default=-1, volatile=True),
    Int16("producer_epoch", "0+", volatile=True),
    Int16("next_producer_epoch", "1+", tag=3, default=-1, volatile=True),
    Int32("transaction_timeout_ms", "0+"),
    Int8("transaction_status", "0+", enum="TransactionLogState"),
    Array("transaction_partitions", "0+", nullable="0+").of(
        String("topic", "0+", subject="topicName"),
        Array("partition_ids", "0+").of(Int32),
    ),
    Int64("transaction_last_update_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Int64("transaction_start_timestamp_ms", "0+", unit="time_ms", volatile=True),
    Int16("client_transaction_version", "1+", tag=2, default=0),
)
