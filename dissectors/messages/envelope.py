"""Envelope (api key 58)."""

from kafkascope.dissectors.schema import Bytes, Int16, request, response

ENVELOPE_REQUEST = request("Envelope").of(
    Bytes("request_data", "0+", secret=True, doc="header and body; may hold the secrets of both"),
    Bytes("request_principal", "0+", nullable="0+"),
    Bytes("client_host_address", "0+"),
)

ENVELOPE_RESPONSE = response("Envelope").of(
    Bytes("response_data", "0+", nullable="0+", default=None, secret=True, doc="as request_data"),
    Int16("error_code", "0+", enum="ErrorCode"),
)
