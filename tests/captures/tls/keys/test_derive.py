"""Key derivation against vectors of the RFCs and against other implementations."""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.tls.crypto.prf import PRF

from kafkascope.captures.tls.keys.derive import (
    Keys,
    expand_label,
    extended_master_secret,
    key_block,
    master_secret,
    next_secret,
    prf,
    traffic_keys,
)
from kafkascope.captures.tls.keys.suites import suite_of
from tests.captures.tls.rfc8448 import CLIENT_TRAFFIC, HEX, SERVER_TRAFFIC

HASHES = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384()}

# RFC 8448, 3: simple 1-RTT handshake with TLS_AES_128_GCM_SHA256.
SERVER_HANDSHAKE = HEX("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")


def test_keys_of_rfc_8448() -> None:
    suite = suite_of(0x1301)
    assert traffic_keys(suite, SERVER_HANDSHAKE) == Keys(
        HEX("3fce516009c21727d0f2e4e86ee403bc"), HEX("5d313eb2671276ee13000b30")
    )
    assert traffic_keys(suite, SERVER_TRAFFIC) == Keys(
        HEX("9f02283b6c9c07efc26bb9f2ac92e356"), HEX("cf782b88dd83549aadf1e984")
    )
    assert traffic_keys(suite, CLIENT_TRAFFIC) == Keys(
        HEX("17422dda596ed5d9acd890e3c63f5051"), HEX("5b78923dee08579033e523d9")
    )


def test_the_prf_has_the_known_vectors() -> None:
    """Published on the mailing list of the TLS working group; RFC 5246 has none itself."""
    assert prf(
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
    assert prf(
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
    assert expand_label(name, secret, label, context, length) == theirs
    theirs = PRF(name, 0x0303).prf(secret, label, context, length)
    assert prf(name, secret, label, context, length) == theirs


def test_a_key_update_derives_a_secret_of_the_same_size() -> None:
    for number, size in ((0x1301, 32), (0x1302, 48)):
        suite = suite_of(number)
        secret = next_secret(suite, bytes(size))
        assert len(secret) == size
        assert secret == expand_label(suite.hash, bytes(size), b"traffic upd", b"", size)


@given(st.binary(min_size=48, max_size=48), st.binary(min_size=32, max_size=32))
def test_master_secrets_and_key_blocks_are_scapys(premaster: bytes, seed: bytes) -> None:
    client, server = seed, seed[::-1]
    for number in (0x9C, 0x9D, 0x2F, 0xC028, 0xCCA8, 0xC0AC):
        suite = suite_of(number)
        theirs = PRF(suite.hash, 0x0303)
        master = master_secret(suite, premaster, client, server)
        assert master == theirs.compute_master_secret(premaster, client, server)
        assert extended_master_secret(suite, premaster, seed) == theirs.compute_master_secret(
            premaster, client, server, extms=True, handshake_hash=seed
        )
        first, second = key_block(suite, master, client, server)
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
    assert "17" not in repr(Keys(b"\x17" * 16, b"17" * 6))
