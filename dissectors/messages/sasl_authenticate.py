"""SaslAuthenticate (api key 36)."""

from kafkascope.dissectors.schema import Bytes, Int16, Int64, String, request, response

SASL_AUTHENTICATE_REQUEST = request("SaslAuthenticate").of(
    Bytes("auth_bytes", "0+", secret=True, volatile=True),
)

SASL_AUTHENTICATE_RESPONSE = response("SaslAuthenticate").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
    Bytes("auth_bytes", "0+", secret=True, volatile=True),
    Int64("session_lifetime_ms", "1+", default=0, volatile=True),
)
