"""DescribeLogDirs (api key 35)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, Int64, String, request, response

DESCRIBE_LOG_DIRS_REQUEST = request("DescribeLogDirs").of(
    Array("topics", "0+", nullable="0+").of(
        String("topic", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(Int32),
    ),
)

DESCRIBE_LOG_DIRS_RESPONSE = response("DescribeLogDirs").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "3+", enum="ErrorCode"),
    Array("results", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("log_dir", "0+", subject="path"),
        Array("topics", "0+").of(
            String("name", "0+", entity="topicName"),
            Array("partitions", "0+").of(
                Int32("partition_index", "0+"),
                Int64("partition_size", "0+", volatile=True),
                Int64("offset_lag", "0+", volatile=True),
                Bool("is_future_key", "0+"),
            ),
        ),
        Int64("total_bytes", "4+", default=-1, volatile=True),
        Int64("usable_bytes", "4+", default=-1, volatile=True),
        Bool("is_cordoned", "5+", default=False),
    ),
)
