"""A certificate authority for tests of TLS."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID


class Authority:
    """A CA for the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = rsa.generate_private_key(65537, 2048)
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        self.certificate = folder / "ca.pem"
        self.certificate.write_bytes(self._sign(self.name, self.key.public_key(), True))

    def _sign(
        self,
        name: x509.Name,
        key: Any,
        ca: bool,
        *alternatives: str,
        until: timedelta = timedelta(days=2),
    ) -> bytes:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=10))
            .not_valid_after(now + until)
            .add_extension(x509.BasicConstraints(ca, None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        if ca:
            builder = builder.add_extension(
                x509.KeyUsage(*(False,) * 5, True, True, False, False), critical=True
            )
        if alternatives:
            names: list[x509.GeneralName] = [
                x509.IPAddress(ipaddress.ip_address(each)) for each in alternatives
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = builder.sign(self.key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *alternatives: str, until: timedelta = timedelta(days=2)) -> Path:
        """A PEM with certificate and key; expired when `until` is negative."""
        key = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        path = self.folder / f"{name}.pem"
        path.write_bytes(
            self._sign(subject, key.public_key(), False, *alternatives, until=until)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return path
