"""Prints completed requests as lines of the request logger since 2.8 (KIP-673): the inverse of
`jsonline`, with bodies as Kafka's own JSON converters write them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.requestlog.fields import unsupported
from kafkascope.analyzer.requestlog.jsonbody import json_names
from kafkascope.analyzer.requestlog.jsonline import TIMES
from kafkascope.captures.formats.text import MARKER
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Layout, StructWire, Wire, default_of
from kafkascope.dissectors.registry import API_VERSIONS, APIS
from kafkascope.dissectors.values import NonFinite, Uuid
from kafkascope.times import MS, SECOND

if TYPE_CHECKING:
    from kafkascope.analyzer.requestlog.model import Completed, LoggedBody
    from kafkascope.dissectors.codec.reader import Body

_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_THROTTLE: Final = "throttleTimeMs"
PRINTED: Final = (*TIMES[:4], _THROTTLE, *(name for name in TIMES[4:] if name != _THROTTLE))
"""Times in the order of Kafka's converter."""

Sizes = Mapping[Any, int]
"""Bytes of records by topic (name or id) and partition."""


def line_of(completed: Completed, *, with_records: bool = False) -> bytes:
    """Return the line of a completed request, without its end. Times are UTC, and say so.
    `with_records`: its bodies come from a capture, and have their records."""
    key, version = completed.api_key, completed.api_version
    sizes = None if with_records else completed.record_sizes
    request, response = (_side(side, sizes) for side in (completed.request, completed.response))
    if key == API_VERSIONS and completed.request == unsupported(version)[0]:
        request = {}
    name = _WORD.sub("_", APIS[key].name).upper() if key in APIS else completed.api_name
    header: dict[str, Any] = {"requestApiKey": key, "requestApiVersion": version}
    header["correlationId"] = completed.correlation_id
    if completed.client_id is not None:
        header["clientId"] = completed.client_id
    header["requestApiKeyName"] = name
    if completed.deprecated:
        header["requestApiVersionDeprecated"] = True
    broker, (host, port), channel = completed.connection
    local = "/" if broker is None else f"{broker[0]}:{broker[1]}-"
    times = dict(zip(TIMES, (completed.total_ns, *completed.times), strict=True))
    document: dict[str, Any] = {
        "isForwarded": completed.forwarded,
        "requestHeader": header,
        "request": request,
        "response": response,
        "connection": f"{local}{host}:{port}{channel and '-' + channel}",
        **{name: _milliseconds(name, times[name] or 0) for name in PRINTED},
        "securityProtocol": completed.security_protocol,
        "principal": completed.principal,
        "listener": completed.listener,
        "clientInformation": {
            "softwareName": completed.software_name or "unknown",
            "softwareVersion": completed.software_version or "unknown",
        },
    }
    if completed.temporary_bytes:
        document["temporaryMemoryBytes"] = completed.temporary_bytes
    if completed.conversions_ns:
        document["messageConversionsTime"] = completed.conversions_ns / MS
    message = MARKER + json.dumps(document, separators=(",", ":")).encode()
    return prefix_of(completed.written_ns, completed.level) + message + b" (kafka.request.logger)"


def _milliseconds(name: str, time_ns: int) -> float:
    return time_ns // MS if name == _THROTTLE else time_ns / MS


def prefix_of(written_ns: int, level: str) -> bytes:
    """Return what Kafka's pattern writes before a message, with a zone after the time."""
    seconds, rest = divmod(written_ns, SECOND)
    stamp = datetime.fromtimestamp(seconds, UTC).isoformat(" ")[:19]
    fraction = f"{rest:09d}" if rest % MS else f"{rest // MS:03d}"
    return f"[{stamp},{fraction}Z] {level or 'DEBUG'} ".encode()


def _side(logged: LoggedBody, sizes: Sizes | None) -> Any:
    if logged.body is None or logged.layout is None:
        return ""
    return printed(logged.layout, logged.body, sizes, frozenset(logged.unknown))


def printed(
    layout: Layout, body: Body, sizes: Sizes | None = None, unknown: Collection[str] = ()
) -> Any:
    """Return the JSON of a body. `sizes`: of its records, which the body lacks; None: the body has
    them. Fields that are `unknown` (dotted, as in `LoggedBody`) are left out."""

    def of_value(wire: Wire, value: Any, path: str, topic: Any) -> Any:
        if value is None:
            return None
        if isinstance(wire, StructWire):
            return of_struct(wire, value, path, topic)
        if isinstance(wire, ArrayWire):
            return [of_value(wire.element, element, path, topic) for element in value]
        if isinstance(wire, BytesWire):
            return base64.b64encode(value).decode()
        return str(value) if isinstance(value, Uuid | NonFinite) else value

    def of_struct(wire: StructWire, value: Body, path: str, topic: Any) -> dict[str, Any]:
        fields = {}
        topic = topic or value.get("topic") or value.get("name") or value.get("topic_id")
        for slot in (*wire.slots, *wire.tags):
            name, inner = json_names(layout.message.name, slot.name)[0], value[slot.name]
            if isinstance(slot.wire, BytesWire) and slot.wire.records:
                place = topic, value.get("partition_index", value.get("index"))
                size = len(inner or b"") if sizes is None else sizes.get(place)
                # Without a size as in ShareFetch.
                fields[name if size is None else f"{name}SizeInBytes"] = (
                    "" if size is None else size
                )
            elif path + slot.name not in unknown and (
                slot not in wire.tags or inner != default_of(slot)
            ):
                fields[name] = of_value(slot.wire, inner, f"{path}{slot.name}.", topic)
        return fields

    return of_value(layout.body, body, "", None)
