"""ElectLeaders (api key 43)."""

from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, String, request, response

ELECT_LEADERS_REQUEST = request("ElectLeaders").of(
    Int8("election_type", "1+", enum="ElectionType"),
    Array("topic_partitions", "0+", nullable="0+").of(
        String("topic", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(Int32),
    ),
    Int32("timeout_ms", "0+", default=60000),
)

ELECT_LEADERS_RESPONSE = response("ElectLeaders").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "1+", enum="ErrorCode"),
    Array("replica_election_results", "0+").of(
        String("topic", "0+", entity="topicName"),
        Array("partition_result", "0+").of(
            Int32("partition_id", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", subject="freeText"),
        ),
    ),
)
