"""Parses lines of brokers before 2.8: a header, structs, and the times after the connection.

    1.0 to 2.7   RequestHeader(apiKey=FETCH, ...) -- {...},response:{...} from connection ...;times
    0.9 to 0.11  {api_key=1,api_version=3,...} -- {...} from connection ...;times
    0.8, 0.9     Name: FetchRequest; Version: 0; ... from client ...;times

Nothing is quoted, so a line is cut from both ends: the first end of a header, the last connection.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kafkascope.analyzer.requestlog.fields import (
    KEYS,
    NotUnderstood,
    connection_of,
    durations_ns,
    int32,
    layouts_of,
    unsupported,
)
from kafkascope.analyzer.requestlog.model import (
    CUT,
    NO_RESPONSES,
    NOT_LOGGED,
    NOT_UNDERSTOOD,
    BrokerTimes,
    Completed,
    LineHead,
    LoggedBody,
)
from kafkascope.analyzer.requestlog.scalaline import read_scala
from kafkascope.analyzer.requestlog.textbody import name_partitions, read_produce, read_text
from kafkascope.captures.formats.text import MARKER
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import API_VERSIONS, APIS

_RESPONSE: Final = ",response:"
_HEADER: Final = re.compile(
    r"RequestHeader\(apiKey=(\w+), apiVersion=(-?\d{1,5}), clientId=(.*?), "
    r"correlationId=(-?\d{1,10})(?:, headerVersion=\d{1,5})?\) -- ",
    re.S,
)
_STRUCT_HEADER: Final = re.compile(
    r"\{api_key=(-?\d{1,5}),api_version=(-?\d{1,5}),correlation_id=(-?\d{1,10}),"
    r"client_id=(.*?)\} -- ",
    re.S,
)
_CONNECTION: Final = re.compile(r" from (?:connection|client) (\S+?);(?=totalTime:)")
_TIMES: Final = re.compile(
    r"\b((?:total|requestQueue|queue|local|remote|throttle|responseQueue|send)Time|temporaryMemoryBytes"
    r"|messageConversionsTime):(-?\d{1,20}(?:[.,]\d{1,20})?(?:E-?\d{1,3})?)"
)
"""0.11 writes decimals in the locale of the JVM: commas within numbers and between them."""
_STAGES: Final = (
    "requestQueueTime",
    "localTime",
    "remoteTime",
    "responseQueueTime",
    "sendTime",
    "throttleTime",
)
"""In the order of `BrokerTimes`."""
_PROTOCOL: Final = re.compile(r",securityProtocol:(\w+),principal:")
_LISTENER: Final = re.compile(r",listener:([^\s,]+)")
_LOGGER: Final = re.compile(r" (?:\([\w.$]*\)|\[[^\[]*\]?$)")
_SOFTWARE: Final = re.compile(
    r",clientInformation:ClientInformation\(softwareName=([^,]*), softwareVersion=([^)]*)\)"
)
_LAST_FIELDS: Final = (",listener:", ",clientInformation:ClientInformation(softwareName=")
PRODUCE: Final = 0
_FORMER_NAMES: Final = {"alterisr": "alterpartition", "electpreferredleaders": "electleaders"}


def parse_text(message: bytes, written_ns: int, level: str) -> Completed:
    """Return the completed request of a message; `NotUnderstood` with the reason."""
    text = message[len(MARKER) :].decode("utf-8", "surrogateescape")
    # The last one: a client id or a text of the bodies may look like a connection.
    *_, connection = (None, *_CONNECTION.finditer(text))
    if connection is None:
        raise NotUnderstood(CUT)
    head = _head(text[: connection.start()])
    tail = text[connection.end() - 1 :]
    software = _SOFTWARE.search(tail)
    numbers = {name: value.replace(",", ".") for name, value in _TIMES.findall(tail)}
    if "queueTime" in numbers:  # 0.8.0
        numbers["requestQueueTime"] = numbers.pop("queueTime")
    times = dict(zip(numbers, durations_ns([*map(float, numbers.values())]), strict=True))
    protocol, principal, listener = _identity(
        tail if software is None else tail[: software.start()]
    )
    name, release = ("", "") if software is None else software.groups()
    if "totalTime" not in times or "sendTime" not in times:
        raise NotUnderstood(CUT)
    by_client = connection[0].startswith(" from client")
    if not by_client and (_is_cut(tail) or not principal.partition(":")[2]):
        raise NotUnderstood(CUT)
    if text.startswith("RequestHeader(") and not listener:  # since 0.10.2
        raise NotUnderstood(CUT)
    return Completed(
        form="text",
        written_ns=written_ns,
        level=level,
        total_ns=times["totalTime"],
        times=BrokerTimes(*map(times.get, _STAGES)),
        **head._asdict(),
        forwarded=False,
        deprecated=False,
        connection=connection_of(connection[1]),
        security_protocol=protocol,
        principal=principal,
        listener=listener,
        software_name="" if name == "unknown" else name,
        software_version="" if release == "unknown" else release,
        conversions_ns=times.get("messageConversionsTime", 0),
        temporary_bytes=int(float(numbers.get("temporaryMemoryBytes", 0))),
    )


def _is_cut(tail: str) -> bool:
    """Return whether a line ends within the name of a field, or in that of its library."""
    if ",clientInformation:" in tail and _SOFTWARE.search(tail) is None:
        return True
    return any(tail.endswith(name[:n]) for name in _LAST_FIELDS for n in range(1, len(name)))


def _identity(tail: str) -> tuple[str, str, str]:
    """Return the security protocol, the principal and the listener."""
    protocol = _PROTOCOL.search(tail)
    if protocol is None:
        return "", "", ""
    # Principals may hold commas, colons and blanks: up to the last listener, or in releases without
    # to the logger that the pattern writes after the message.
    *_, listener = (None, *_LISTENER.finditer(tail, protocol.end()))
    if listener is not None:
        return protocol[1], tail[protocol.end() : listener.start()], listener[1]
    logger = _LOGGER.search(tail, protocol.end())
    principal = tail[protocol.end() : logger.start() if logger else len(tail)]
    return protocol[1], principal.rstrip(), ""


def _head(text: str) -> LineHead:
    if match := _HEADER.match(text):
        name, version, client_id, correlation_id = match.groups()
        name_key = name.replace("_", "").lower()
        key = KEYS.get(_FORMER_NAMES.get(name_key, name_key), -1)
    elif match := _STRUCT_HEADER.match(text):
        key_text, version, correlation_id, client_id = match.groups()
        key = int(key_text)
        name = APIS[key].name if key in APIS else key_text
    elif scala := read_scala(text):
        return scala
    else:
        raise NotUnderstood(NOT_UNDERSTOOD)
    client = None if client_id == "null" else client_id
    bodies = _bodies(key, name, int(version), text[match.end() :], match.re is _HEADER)
    return LineHead(key, name, int(version), int32(int(correlation_id)), client, *bodies)


def _bodies(
    key: int, name: str, version: int, text: str, with_response: bool
) -> tuple[LoggedBody, LoggedBody, dict[Any, int]]:
    """Return the bodies in what is after the header, and sizes of records."""
    sizes: dict[Any, int] = {}
    layouts = layouts_of(key, version) if key >= 0 else f"unknown API {name}"
    if key == API_VERSIONS and version > 2 and text.startswith("{}"):
        request, layouts = unsupported(version)
        end = 2
    elif isinstance(layouts, str):
        request, end = LoggedBody(None, None, layouts), 0
    else:
        request, end, sizes = _side(layouts[0], text, 0)
    if not with_response:
        return request, LoggedBody(None, None, NO_RESPONSES), sizes
    # The request shows where it ends; one that was not understood may end too early.
    at = end if text.startswith(_RESPONSE, end) else text.find(_RESPONSE)
    at += len(_RESPONSE)
    if at == len(text):
        return request, LoggedBody(None, None, NOT_LOGGED), sizes
    if isinstance(layouts, str):
        return request, LoggedBody(None, None, layouts), sizes
    response, _, fetched = _side(layouts[1], text, at)
    if key == PRODUCE:
        request = name_partitions(request, response)
    return request, response, sizes | fetched


def _side(layout: Layout, text: str, at: int) -> tuple[LoggedBody, int, dict[Any, int]]:
    try:
        if layout.message.name == "ProduceRequest":
            return read_produce(layout, text, at)
        return read_text(layout, text, at)
    except DissectError as error:
        return LoggedBody(None, None, error.reason), at, {}
