"""DescribeCluster (api key 60)."""

from kafkascope.dissectors.schema import Array, Bool, Int8, Int16, Int32, String, request, response

DESCRIBE_CLUSTER_REQUEST = request("DescribeCluster").of(
    Bool("include_cluster_authorized_operations", "0+"),
    Int8("endpoint_type", "1+", default=1, enum="EndpointType"),
    Bool("include_fenced_brokers", "2+"),
)

DESCRIBE_CLUSTER_RESPONSE = response("DescribeCluster").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    Int8("endpoint_type", "1+", default=1, enum="EndpointType"),
    String("cluster_id", "0+", volatile=True, subject="clusterId"),
    Int32("controller_id", "0+", default=-1, entity="brokerId"),
    Array("brokers", "0+").of(
        Int32("broker_id", "0+", entity="brokerId", map_key=True),
        String("host", "0+", endpoint=True, subject="address"),
        Int32("port", "0+", endpoint=True),
        String("rack", "0+", nullable="0+", default=None, subject="rack"),
        Bool("is_fenced", "2+"),
    ),
    Int32("cluster_authorized_operations", "0+", default=-2147483648, enum="AuthorizedOperations"),
)
