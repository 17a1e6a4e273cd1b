"""What the handshake messages of a connection decide: version, suite, and how its secrets are
found. State without I/O."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Tls
from kafkascope.captures.resumable import Resumable
from kafkascope.captures.tls import messages as m
from kafkascope.captures.tls.begin import CLIENT_HELLO, OLD_HELLO, SERVER_HELLO, begins_hello
from kafkascope.captures.tls.keys.epoch import Epoch, FullHandshake
from kafkascope.captures.tls.keys.suites import TLS_1_3, suite_of, version_name
from kafkascope.captures.tls.sources import KeySources

# No part of what is hashed (RFC 5246, 7.4.1.1).
HELLO_REQUEST: Final = 0
# Where the random of a ClientHello begins in its record: after two headers and a version.
HELLO_RANDOM: Final = 11
RANDOM: Final = 32


@dataclass(slots=True, eq=False)
class Negotiation(Resumable):
    """One handshake after the other: TLS 1.2 may negotiate anew."""

    client_hello: m.ClientHello | None = None
    first: bool = True
    """It is the connection's first handshake."""
    _epoch: Epoch | None = None
    """What the ServerHello chose, as far as it is known by now."""
    _transcript: bytearray | None = field(default_factory=bytearray)
    """TLS 1.2 with RSA key exchange: all messages, for the extended master secret; None when
    nobody needs them."""
    _ticket: bytes = b""
    """The one that the server gave out."""
    _certificate: bytes = b""
    """The server's, as DER, as long as the handshake lasts."""
    _client_certificate: bytes = b""
    """The same of the client."""

    @property
    def held(self) -> int:
        """Memory of what the other side may still ask for."""
        hello = b"" if self.client_hello is None else self.client_hello.ticket
        held = len(self._transcript or b"") + len(self._certificate)
        return held + len(self._client_certificate) + len(self._ticket) + len(hello)

    def evict(self) -> None:
        """Forget what is of use for few connections only."""
        self._transcript, self._ticket = None, b""
        self.done()
        if self.client_hello is not None:
            self.client_hello = self.client_hello._replace(ticket=b"")

    def message(self, message: bytes, *, client: bool, keys: KeySources, tls: Tls) -> Epoch | None:
        """Take a message of a handshake that is not TLS 1.3, or not yet; return what a ServerHello
        chose."""
        kind = message[0]
        try:
            if kind == CLIENT_HELLO and client:
                self._client_hello(message, keys, tls)
            if self._transcript is not None and kind != HELLO_REQUEST:
                whole = len(self._transcript) + len(message) <= LIMITS.handshake_bytes
                if whole:
                    self._transcript += message
                else:
                    self._transcript = None
            if kind == SERVER_HELLO and not client:
                return self._server_hello(message, tls)
            if kind == m.CERTIFICATE:
                self._chain(message, client=client, modern=False, tls=tls)
            elif kind == m.CERTIFICATE_REQUEST and not client:
                tls.requested = True
            elif kind == m.NEW_SESSION_TICKET and not client:
                self._ticket = m.ticket(message)
            elif kind == m.CLIENT_KEY_EXCHANGE and client:
                self._key_exchange(message)
        except m.Malformed:
            pass
        return None

    def _client_hello(self, message: bytes, keys: KeySources, tls: Tls) -> None:
        again, self.client_hello = self.client_hello, m.client_hello(message)
        hello = self.client_hello
        if again is not None and again.random == hello.random and self._epoch is None:
            return  # after a HelloRetryRequest
        keys.claim(hello.random)
        self._transcript, self._ticket, self._epoch = bytearray(), b"", None
        self.first = again is None
        if self.first:
            tls.random = hello.random
            tls.server_name = hello.server_name
            tls.offered = tuple(map(version_name, hello.versions))
            tls.suites = hello.suites
            tls.early_data = hello.early_data

    def cut_hello(self, data: bytes, keys: KeySources, tls: Tls) -> bool:
        """Take what is there of a ClientHello that the capture has in part; return whether the
        client's random is. `data`: its record."""
        end = HELLO_RANDOM + RANDOM
        if self.client_hello is not None or not begins_hello(data) or len(data) < end:
            return False
        random = data[HELLO_RANDOM:end]
        size = data[end] if len(data) > end else 0
        session_id = data[end + 1 : end + 1 + size]
        whole = len(session_id) == size <= 32
        self.client_hello = m.ClientHello(
            random, session_id if whole else b"", (), 0, b"", "", b"", psk=False, early_data=False
        )
        self._transcript = None
        keys.claim(random)
        tls.random = random
        return True

    def old_hello(self, data: bytes, tls: Tls) -> None:
        """Take the ClientHello in the format of SSLv2 that a connection begins with, if it does."""
        if OLD_HELLO.match(data):
            version, tls.suites = m.old_hello(data)
            names = dict.fromkeys((version_name(version), version_name(m.SSL_2)))
            tls.offered = tuple(names)

    @property
    def chosen(self) -> Epoch | None:
        """What the ServerHello chose."""
        return self._epoch

    def _server_hello(self, message: bytes, tls: Tls) -> Epoch | None:
        hello, client_hello = m.server_hello(message), self.client_hello
        if client_hello is None or hello.retry:
            return None
        modern = hello.version == TLS_1_3
        resumed = (
            hello.psk
            if modern
            else bool(hello.session_id) and (hello.session_id == client_hello.session_id)
        )
        own = FullHandshake(hello.suite, client_hello.random, hello.random, hello.session_id)
        if modern or suite_of(hello.suite).exchange != "RSA" or not hello.extended_master_secret:
            self._transcript = None
        self._epoch = Epoch(
            hello.version,
            hello.suite,
            client_hello.random,
            hello.random,
            hello.encrypt_then_mac,
            () if modern else (own,),
        )
        if self.first:
            tls.resumed = resumed
            tls.protocol = hello.protocol
        return self._epoch

    def _key_exchange(self, message: bytes) -> None:
        epoch = self._epoch
        if epoch is None or suite_of(epoch.suite).exchange != "RSA":
            return
        seen = self._transcript
        digest = b"" if seen is None else hashlib.new(suite_of(epoch.suite).hash, seen).digest()
        premaster = m.encrypted_premaster(message)[:8]
        own = epoch.origins[0]._replace(premaster=premaster, session_hash=digest)
        self._epoch = epoch._replace(origins=(own,))
        self._transcript = None

    def _chain(self, message: bytes, *, client: bool, modern: bool, tls: Tls) -> None:
        chain = m.certificates(message, modern=modern)
        if not chain:
            tls.unauthenticated = tls.unauthenticated or client
            return
        if len(chain[0]) > LIMITS.certificate_bytes:
            return
        if not client:
            self._certificate = chain[0]
        elif not tls.client:
            from kafkascope.captures.tls.certificates import subject_of

            self._client_certificate = chain[0]
            tls.client = subject_of(chain[0])

    def modern(self, message: bytes, *, client: bool, tls: Tls) -> None:
        """Take a message of TLS 1.3 that was encrypted."""
        try:
            if message[0] == m.ENCRYPTED_EXTENSIONS and not client:
                tls.protocol = tls.protocol or m.protocol_of(message)
            elif message[0] == m.CERTIFICATE_REQUEST and not client:
                tls.requested = True
            elif message[0] == m.CERTIFICATE:
                self._chain(message, client=client, modern=True, tls=tls)
        except m.Malformed:
            pass

    def changed(self, *, client: bool, keys: KeySources) -> Epoch | None:
        """Return what the records after a ChangeCipherSpec are encrypted with (TLS 1.2)."""
        epoch, hello = self._epoch, self.client_hello
        if epoch is None or hello is None or epoch.modern:
            return None
        own = epoch.origins[0]
        offered: tuple[bytes, ...] = ()
        if not self._certificate and (hello.session_id or hello.ticket):
            # No certificate came: it is resumed, by what the client offered.
            offered = own.session_id, hello.ticket
        given = () if client else (own.session_id, self._ticket)
        return epoch._replace(origins=keys.resume(own, offered, given))

    def may_open(self, keys: KeySources) -> bool:
        """Return whether the key log may have the secret of the client that has just begun."""
        log, hello = keys.log, self.client_hello
        if log is None or hello is None:
            return False
        # Asked in any case: tasks note what they ask for.
        offered = [
            origin
            for name in (hello.session_id, hello.ticket)
            for origin in keys.origins(hello.random, name)
        ]
        if log.secrets(hello.random) is not None or log.other_names:
            return True
        return any(origin.master(log) is not None for origin in offered)

    def explain(self, tls: Tls) -> None:
        """Keep what may tell why the handshake failed: certificates and cipher suites."""
        from kafkascope.captures.tls.certificates import certificate_of

        if self._certificate:
            tls.certificate = certificate_of(self._certificate)
        if self._client_certificate:
            tls.client_certificate = certificate_of(self._client_certificate)
        if self.client_hello is not None:
            tls.cipher_suites = m.suites_of(self.client_hello.cipher_suites)

    def done(self) -> None:
        """Forget what is of use for a handshake that failed only."""
        self._certificate = self._client_certificate = b""
