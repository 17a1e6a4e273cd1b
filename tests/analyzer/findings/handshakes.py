"""TLS connections made by hand: handshakes, alerts, and how they end."""

from kafkascope.analyzer.findings import Finding
from kafkascope.captures.model import Endpoint
from tests.analyzer.findings.judging import found, sized
from tests.captures.tls.writer import HANDSHAKE, extension, message, record, vector
from tests.kit.wire import Wire

CIPHERS = bytes.fromhex("c030c02f00ff")


def hello(name: str = "", suites: bytes = CIPHERS, versions: bytes = b"\3\3") -> bytes:
    asked = extension(0, vector(2, b"\0" + vector(2, name.encode()))) if name else b""
    more = extension(43, vector(1, versions)) + asked
    body = b"\3\3" + bytes(range(32)) + vector(1, b"") + vector(2, suites) + b"\1\0"
    return record(HANDSHAKE, message(1, body + vector(2, more)), 0x0301)


def wire(*parts: bytes, number: int = 0, port: int = 9443, host: str = "") -> Wire:
    """A connection in which both sides send in turn."""
    made = Wire(number=number, port=port)
    if host:
        made.connection.b = Endpoint(host, port)
    for turn, part in enumerate(parts):
        if part:
            (made.broker if turn % 2 else made.client)(part)
    return sized(made)


def failed(*wires: Wire) -> Finding:
    return found(wires)["tls-failed"]
