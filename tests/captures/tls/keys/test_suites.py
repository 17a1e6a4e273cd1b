"""Cipher suites: numbers and names against two other lists, and what names say."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from scapy.layers.tls.crypto.suites import _tls_cipher_suites

from kafkascope.captures.tls.keys.suites import SUITE_NAMES, Suite, suite_of, version_name

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
