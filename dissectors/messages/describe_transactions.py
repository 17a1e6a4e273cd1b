"""DescribeTransactions (api key 65)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, request, response

DESCRIBE_TRANSACTIONS_REQUEST = request("DescribeTransactions").of(
    Array("transactional_ids", "0+", entity="transactionalId").of(String),
)

DESCRIBE_TRANSACTIONS_RESPONSE = response("DescribeTransactions").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("transaction_states", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("transactional_id", "0+", entity="transactionalId"),
        String("transaction_state", "0+", enum="TransactionStateName"),
        Int32("transaction_timeout_ms", "0+"),
        Int64("transaction_start_time_ms", "0+", unit="time_ms", volatile=True),
        Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
        Int16("producer_epoch", "0+", volatile=True),
        Array("topics", "0+").of(
            String("topic", "0+", entity="topicName", map_key=True),
            Array("partitions", "0+").of(Int32),
        ),
    ),
)
