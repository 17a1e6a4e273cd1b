"""The PROXY protocol towards clients and brokers: which of both, and the header of a new
connection. Sans-I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.captures.proxy_protocol import ProxyHeader, begins, read_header


class ProxyProtocol(NamedTuple):
    """What `--proxy-protocol` asks for."""

    accepts: bool = False
    """Every connection begins with a header."""
    sends: int = 0
    """Version of the header that brokers get; 0: none."""


NO_HEADERS: Final = ProxyProtocol()
MODES: Final = {
    "accept": ProxyProtocol(accepts=True),
    "send": ProxyProtocol(sends=2),
    "send-v1": ProxyProtocol(sends=1),
    "both": ProxyProtocol(accepts=True, sends=2),
}


class Balancer(NamedTuple):
    """A load balancer in front of a client."""

    address: Endpoint
    header: ProxyHeader
    data: bytes
    """The header as it came."""


class HeaderReader:
    """Reads the header of one connection."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes | memoryview) -> ProxyHeader | None:
        """Return the header as soon as it is whole; `ValueError` with a reason where there is
        none."""
        self._data += data
        if not begins(self._data):
            raise ValueError("no PROXY protocol header")
        header = read_header(self._data)
        if header is None and len(self._data) > CAPTURE_LIMITS.proxy_header_bytes:
            raise ValueError("a PROXY protocol header without an end")
        return header

    def split(self, header: ProxyHeader) -> tuple[bytes, bytes]:
        return bytes(self._data[: header.size]), bytes(self._data[header.size :])
