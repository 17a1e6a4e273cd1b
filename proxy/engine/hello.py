"""The TLS layer towards clients, which looks at each part of a ClientHello once.

mitmproxy's own goes over all that has come with each read, and has no bound: a client that sends
its hello in the smallest records, or one byte a time, would stop everybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mitmproxy.net.tls import starts_like_tls_record
from mitmproxy.proxy import layers

if TYPE_CHECKING:
    from mitmproxy.proxy.context import Context

MOST_BYTES: Final = 256 * 1024
"""Of a ClientHello with its records; OpenSSL takes 128 KB."""
TOO_LONG: Final = f"a ClientHello of more than {MOST_BYTES >> 10} KB"
RECORD_HEAD: Final = 5
HANDSHAKE_HEAD: Final = 4


class Hello:
    """How much of a ClientHello has come. State without I/O."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._at = 0
        """Where the next record begins."""
        self._head = bytearray()
        """Type and size of the hello, as far as they have come."""
        self._size = 0
        """Of what the records before that carry."""

    def feed(self, data: bytes) -> bool:
        """Take the next bytes. Return whether the hello is whole, or wrong: then somebody has to
        read `data`."""
        self.data += data
        while len(self.data) >= self._at + RECORD_HEAD:
            body = self._at + RECORD_HEAD
            size = int.from_bytes(self.data[body - 2 : body])
            if not size or not starts_like_tls_record(bytes(self.data[self._at : body])):
                return True
            if len(self.data) < body + size:
                break
            self._head += self.data[body : body + min(size, HANDSHAKE_HEAD - len(self._head))]
            self._size += size
            self._at = body + size
            if len(self._head) == HANDSHAKE_HEAD:
                whole = HANDSHAKE_HEAD + int.from_bytes(self._head[1:])
                if self._size >= whole:
                    return True
        return False


class ClientHelloLayer(layers.ClientTLSLayer):
    """mitmproxy's layer, given the hello when it is whole."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._hello: Hello | None = Hello()

    def receive_handshake_data(self, data: bytes) -> Any:
        """Gather the hello, then hand it on."""
        hello = self._hello
        if hello is None:
            return (yield from super().receive_handshake_data(data))
        whole = hello.feed(data)
        if len(hello.data) > MOST_BYTES:
            return False, TOO_LONG
        if not whole:
            return False, None
        self._hello = None
        return (yield from super().receive_handshake_data(bytes(hello.data)))
