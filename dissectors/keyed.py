"""Decodes messages by their keys, of Kafka's APIs and of ZooKeeper's types: the only place that
chooses between the two protocols."""

from __future__ import annotations

from typing import Literal

from kafkascope.dissectors import registry
from kafkascope.dissectors.reference.codes import error_name as _kafka_error
from kafkascope.dissectors.registry import APIS, Decoded, RequestHeader
from kafkascope.dissectors.zookeeper import frames
from kafkascope.dissectors.zookeeper.types import error_name as _zookeeper_error
from kafkascope.dissectors.zookeeper.types import is_zookeeper, name_of_key


def api_name(key: int) -> str:
    """Return Kafka's name of an API, ZooKeeper's name of a type, or `Api 123`."""
    if is_zookeeper(key):
        return name_of_key(key)
    api = APIS.get(key)
    return f"Api {key}" if api is None else api.name


def error_name(code: int, key: int | None) -> str:
    return _zookeeper_error(code) if is_zookeeper(key) else _kafka_error(code)


def read_header(payload: bytes, key: int | None) -> RequestHeader:
    """Return the header of a request; `DissectError` where it is missing. ZooKeeper requests need
    the key, which their handshake does not contain."""
    if key is not None and is_zookeeper(key):
        return frames.header_by(key, payload)
    return registry.read_request_header(payload)


def decode_request(payload: bytes, head: RequestHeader) -> Decoded:
    """Decode the payload of a request, of which the header is known; `DissectError`."""
    if is_zookeeper(head.api_key):
        return frames.decode_request(payload, head)
    return registry.decode_request(payload, head)


def decode_response(payload: bytes, key: int, version: int) -> Decoded:
    """Decode the payload of an answer to a request of a key and version; `DissectError`."""
    if is_zookeeper(key):
        return frames.decode_response(payload, key)
    return registry.decode_response(payload, key, version)


def decode(payload: bytes, key: int, version: int, side: Literal["request", "response"]) -> Decoded:
    """Decode the payload of one side; `DissectError`. Of a request the payload tells the
    version."""
    if side == "response":
        return decode_response(payload, key, version)
    return decode_request(payload, read_header(payload, key))
