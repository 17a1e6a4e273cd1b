"""TLS on both legs: certificates towards clients, verification of brokers.

Contexts are OpenSSL's; certificates are made by mitmproxy's store.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName
    from mitmproxy.certs import CertStore
    from mitmproxy.proxy.commands import StartHook
    from mitmproxy.proxy.context import Context
    from OpenSSL import SSL


DISTRUST: Final = "the client does not trust the proxy's certificate"
OF_CLIENTS: Final = {
    "Cannot parse ClientHello": "the client sent plaintext to a TLS listener",
    "did not return a certificate": "the client sent no certificate (--tls-client-ca requires one)",
    "Certificate verify failed": "the client's certificate is not accepted (--tls-client-ca)",
    "unsupported protocol": "the client does not offer TLS 1.2 or later",
    "unknown ca": DISTRUST,
    "bad certificate": DISTRUST,
    "certificate unknown": DISTRUST,
    "connection closed": "the client disconnected during the handshake. "
    "Clients that do not trust the proxy's certificate may do that",
}
"""Part of an error of OpenSSL or mitmproxy -> what a client did."""
NO_TLS: Final = "no TLS there; if the listener is plaintext, omit --upstream-tls"
NO_CERTIFICATE: Final = "the broker requires a client certificate that it trusts (--upstream-cert)"
OF_BROKERS: Final = {
    "mismatch": "the broker's certificate is for another name (--upstream-name)",
    "Certificate verify failed": "the broker's certificate is not trusted (--upstream-ca)",
    "does not speak TLS": NO_TLS,
    "connection closed": NO_TLS,
    "certificate required": NO_CERTIFICATE,
    "bad certificate": NO_CERTIFICATE,
    "unknown ca": NO_CERTIFICATE,
    "certificate unknown": NO_CERTIFICATE,
    "handshake failure": "the broker refuses the handshake. "
    "It may require a client certificate (--upstream-cert)",
    "protocol version": "the broker does not support TLS 1.2 or later",
}
"""The same, of a broker."""


def reason(error: str, reasons: dict[str, str]) -> str:
    """Return why a handshake failed, then OpenSSL's word for it."""
    known = next((text for part, text in reasons.items() if part in error), "")
    words = re.findall(r"'([^']+)'\)", error) or re.findall(r"failed: (.+)", error)
    return ": ".join([known] * bool(known) + words[-1:]) or error


@dataclass(frozen=True)
class ClientTls:
    """The leg towards clients."""

    certificate: Path | None = None
    """PEM with the chain; None: made for the name that the client asks for, by our own CA."""
    key: Path | None = None
    """PEM; None: it is in the certificate's file."""
    ca: Path | None = None
    """PEM with the CAs of clients: they must show a certificate of these."""
    names: tuple[str, ...] = ()
    """Names and addresses that a generated certificate is for, besides what is asked for."""

    def context(self) -> SSL.Context:
        """A context that has no certificate yet."""
        from OpenSSL import SSL

        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        if self.ca is not None:
            context.load_verify_locations(str(self.ca))
            context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, _as_openssl)
        # Without one, resumption fails where client certificates are asked for.
        context.set_session_id(b"kafkascope")
        return context

    @cached_property
    def given(self) -> SSL.Context | None:
        """The context of the certificate that was given; None where each is made."""
        if self.certificate is None:
            return None
        context = self.context()
        _load(context, self.certificate, self.key)
        return context


@dataclass(frozen=True)
class UpstreamTls:
    """The leg towards brokers."""

    ca: Path | None = None
    """PEM with the CAs to trust; None: the system's (certifi's)."""
    certificate: Path | None = None
    """PEM with our certificate and key for brokers that ask for one."""
    key: Path | None = None
    insecure: bool = False
    """Believe any certificate."""
    server_name: str | None = None
    """Name to verify and to ask for; None: the host that we connect to."""

    @cached_property
    def context(self) -> SSL.Context:
        """The context of all connections to brokers."""
        import certifi
        from OpenSSL import SSL

        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        if self.insecure:
            context.set_verify(SSL.VERIFY_NONE)
        else:
            context.set_verify(SSL.VERIFY_PEER, _as_openssl)
            context.load_verify_locations(str(self.ca or certifi.where()))
        if self.certificate is not None:
            _load(context, self.certificate, self.key)
        return context

    def connection(self, connection: Any) -> SSL.Connection:
        """The TLS connection to a broker, whose certificate has to be for its name."""
        from OpenSSL import SSL

        made = SSL.Connection(self.context)
        name = self.server_name or connection.address[0]
        connection.sni = name
        # pyOpenSSL has no public call that says which name a certificate has to be for.
        lib: Any = SSL._lib  # type: ignore[attr-defined]  # noqa: SLF001
        parameters = lib.SSL_get0_param(made._ssl)  # noqa: SLF001
        try:
            packed = ipaddress.ip_address(name).packed
        except ValueError:
            host = name.encode("idna")
            made.set_tlsext_host_name(host)
            done = lib.X509_VERIFY_PARAM_set1_host(parameters, host, len(host))
        else:
            done = lib.X509_VERIFY_PARAM_set1_ip(parameters, packed, len(packed))
        if done != 1:
            raise ValueError(f"{name!r} cannot be verified by OpenSSL")
        made.set_connect_state()
        return made


@dataclass(eq=False)
class Tls:
    """Makes the TLS connections that mitmproxy's layers ask for."""

    client: ClientTls | None = None
    upstream: UpstreamTls | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        self._store: CertStore | None = None
        self._made: dict[tuple[str | None, str | None], SSL.Context] = {}
        self.on_failure: Callable[[str, str], None] | None = None
        """Called when a handshake fails: with what is the same each time, and with a sentence."""

    def load(self) -> None:
        """Read or make certificates; `OSError` or `ValueError` with a sentence when one is bad."""
        if self.client is not None and self.client.given is None:
            self.store()
        if self.upstream is not None:
            _ = self.upstream.context

    def store(self) -> CertStore:
        """The CA for generated certificates; its key is readable by its owner only."""
        if self._store is None:
            from mitmproxy.certs import CertStore

            if self.folder is None:
                raise ValueError("a folder for the certificate authority is required")
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._store = CertStore.from_store(self.folder, "kafkascope", 2048)
        return self._store

    @property
    def ca_file(self) -> Path | None:
        """The certificate that clients have to trust, when ours is generated."""
        if self.client is None or self.client.certificate is not None or self.folder is None:
            return None
        return self.folder / "kafkascope-ca-cert.pem"

    def hook(self, context: Context, hook: StartHook) -> None:
        from mitmproxy.proxy.layers import tls

        if isinstance(hook, tls.TlsStartClientHook) and self.client is not None:
            hook.data.ssl_conn = self._towards_client(self.client, hook.data.conn)
        elif isinstance(hook, tls.TlsStartServerHook) and self.upstream is not None:
            hook.data.ssl_conn = self.upstream.connection(hook.data.conn)
        elif isinstance(hook, tls.TlsFailedClientHook | tls.TlsFailedServerHook):
            error = hook.data.conn.error or "the handshake failed"
            if isinstance(hook, tls.TlsFailedClientHook):
                name, error = context.client.peername, reason(error, OF_CLIENTS)
                key = f"client {name[0] if name else ''} {error}"  # its port is another each time
                text = f"client {f'{name[0]}:{name[1]}' if name else '?'}: TLS: {error}"
            else:
                host, port = context.server.address or ("?", 0)
                key = text = f"upstream {host}:{port}: TLS: {reason(error, OF_BROKERS)}"
                hook.data.conn.error = text
            if self.on_failure is not None:
                self.on_failure(key, text)

    def _towards_client(self, client: ClientTls, connection: Any) -> SSL.Connection:
        from OpenSSL import SSL

        context = client.given or self._made_context(client, connection.sni, connection.sockname)
        made = SSL.Connection(context)
        made.set_accept_state()
        return made

    def _made_context(self, client: ClientTls, sni: str | None, sockname: Any) -> SSL.Context:
        """A context with a certificate for the name that the client asks for, made once."""
        address = sockname[0] if sockname else None
        known = self._made.get((sni, address))
        if known is not None:
            return known
        names = general_names(sni, address, *client.names, "localhost")
        context = client.context()
        _use(context, self.store().get_cert(sni or address, names, None))
        if len(self._made) < 1000:
            self._made[sni, address] = context
        return context


def general_names(*names: str | None) -> list[GeneralName]:
    from cryptography.x509 import DNSName, IPAddress

    found: list[GeneralName] = []
    for each in dict.fromkeys(filter(None, names)):
        try:
            found.append(IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            found.append(DNSName(each))
    return found


def _as_openssl(connection: Any, certificate: Any, error: int, depth: int, good: int) -> bool:
    return bool(good)


def _load(context: SSL.Context, certificate: Path, key: Path | None) -> None:
    from OpenSSL import SSL

    for path in (certificate, key):
        if path is not None and not path.is_file():
            raise OSError(f"no such file: {path}")
    keys = key or certificate
    wrong = f"{certificate} contains no PEM certificate"
    try:
        context.use_certificate_chain_file(str(certificate))
        wrong = f"{keys} contains no unencrypted PEM key"
        context.use_privatekey_file(str(keys))
        context.check_privatekey()
    except SSL.Error as error:
        if "mismatch" in str(error):
            wrong = f"the key in {keys} does not match the certificate in {certificate}"
        raise ValueError(wrong) from error


def _use(context: SSL.Context, entry: Any) -> None:
    """Use a generated certificate and its key, as objects that this release of pyOpenSSL takes."""
    from cryptography.x509 import load_pem_x509_certificate
    from OpenSSL import crypto

    certificate: Any = load_pem_x509_certificate(entry.cert.to_pem())
    key: Any = entry.privatekey
    try:
        context.use_certificate(certificate)
        context.use_privatekey(key)
    except TypeError:  # before 24.3
        context.use_certificate(crypto.X509.from_cryptography(certificate))
        context.use_privatekey(crypto.PKey.from_cryptography_key(key))
