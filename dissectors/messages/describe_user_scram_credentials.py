"""DescribeUserScramCredentials (api key 50)."""

from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, String, request, response

DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST = request("DescribeUserScramCredentials").of(
    Array("users", "0+", nullable="0+").of(String("name", "0+", subject="principal")),
)

DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE = response("DescribeUserScramCredentials").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
    Array("results", "0+").of(
        String("user", "0+", subject="principal"),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
        Array("credential_infos", "0+").of(
            Int8("mechanism", "0+", enum="ScramMechanism"),
            Int32("iterations", "0+"),
        ),
    ),
)
