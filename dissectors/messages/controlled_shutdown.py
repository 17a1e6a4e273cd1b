"""ControlledShutdown (api key 7)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, request, response

CONTROLLED_SHUTDOWN_REQUEST = request("ControlledShutdown").of(
    Int32("broker_id", "0+", entity="brokerId"),
    Int64("broker_epoch", "2+", default=-1, volatile=True),
)

CONTROLLED_SHUTDOWN_RESPONSE = response("ControlledShutdown").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("remaining_partitions", "0+").of(
        String("topic_name", "0+", entity="topicName", map_key=True),
        Int32("partition_index", "0+", map_key=True),
    ),
)
