"""Parses lines of brokers since 2.8: a JSON document with the header, both bodies and the times
(KIP-673)."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from kafkascope.analyzer.requestlog.fields import (
    NotUnderstood,
    connection_of,
    durations_ns,
    int32,
    layouts_of,
    unsupported,
)
from kafkascope.analyzer.requestlog.jsonbody import body_of, paths_of_bytes
from kafkascope.analyzer.requestlog.limits import LIMITS
from kafkascope.analyzer.requestlog.model import (
    CUT,
    NOT_LOGGED,
    NOT_UNDERSTOOD,
    TOO_DEEP,
    BrokerTimes,
    Completed,
    LoggedBody,
)
from kafkascope.captures.formats.text import MARKER
from kafkascope.dissectors.codec.jsonform import uuid_of
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import API_VERSIONS
from kafkascope.dissectors.values import Uuid

_RECORDS: Final = {
    0: ("request", (("topicData", "partitionData", "index", "recordsSizeInBytes"),)),
    1: (
        "response",
        (
            ("responses", "partitions", "partitionIndex", "recordsSizeInBytes"),
            ("responses", "partitionResponses", "partition", "recordSetSizeInBytes"),
        ),
    ),
}
"""Side and fields of the sizes of records, in Produce and Fetch."""

TIMES: Final = (
    "totalTimeMs",
    "requestQueueTimeMs",
    "localTimeMs",
    "remoteTimeMs",
    "responseQueueTimeMs",
    "sendTimeMs",
    "throttleTimeMs",
)


def document_of(message: bytes) -> dict[str, Any]:
    """Return the document of a message; `NotUnderstood` with the reason."""
    # What the pattern writes after the message seldom has a brace.
    text = message[len(MARKER) : message.rfind(b"}") + 1]
    if len(text) > LIMITS.containers and text.count(b"{") + text.count(b"[") > LIMITS.containers:
        raise NotUnderstood(NOT_UNDERSTOOD)
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        document = _slow_document(message[len(MARKER) :].decode("utf-8", "surrogateescape"))
    if type(document) is not dict:
        raise NotUnderstood(NOT_UNDERSTOOD)
    return document


def _slow_document(text: str) -> Any:
    """Parse again with the standard library, which stops after the document, takes bytes that are
    not UTF-8, and says where it fails."""
    try:
        document = json.JSONDecoder().raw_decode(text)[0]
        # Half of a surrogate pair, which no frame can hold.
        json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except RecursionError:
        raise NotUnderstood(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        # A string without its end is reported at its beginning.
        at_end = error.msg.startswith("Unterminated") or not text[error.pos :].strip()
        raise NotUnderstood(CUT if at_end else NOT_UNDERSTOOD) from None
    except ValueError:  # also an integer of thousands of digits
        raise NotUnderstood(NOT_UNDERSTOOD) from None
    return document


def parse_json(message: bytes, written_ns: int, level: str) -> Completed:
    """Return the completed request of a message; `NotUnderstood` with the reason."""
    document = document_of(message)
    try:
        header = document["requestHeader"]
        key, version = header["requestApiKey"], header["requestApiVersion"]
        correlation_id, client_id = header["correlationId"], header.get("clientId")
        software = document["clientInformation"]
        texts = (
            header["requestApiKeyName"],
            document["securityProtocol"],
            document["principal"],
            document["listener"],
            software["softwareName"],
            software["softwareVersion"],
            client_id or "",
        )
        numbers = (key, version, correlation_id)
        if {*map(type, texts)} != {str} or {*map(type, numbers)} != {int}:
            raise NotUnderstood(NOT_UNDERSTOOD)
        if not -(1 << 15) <= min(key, version) <= max(key, version) < 1 << 15:
            raise NotUnderstood(NOT_UNDERSTOOD)
        api_name, security_protocol, principal, listener, name, release, _ = texts
        request, response = json_bodies(document)
        total_ns, *times, conversions_ns = durations_ns(
            [*[document[name] for name in TIMES], document.get("messageConversionsTime", 0)]
        )
        return Completed(
            form="json",
            written_ns=written_ns,
            level=level,
            total_ns=total_ns,
            times=BrokerTimes(*times),
            api_key=key,
            api_name=api_name,
            api_version=version,
            correlation_id=int32(correlation_id),
            client_id=client_id,
            forwarded=document["isForwarded"] is True,
            deprecated=header.get("requestApiVersionDeprecated") is True,
            connection=connection_of(document["connection"]),
            security_protocol=security_protocol,
            principal=principal,
            listener=listener,
            software_name="" if name == "unknown" else name,
            software_version="" if release == "unknown" else release,
            request=request,
            response=response,
            record_sizes=_record_sizes(key, request, response, document) if key in _RECORDS else {},
            conversions_ns=conversions_ns,
            temporary_bytes=_count(document.get("temporaryMemoryBytes", 0)),
        )
    except (KeyError, TypeError, AttributeError, NotUnderstood) as error:
        raise NotUnderstood(NOT_UNDERSTOOD) from error


def json_bodies(document: dict[str, Any]) -> tuple[LoggedBody, LoggedBody]:
    """Return both bodies of a document, whose API and version are numbers."""
    header, request, response = document["requestHeader"], document["request"], document["response"]
    key, version = header["requestApiKey"], header["requestApiVersion"]
    layouts = layouts_of(key, version)
    if key == API_VERSIONS and version > 2 and request == {}:
        unread, layouts = unsupported(version)
        return unread, _side(layouts[1], response)
    if isinstance(layouts, str):
        unread = LoggedBody(None, None, layouts)
        return unread, unread if response else LoggedBody(None, None, NOT_LOGGED)
    return _side(layouts[0], request), _side(layouts[1], response)


def _side(layout: Layout, value: Any) -> LoggedBody:
    if value is None or value == "":
        return LoggedBody(None, None, NOT_LOGGED)
    try:
        body, layout, missing = body_of(layout, value)
    except DissectError as error:
        return LoggedBody(None, None, f"{error.path or 'body'}: {error.reason}")
    records = paths_of_bytes(layout, records=True)
    return LoggedBody(body, layout, "", (*records, *missing) if missing else records)


def _record_sizes(
    key: int, request: LoggedBody, response: LoggedBody, document: Any
) -> dict[tuple[str | Uuid, int], int]:
    """Return the sizes of records by topic and partition, from the JSON of bodies that were
    converted, so that its types are right."""
    side, forms = _RECORDS[key]
    if (request if side == "request" else response).body is None:
        return {}
    sizes: dict[tuple[str | Uuid, int], int] = {}
    for topics, partitions, index, size in forms:
        for topic in document[side].get(topics, ()):
            name = topic.get("topic", topic.get("name"))
            for partition in topic.get(partitions, ()):
                number = partition.get(size)
                if type(number) is int and 0 <= number < 1 << 31:
                    key_of_topic = uuid_of(topic["topicId"]) if name is None else name
                    sizes[key_of_topic, partition[index]] = number
    return sizes


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise NotUnderstood(NOT_UNDERSTOOD)
    return value
