"""SaslHandshake (api key 17)."""

from kafkascope.dissectors.schema import Array, Int16, String, request, response

SASL_HANDSHAKE_REQUEST = request("SaslHandshake").of(
    String("mechanism", "0+", enum="SaslMechanism"),
)

SASL_HANDSHAKE_RESPONSE = response("SaslHandshake").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("mechanisms", "0+", enum="SaslMechanism").of(String),
)
