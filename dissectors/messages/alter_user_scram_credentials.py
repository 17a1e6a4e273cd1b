"""AlterUserScramCredentials (api key 51)."""

from dissectors.schema import Array, Bytes, Int8, Int16, Int32, String, request, response

ALTER_USER_SCRAM_CREDENTIALS_REQUEST = request(
    "AlterUserScramCredentials", key=51, versions="0", flexible="0+"
).of(
    Array("deletions", "0+").of(
        String("name", "0+"),
        Int8("mechanism", "0+"),
    ),
    Array("upsertions", "0+").of(
        String("name", "0+"),
        Int8("mechanism", "0+"),
        Int32("iterations", "0+"),
        Bytes("salt", "0+", secret=True),
        Bytes("salted_password", "0+", secret=True),
    ),
)

ALTER_USER_SCRAM_CREDENTIALS_RESPONSE = response(
    "AlterUserScramCredentials", key=51, versions="0", flexible="0+"
).of(
    Int32("throttle_time_ms", "0+"),
    Array("results", "0+").of(
        String("user", "0+"),
        Int16("error_code", "0+"),
        String("error_message", "0+", nullable="0+"),
    ),
)
