"""AlterUserScramCredentials (api key 51)."""

from kafkascope.dissectors.schema import Array, Bytes, Int8, Int16, Int32, String, request, response

ALTER_USER_SCRAM_CREDENTIALS_REQUEST = request("AlterUserScramCredentials").of(
    Array("deletions", "0+").of(
        String("name", "0+", subject="principal"),
        Int8("mechanism", "0+", enum="ScramMechanism"),
    ),
    Array("upsertions", "0+").of(
        String("name", "0+", subject="principal"),
        Int8("mechanism", "0+", enum="ScramMechanism"),
        Int32("iterations", "0+"),
        Bytes("salt", "0+", secret=True),
        Bytes("salted_password", "0+", secret=True),
    ),
)

ALTER_USER_SCRAM_CREDENTIALS_RESPONSE = response("AlterUserScramCredentials").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("results", "0+").of(
        String("user", "0+", subject="principal"),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", subject="freeText"),
    ),
)
