"""Fields that all forms of lines share: connections, durations, layouts of an API and version."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

from kafkascope.analyzer.requestlog.limits import LIMITS
from kafkascope.analyzer.requestlog.model import (
    NOT_UNDERSTOOD,
    Address,
    LoggedBody,
    LoggedConnection,
)
from kafkascope.dissectors.errors import SchemaError, UnknownApi, UnknownVersion
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import API_VERSIONS, APIS, layout_of
from kafkascope.times import MS

KEYS: Final = {api.name.lower(): key for key, api in APIS.items()}
"""Keys of APIs by name, in small letters."""


_CONNECTION: Final = re.compile(r"/?(\S+?):(\d{1,5})-/?(\S+?):(\d{1,5})(?:-(\d+(?:-\d+)*))?")
_CLIENT: Final = re.compile(r"[^/\s]*/?(\S+):(\d{1,5})")


class NotUnderstood(ValueError):
    """What is in a line is not what a broker writes."""


@lru_cache(4096)
def connection_of(text: str) -> LoggedConnection:
    """Return the connection of its id, `LOCAL:PORT-REMOTE:PORT-INDEX`; of 0.8 `/REMOTE:PORT`.
    `NotUnderstood`."""
    if match := _CONNECTION.fullmatch(text):
        broker_host, broker_port, client_host, client_port, channel = match.groups()
        broker = _address(broker_host, broker_port)
        return LoggedConnection(broker, _address(client_host, client_port), channel or "")
    if match := _CLIENT.fullmatch(text):
        return LoggedConnection(None, _address(*match.groups()), "")
    raise NotUnderstood(NOT_UNDERSTOOD)


def _address(host: str, port: str) -> Address:
    """Java prints IPv6 uncompressed, without brackets in most releases."""
    if int(port) > 65535:
        raise NotUnderstood(NOT_UNDERSTOOD)
    try:
        return str(ipaddress.ip_address(host.strip("[]"))), int(port)
    except ValueError:
        # A name: hosts are numbers in every release that was seen.
        return host, int(port)


def int32(number: int) -> int:
    """Return a correlation id that a frame can hold; `NotUnderstood` for others."""
    if not -(1 << 31) <= number < 1 << 31:
        raise NotUnderstood(NOT_UNDERSTOOD)
    return number


def durations_ns(ms: list[float]) -> list[int]:
    """Return nanoseconds of milliseconds; `NotUnderstood` beyond ten years."""
    if not ms or not {*map(type, ms)} <= {float, int}:
        raise NotUnderstood(NOT_UNDERSTOOD)
    if not -LIMITS.request_ms <= min(ms) <= max(ms) <= LIMITS.request_ms:
        raise NotUnderstood(NOT_UNDERSTOOD)
    return [round(each * MS) for each in ms]


@lru_cache(4096)
def layouts_of(key: int, version: int) -> tuple[Layout, Layout] | str:
    """Return the layouts of the request and response, or why there are none."""
    if key not in APIS:
        return f"unknown API {key}"
    name = APIS[key].name
    try:
        return layout_of(f"{name}Request", version), layout_of(f"{name}Response", version)
    except (UnknownApi, UnknownVersion, SchemaError):
        return f"unknown version {version} of {name}"


def unsupported(version: int) -> tuple[LoggedBody, tuple[Layout, Layout]]:
    """Return the request of an ApiVersions whose version the broker does not support, which it has
    not read, and the layouts of its response: those of version 0 (KIP-511). Such requests are empty
    in the log, those of versions 3 and later have a name otherwise."""
    layouts = layouts_of(API_VERSIONS, 0)
    assert not isinstance(layouts, str)
    gap = f"the broker does not support version {version} of ApiVersions"
    return LoggedBody(None, None, gap), layouts
