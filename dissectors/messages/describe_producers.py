"""DescribeProducers (api key 61)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, request, response

DESCRIBE_PRODUCERS_REQUEST = request("DescribeProducers").of(
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName", map_key=True),
        Array("partition_indexes", "0+").of(Int32),
    ),
)

DESCRIBE_PRODUCERS_RESPONSE = response("DescribeProducers").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
            Array("active_producers", "0+").of(
                Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
                Int32("producer_epoch", "0+", volatile=True),
                Int32("last_sequence", "0+", default=-1),
                Int64("last_timestamp", "0+", default=-1, unit="time_ms", volatile=True),
                Int32("coordinator_epoch", "0+", volatile=True),
                Int64("current_txn_start_offset", "0+", default=-1),
            ),
        ),
    ),
)
