"""The cipher suites of TLS by number: their names, and what decrypting them takes.

The names are those of the IANA registry "TLS Cipher Suites"; what a suite consists of follows from
its name (RFC 5246 appendix C, RFC 8446 appendix B.4). Stateless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple


class Suite(NamedTuple):
    """A cipher suite."""

    number: int
    name: str
    """As IANA registered it: `TLS_AES_128_GCM_SHA256`."""
    exchange: str
    """"RSA", "DHE", "ECDHE", or of other kinds their name ("DH_anon", "PSK"); "" in TLS 1.3."""
    cipher: str
    """"aes-gcm", "aes-ccm", "aes-ccm-8", "chacha20-poly1305", "aes-cbc"; "" when it is none that
    can be decrypted here."""
    key_size: int
    """Bytes of the cipher's key."""
    mac: str
    """Hash of the HMAC of CBC suites: "sha1", "sha256", "sha384"; "" for AEADs."""
    hash: str
    """Hash of the key derivation, HKDF or the PRF of TLS 1.2: "sha256", "sha384"."""

    @property
    def secret_size(self) -> int:
        """Bytes of a secret of TLS 1.3."""
        return 48 if self.hash == "sha384" else 32


DECLARED: Final = """
0000 TLS_NULL_WITH_NULL_NULL
0001 RSA : NULL_MD5 NULL_SHA
0003 RSA_EXPORT : RC4_40_MD5
0004 RSA : RC4_128_MD5 RC4_128_SHA
0006 RSA_EXPORT : RC2_CBC_40_MD5
0007 RSA : IDEA_CBC_SHA
0008 RSA_EXPORT : DES40_CBC_SHA
0009 RSA : DES_CBC_SHA 3DES_EDE_CBC_SHA
000B DH_DSS_EXPORT : DES40_CBC_SHA
000C DH_DSS : DES_CBC_SHA 3DES_EDE_CBC_SHA
000E DH_RSA_EXPORT : DES40_CBC_SHA
000F DH_RSA : DES_CBC_SHA 3DES_EDE_CBC_SHA
0011 DHE_DSS_EXPORT : DES40_CBC_SHA
0012 DHE_DSS : DES_CBC_SHA 3DES_EDE_CBC_SHA
0014 DHE_RSA_EXPORT : DES40_CBC_SHA
0015 DHE_RSA : DES_CBC_SHA 3DES_EDE_CBC_SHA
0017 DH_anon_EXPORT : RC4_40_MD5
0018 DH_anon : RC4_128_MD5
0019 DH_anon_EXPORT : DES40_CBC_SHA
001A DH_anon : DES_CBC_SHA 3DES_EDE_CBC_SHA
001E KRB5 : DES_CBC_SHA 3DES_EDE_CBC_SHA RC4_128_SHA IDEA_CBC_SHA
0022 KRB5 : DES_CBC_MD5 3DES_EDE_CBC_MD5 RC4_128_MD5 IDEA_CBC_MD5
0026 KRB5_EXPORT : DES_CBC_40_SHA RC2_CBC_40_SHA RC4_40_SHA DES_CBC_40_MD5 RC2_CBC_40_MD5 RC4_40_MD5
002C PSK DHE_PSK RSA_PSK : NULL_SHA
002F RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon : AES_128_CBC_SHA
0035 RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon : AES_256_CBC_SHA
003B RSA : NULL_SHA256 AES_128_CBC_SHA256 AES_256_CBC_SHA256
003E DH_DSS DH_RSA DHE_DSS : AES_128_CBC_SHA256
0041 RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon : CAMELLIA_128_CBC_SHA
0067 DHE_RSA : AES_128_CBC_SHA256
0068 DH_DSS DH_RSA DHE_DSS DHE_RSA : AES_256_CBC_SHA256
006C DH_anon : AES_128_CBC_SHA256 AES_256_CBC_SHA256
0084 RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon : CAMELLIA_256_CBC_SHA
008A PSK DHE_PSK RSA_PSK : RC4_128_SHA 3DES_EDE_CBC_SHA AES_128_CBC_SHA AES_256_CBC_SHA
0096 RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon : SEED_CBC_SHA
009C RSA DHE_RSA DH_RSA DHE_DSS DH_DSS DH_anon : AES_128_GCM_SHA256 AES_256_GCM_SHA384
00A8 PSK DHE_PSK RSA_PSK : AES_128_GCM_SHA256 AES_256_GCM_SHA384
00AE PSK DHE_PSK RSA_PSK : AES_128_CBC_SHA256 AES_256_CBC_SHA384 NULL_SHA256 NULL_SHA384
00BA RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon : CAMELLIA_128_CBC_SHA256
00C0 RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon : CAMELLIA_256_CBC_SHA256
00C6 TLS_SM4_GCM_SM3 TLS_SM4_CCM_SM3
00FF TLS_EMPTY_RENEGOTIATION_INFO_SCSV
1301 TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256
1304 TLS_AES_128_CCM_SHA256 TLS_AES_128_CCM_8_SHA256
5600 TLS_FALLBACK_SCSV
C001 ECDH_ECDSA ECDHE_ECDSA ECDH_RSA ECDHE_RSA ECDH_anon : \
    NULL_SHA RC4_128_SHA 3DES_EDE_CBC_SHA AES_128_CBC_SHA AES_256_CBC_SHA
C01A SRP_SHA SRP_SHA_RSA SRP_SHA_DSS : 3DES_EDE_CBC_SHA
C01D SRP_SHA SRP_SHA_RSA SRP_SHA_DSS : AES_128_CBC_SHA
C020 SRP_SHA SRP_SHA_RSA SRP_SHA_DSS : AES_256_CBC_SHA
C023 ECDHE_ECDSA ECDH_ECDSA ECDHE_RSA ECDH_RSA : AES_128_CBC_SHA256 AES_256_CBC_SHA384
C02B ECDHE_ECDSA ECDH_ECDSA ECDHE_RSA ECDH_RSA : AES_128_GCM_SHA256 AES_256_GCM_SHA384
C033 ECDHE_PSK : RC4_128_SHA 3DES_EDE_CBC_SHA AES_128_CBC_SHA AES_256_CBC_SHA
C037 ECDHE_PSK : AES_128_CBC_SHA256 AES_256_CBC_SHA384 NULL_SHA NULL_SHA256 NULL_SHA384
C03C RSA DH_DSS DH_RSA DHE_DSS DHE_RSA DH_anon ECDHE_ECDSA ECDH_ECDSA ECDHE_RSA ECDH_RSA : \
    ARIA_128_CBC_SHA256 ARIA_256_CBC_SHA384
C050 RSA DHE_RSA DH_RSA DHE_DSS DH_DSS DH_anon ECDHE_ECDSA ECDH_ECDSA ECDHE_RSA ECDH_RSA : \
    ARIA_128_GCM_SHA256 ARIA_256_GCM_SHA384
C064 PSK DHE_PSK RSA_PSK : ARIA_128_CBC_SHA256 ARIA_256_CBC_SHA384
C06A PSK DHE_PSK RSA_PSK : ARIA_128_GCM_SHA256 ARIA_256_GCM_SHA384
C070 ECDHE_PSK : ARIA_128_CBC_SHA256 ARIA_256_CBC_SHA384
C072 ECDHE_ECDSA ECDH_ECDSA ECDHE_RSA ECDH_RSA : CAMELLIA_128_CBC_SHA256 CAMELLIA_256_CBC_SHA384
C07A RSA DHE_RSA DH_RSA DHE_DSS DH_DSS DH_anon ECDHE_ECDSA ECDH_ECDSA ECDHE_RSA ECDH_RSA : \
    CAMELLIA_128_GCM_SHA256 CAMELLIA_256_GCM_SHA384
C08E PSK DHE_PSK RSA_PSK : CAMELLIA_128_GCM_SHA256 CAMELLIA_256_GCM_SHA384
C094 PSK DHE_PSK RSA_PSK ECDHE_PSK : CAMELLIA_128_CBC_SHA256 CAMELLIA_256_CBC_SHA384
C09C RSA DHE_RSA : AES_128_CCM AES_256_CCM
C0A0 RSA DHE_RSA : AES_128_CCM_8 AES_256_CCM_8
C0A4 PSK DHE_PSK : AES_128_CCM AES_256_CCM
C0A8 PSK PSK_DHE : AES_128_CCM_8 AES_256_CCM_8
C0AC ECDHE_ECDSA : AES_128_CCM AES_256_CCM AES_128_CCM_8 AES_256_CCM_8
C0B0 ECCPWD : AES_128_GCM_SHA256 AES_256_GCM_SHA384 AES_128_CCM_SHA256 AES_256_CCM_SHA384
C0B4 TLS_SHA256_SHA256 TLS_SHA384_SHA384
C100 GOSTR341112_256 : KUZNYECHIK_CTR_OMAC MAGMA_CTR_OMAC 28147_CNT_IMIT \
    KUZNYECHIK_MGM_L MAGMA_MGM_L KUZNYECHIK_MGM_S MAGMA_MGM_S
CCA8 ECDHE_RSA ECDHE_ECDSA DHE_RSA PSK ECDHE_PSK DHE_PSK RSA_PSK : CHACHA20_POLY1305_SHA256
D001 ECDHE_PSK : AES_128_GCM_SHA256 AES_256_GCM_SHA384 AES_128_CCM_8_SHA256
D005 ECDHE_PSK : AES_128_CCM_SHA256
"""
"""Runs of consecutive numbers: the first, then whole names, or key exchanges with ciphers: each
exchange with all ciphers in turn."""

_AES: Final = r"AES_(128|256)_(GCM|CCM_8|CCM|CBC)(?:_SHA(256|384)?)?$"


def _suite(number: int, name: str) -> Suite:
    exchange, given, cipher = name.removeprefix("TLS_").rpartition("_WITH_")
    exchange = re.sub(r"^(DHE|ECDHE)_(RSA|DSS|ECDSA)$", r"\1", exchange)
    if cipher == "CHACHA20_POLY1305_SHA256":
        return Suite(number, name, exchange, "chacha20-poly1305", 32, "", "sha256")
    found = re.match(_AES, cipher)
    if found is None or (found[2] == "CBC" and not given):
        return Suite(number, name, exchange, "", 0, "", "sha256")
    # Older suites name the hash of their MAC only; TLS 1.2 derives with SHA-256 then.
    derivation = "sha384" if found[3] == "384" else "sha256"
    mac = "sha" + (found[3] or "1") if found[2] == "CBC" else ""
    kind = "aes-" + found[2].lower().replace("_", "-")
    return Suite(number, name, exchange, kind, int(found[1]) // 8, mac, derivation)


def _names() -> Iterator[tuple[int, str]]:
    for line in DECLARED.split("\n"):
        first, _, rest = line.partition(" ")
        left, several, right = rest.partition(" : ")
        names = left.split()
        if several:
            pairs = product(names, right.split())
            names = [f"TLS_{exchange}_WITH_{cipher}" for exchange, cipher in pairs]
        for index, name in enumerate(names):
            yield int(first, 16) + index, name


SUITE_NAMES: Final = dict(_names())
"""Names of all registered suites; their parts are looked up when one is used."""

TLS_1_2: Final = 0x0303
TLS_1_3: Final = 0x0304
VERSIONS: Final = {
    0x0002: "SSL 2.0",
    0x0300: "SSL 3.0",
    0x0301: "TLS 1.0",
    0x0302: "TLS 1.1",
    TLS_1_2: "TLS 1.2",
    TLS_1_3: "TLS 1.3",
}


@lru_cache(1024)
def suite_of(number: int) -> Suite:
    """Return the suite with a number; of an unknown one the name is the number."""
    name = SUITE_NAMES.get(number)
    if name is None:
        return Suite(number, f"0x{number:04X}", "", "", 0, "", "sha256")
    return _suite(number, name)


def version_name(number: int) -> str:
    """Return the name of a protocol version as people write it: "TLS 1.3"."""
    return VERSIONS.get(number, f"0x{number:04X}")
