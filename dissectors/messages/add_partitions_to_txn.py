"""AddPartitionsToTxn (api key 24)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, Int64, String, request, response

ADD_PARTITIONS_TO_TXN_TOPIC = (
    String("name", "0+", entity="topicName", map_key=True),
    Array("partitions", "0+").of(Int32),
)

ADD_PARTITIONS_TO_TXN_REQUEST = request("AddPartitionsToTxn").of(
    Array("transactions", "4+").of(
        String("transactional_id", "4+", entity="transactionalId", map_key=True),
        Int64("producer_id", "4+", entity="producerId", enum="ProducerId", volatile=True),
        Int16("producer_epoch", "4+", volatile=True),
        Bool("verify_only", "4+", default=False),
        Array("topics", "4+").of(*ADD_PARTITIONS_TO_TXN_TOPIC),
    ),
    String("v3_and_below_transactional_id", "0-3", entity="transactionalId"),
    Int64("v3_and_below_producer_id", "0-3", entity="producerId", volatile=True),
    Int16("v3_and_below_producer_epoch", "0-3", volatile=True),
    Array("v3_and_below_topics", "0-3").of(*ADD_PARTITIONS_TO_TXN_TOPIC),
)

ADD_PARTITIONS_TO_TXN_PARTITION_RESULT = (
    Int32("partition_index", "0+", map_key=True),
    Int16("partition_error_code", "0+", enum="ErrorCode"),
)

ADD_PARTITIONS_TO_TXN_TOPIC_RESULT = (
    String("name", "0+", entity="topicName", map_key=True),
    Array("results_by_partition", "0+").of(*ADD_PARTITIONS_TO_TXN_PARTITION_RESULT),
)

ADD_PARTITIONS_TO_TXN_RESPONSE = response("AddPartitionsToTxn").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "4+", enum="ErrorCode"),
    Array("results_by_transaction", "4+").of(
        String("transactional_id", "4+", entity="transactionalId", map_key=True),
        Array("topic_results", "4+").of(*ADD_PARTITIONS_TO_TXN_TOPIC_RESULT),
    ),
    Array("results_by_topic_v3_and_below", "0-3").of(*ADD_PARTITIONS_TO_TXN_TOPIC_RESULT),
)
