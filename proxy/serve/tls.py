"""TLS towards clients of a served capture: a certificate that is given, or one of the proxy's own
CA."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path


def given(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """A context with this certificate; `OSError` when it cannot be used."""
    context = _context()
    context.load_cert_chain(certificate, key)
    return context


def made(host: str, folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A context with a certificate for the host, and the file with the CA that made it: the one of
    `kafkascope proxy` in the same folder."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    from kafkascope.proxy.engine.tls import ClientTls, Tls, general_names

    names = general_names(host, "127.0.0.1", "localhost")
    owner = Tls(ClientTls(), folder=folder)
    entry = owner.store().get_cert(host, names, None)
    context = _context()
    key = entry.privatekey.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with tempfile.NamedTemporaryFile() as file:  # only its owner can read it
        file.write(entry.cert.to_pem() + key)
        file.flush()
        context.load_cert_chain(file.name)
    assert owner.ca_file is not None
    return context, owner.ca_file


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
