"""Writes pcapng with struct: interfaces with name and comment, packets in nanoseconds, secrets,
host names."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from struct import Struct, pack
from typing import Final, Protocol

from kafkascope.captures.formats.pcapng import (
    BYTE_ORDER,
    COMMENT,
    ENHANCED_PACKET,
    IF_NAME,
    IF_TSRESOL,
    INTERFACE,
    ISB_IFDROP,
    NAMES,
    NRB_IPV4,
    NRB_IPV6,
    SECRETS,
    SECTION,
    STATISTICS,
)
from kafkascope.captures.formats.records import TLS_KEY_LOG
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Resolved
from kafkascope.captures.packets.link import ETHERNET

NAMES_OF_A_BLOCK: Final = 1_000
_APPLICATION: Final = 4
_PACKET = Struct("<IIIIIII")
_SIZE = Struct("<I")


class Sink(Protocol):
    """The part of a file's interface that writing needs."""

    def write(self, data: bytes, /) -> object:
        """Take all of `data`."""


class PcapngWriter:
    """Writes one section, little-endian. Interfaces may be added at any time before their
    packets."""

    def __init__(self, sink: Sink, application: str = "kafkascope") -> None:
        self._sink = sink
        self._interfaces = 0
        head = pack("<IHHq", BYTE_ORDER, 1, 0, -1)
        self._block(SECTION, head + _option(_APPLICATION, _text(application)) + _END)

    def interface(self, name: str, *, link_type: int = ETHERNET, comment: str = "") -> int:
        """Declare an interface; return its number."""
        options = _option(IF_NAME, _text(name))
        if comment:
            options += _option(COMMENT, _text(comment))
        options += _option(IF_TSRESOL, b"\x09") + _END
        self._block(INTERFACE, pack("<HHI", link_type, 0, 0) + options)
        self._interfaces += 1
        return self._interfaces - 1

    def packet(
        self,
        data: bytes | memoryview,
        time_ns: int,
        *,
        interface: int = 0,
        length: int | None = None,
        comment: str = "",
    ) -> None:
        """Write one packet; `length` is that on the wire when `data` is less."""
        if interface >= self._interfaces:
            raise ValueError(f"interface {interface} is not declared")
        head, tail = around(len(data), time_ns, interface, length, comment)
        self._sink.write(b"".join((head, data, tail)))

    def secrets(self, data: bytes) -> None:
        """Write a decryption secrets block with a key log, before the packets that need it."""
        self._sink.write(secrets_block(data))

    def names(self, found: Iterable[Resolved]) -> None:
        """Write the addresses of host names, in name resolution blocks."""
        records = [
            _name(name, host)
            for name, hosts, _ in found
            if 0 < len(name) <= LIMITS.host_chars
            for host in hosts
        ]
        for at in range(0, len(records), NAMES_OF_A_BLOCK):
            self._block(NAMES, b"".join(records[at : at + NAMES_OF_A_BLOCK]) + _END)

    def _block(self, kind: int, body: bytes) -> None:
        self._sink.write(_whole(kind, body))


def secrets_block(data: bytes) -> bytes:
    """Return a decryption secrets block with a key log, of a little-endian section."""
    return _whole(SECRETS, pack("<II", TLS_KEY_LOG, len(data)) + data + bytes(-len(data) & 3))


def dropped_block(packets: int, time_ns: int, comment: str) -> bytes:
    """Return a statistics block of the first interface: how many packets were left out so far."""
    head = pack("<III", 0, time_ns >> 32 & 0xFFFF_FFFF, time_ns & 0xFFFF_FFFF)
    options = _option(ISB_IFDROP, pack("<Q", packets)) + _option(COMMENT, _text(comment)) + _END
    return _whole(STATISTICS, head + options)


def _name(name: str, host: str) -> bytes:
    """Return the record of an address with one of its names."""
    address = ip_address(host.partition("%")[0])
    value = address.packed + _text(name) + b"\0"
    return _option(NRB_IPV4 if address.version == 4 else NRB_IPV6, value)


def _whole(kind: int, body: bytes) -> bytes:
    size = len(body) + 12
    return pack("<II", kind, size) + body + _SIZE.pack(size)


def around(
    size: int, time_ns: int, interface: int = 0, length: int | None = None, comment: str = ""
) -> tuple[bytes, bytes]:
    """Return the bytes before and after the `size` bytes of a packet in its block."""
    tail = bytes(-size & 3)
    if comment:
        tail += _option(COMMENT, _text(comment)) + _END
    total = 32 + size + len(tail)
    head = _PACKET.pack(
        ENHANCED_PACKET,
        total,
        interface,
        time_ns >> 32 & 0xFFFF_FFFF,
        time_ns & 0xFFFF_FFFF,
        size,
        size if length is None else length,
    )
    return head, tail + _SIZE.pack(total)


def _text(text: str) -> bytes:
    r"""Cut a text to what fits an option, in UTF-8; invalid bytes of names are escaped
    (`\udcff`)."""
    data = text.encode("utf-8", "backslashreplace")
    return (
        data
        if len(data) <= LIMITS.option_bytes
        else data[: LIMITS.option_bytes].decode("utf-8", "ignore").encode()
    )


def _option(code: int, value: bytes) -> bytes:
    return pack("<HH", code, len(value)) + value + bytes(-len(value) & 3)


_END: Final = bytes(4)
