"""Key derivation and cipher suites against the vectors of the RFCs and other implementations."""

import re
import shutil
import subprocess

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.tls.crypto.prf import PRF
from scapy.layers.tls.crypto.suites import _tls_cipher_suites

from kafkascope.captures.tls.keys import derive
from kafkascope.captures.tls.keys.suites import SUITE_NAMES, Suite, suite_of, version_name
from tests.captures.tls.rfc8448 import CLIENT_TRAFFIC, HEX, SERVER_TRAFFIC

HASHES = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384()}

# RFC 8448, 3: simple 1-RTT handshake with TLS_AES_128_GCM_SHA256.
SERVER_HANDSHAKE = HEX("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")


def test_keys_of_rfc_8448() -> None:
    suite = suite_of(0x1301)
    assert derive.traffic_keys(suite, SERVER_HANDSHAKE) == derive.Keys(
        HEX("3fce516009c21727d0f2e4e86ee403bc"), HEX("5d313eb2671276ee13000b30")
    )
    assert derive.traffic_keys(suite, SERVER_TRAFFIC) == derive.Keys(
        HEX("9f02283b6c9c07efc26bb9f2ac92e356"), HEX("cf782b88dd83549aadf1e984")
    )
    assert derive.traffic_keys(suite, CLIENT_TRAFFIC) == derive.Keys(
        HEX("17422dda596ed5d9acd890e3c63f5051"), HEX("5b78923dee08579033e523d9")
    )


def test_the_prf_has_the_known_vectors() -> None:
    """Published on the mailing list of the TLS working group; RFC 5246 has none itself."""
    assert derive.prf(
        "sha256",
        HEX("9bbe436ba940f017b17652849a71db35"),
        b"test label",
        HEX("a0ba9f936cda311827a6f796ffd5198c"),
        100,
    ) == HEX(
        "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14ba"
        "f9af0fa022f7077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a51"
        "10fff70187347b66"
    )
    assert derive.prf(
        "sha384",
        HEX("b80b733d6ceefcdc71566ea48e5567df"),
        b"test label",
        HEX("cd665cf6a8447dd6ff8b27555edb7465"),
        148,
    ) == HEX(
        "7b0c18e9ced410ed1804f2cfa34a336a1c14dffb4900bb5fd7942107e81c83cde9ca0faa60be9fe34f82b1233c91"
        "46a0e534cb400fed2700884f9dc236f80edd8bfa961144c9e8d792eca722a7b32fc3d416d473ebc2c5fd4abfdad0"
        "5d9184259b5bf8cd4d90fa0d31e2dec479e4f1a26066f2eea9a69236a3e52655c9e9aee691c8f3a26854308d5eaa"
        "3be85e0990703d73e56f"
    )


@given(
    st.sampled_from(sorted(HASHES)),
    st.binary(min_size=1, max_size=64),
    st.binary(max_size=20),
    st.binary(max_size=64),
    st.integers(1, 200),
)
def test_expansions_are_those_of_others(
    name: str, secret: bytes, label: bytes, context: bytes, length: int
) -> None:
    full = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(full)]) + full + bytes([len(context)]) + context
    theirs = HKDFExpand(HASHES[name], length, info).derive(secret)
    assert derive.expand_label(name, secret, label, context, length) == theirs
    theirs = PRF(name, 0x0303).prf(secret, label, context, length)
    assert derive.prf(name, secret, label, context, length) == theirs


def test_a_key_update_derives_a_secret_of_the_same_size() -> None:
    for number, size in ((0x1301, 32), (0x1302, 48)):
        suite = suite_of(number)
        secret = derive.next_secret(suite, bytes(size))
        assert len(secret) == size
        assert secret == derive.expand_label(suite.hash, bytes(size), b"traffic upd", b"", size)


@given(st.binary(min_size=48, max_size=48), st.binary(min_size=32, max_size=32))
def test_master_secrets_and_key_blocks_are_scapys(premaster: bytes, seed: bytes) -> None:
    client, server = seed, seed[::-1]
    for number in (0x9C, 0x9D, 0x2F, 0xC028, 0xCCA8, 0xC0AC):
        suite = suite_of(number)
        theirs = PRF(suite.hash, 0x0303)
        master = derive.master_secret(suite, premaster, client, server)
        assert master == theirs.compute_master_secret(premaster, client, server)
        assert derive.extended_master_secret(
            suite, premaster, seed
        ) == theirs.compute_master_secret(
            premaster, client, server, extms=True, handshake_hash=seed
        )
        first, second = derive.key_block(suite, master, client, server)
        iv = 12 if "chacha" in suite.cipher else 0 if suite.mac else 4
        assert {len(first.iv), len(second.iv)} == {iv}
        assert {len(first.key), len(second.key)} == {suite.key_size}
        assert {len(first.mac), len(second.mac)} == {
            {"": 0, "sha1": 20, "sha256": 32, "sha384": 48}[suite.mac]
        }
        block = theirs.derive_key_block(
            master, server, client, 2 * (len(first.mac) + suite.key_size + iv)
        )
        assert block == b"".join(
            (first.mac, second.mac, first.key, second.key, first.iv, second.iv)
        )


def test_keys_do_not_print_themselves() -> None:
    assert "17" not in repr(derive.Keys(b"\x17" * 16, b"17" * 6))


SUITES = {number: suite_of(number) for number in SUITE_NAMES}
SHA256, SHA384 = ("sha256", "sha256"), ("sha384", "sha384")


def test_scapy_has_the_same_names() -> None:
    theirs = dict(_tls_cipher_suites)
    both = theirs.keys() & SUITES.keys()
    assert len(both) > 270
    # IANA has DES_CBC_40 and PSK_DHE there.
    differ = {number for number in both if theirs[number] != SUITES[number].name}
    assert differ == {0x26, 0x29, 0xC0AA, 0xC0AB}


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_wireshark_has_the_same_names() -> None:
    run = subprocess.run(["tshark", "-G", "values"], capture_output=True, check=True, timeout=120)
    lines = run.stdout.decode("utf-8", "replace").split("\n")
    rows = [line.split("\t") for line in lines if "\ttls.handshake.ciphersuite\t" in line]
    theirs = {int(row[2]): row[3] for row in rows}
    assert {n: theirs.get(n) for n in SUITES} == {n: suite.name for n, suite in SUITES.items()}
    # What it knows beyond: numbers of drafts, and such as were taken without being registered.
    beyond = {n: name for n, name in theirs.items() if n not in SUITES and name.startswith("TLS_")}
    drafts = "EXPORT1024|SALSA20|GOSTR3410|GOSTR34(10|11)|ECJPAKE|CHACHA20|DHE_DSS_WITH_RC4"
    assert [name for name in beyond.values() if not re.search(drafts, name)] == []


@pytest.mark.parametrize(
    "suite",
    [
        Suite(0x1301, "TLS_AES_128_GCM_SHA256", "", "aes-gcm", 16, "", "sha256"),
        Suite(0x1302, "TLS_AES_256_GCM_SHA384", "", "aes-gcm", 32, "", "sha384"),
        Suite(0x1303, "TLS_CHACHA20_POLY1305_SHA256", "", "chacha20-poly1305", 32, "", "sha256"),
        Suite(0x1304, "TLS_AES_128_CCM_SHA256", "", "aes-ccm", 16, "", "sha256"),
        Suite(0x1305, "TLS_AES_128_CCM_8_SHA256", "", "aes-ccm-8", 16, "", "sha256"),
        Suite(0x2F, "TLS_RSA_WITH_AES_128_CBC_SHA", "RSA", "aes-cbc", 16, "sha1", "sha256"),
        Suite(0x67, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256", "DHE", "aes-cbc", 16, *SHA256),
        Suite(
            0xC028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE", "aes-cbc", 32, *["sha384"] * 2
        ),
        Suite(0xC0AF, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8", "ECDHE", "aes-ccm-8", 32, "", "sha256"),
        Suite(0xC09E, "TLS_DHE_RSA_WITH_AES_128_CCM", "DHE", "aes-ccm", 16, "", "sha256"),
        Suite(0xA6, "TLS_DH_anon_WITH_AES_128_GCM_SHA256", "DH_anon", "aes-gcm", 16, "", "sha256"),
        Suite(0xAC, "TLS_RSA_PSK_WITH_AES_128_GCM_SHA256", "RSA_PSK", "aes-gcm", 16, "", "sha256"),
        Suite(0x0A, "TLS_RSA_WITH_3DES_EDE_CBC_SHA", "RSA", "", 0, "", "sha256"),
        Suite(0xC07A, "TLS_RSA_WITH_CAMELLIA_128_GCM_SHA256", "RSA", "", 0, "", "sha256"),
        Suite(0x16, "TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA", "DHE", "", 0, "", "sha256"),
        Suite(0x3B, "TLS_RSA_WITH_NULL_SHA256", "RSA", "", 0, "", "sha256"),
        Suite(0x11, "TLS_DHE_DSS_EXPORT_WITH_DES40_CBC_SHA", "DHE_DSS_EXPORT", "", 0, "", "sha256"),
        Suite(0xFF, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "", "", 0, "", "sha256"),
        Suite(0x0A0A, "0x0A0A", "", "", 0, "", "sha256"),
    ],
    ids=lambda suite: suite.name,
)
def test_what_a_suite_consists_of(suite: Suite) -> None:
    assert suite_of(suite.number) == suite


def test_every_suite_with_aes_or_chacha20_is_supported() -> None:
    names = [suite.name for suite in SUITES.values() if not suite.cipher]
    assert [name for name in names if "_AES_" in name or "CHACHA20" in name] == []


def test_versions_have_names() -> None:
    assert version_name(0x0304) == "TLS 1.3"
    assert version_name(0x0303) == "TLS 1.2"
    assert version_name(0x0300) == "SSL 3.0"
    assert version_name(0x7F1C) == "0x7F1C"
