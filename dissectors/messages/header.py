"""Headers of requests and responses."""

from kafkascope.dissectors.schema import Int16, Int32, String, header

REQUEST_HEADER = header("RequestHeader", versions="0-2", flexible="2+").of(
    Int16("request_api_key", "0+", enum="ApiKey"),
    Int16("request_api_version", "0+"),
    Int32("correlation_id", "0+", volatile=True),
    String("client_id", "1+", nullable="1+", plain=True, subject="clientId"),
)

RESPONSE_HEADER = header("ResponseHeader", versions="0-1", flexible="1+").of(
    Int32("correlation_id", "0+", volatile=True),
)
