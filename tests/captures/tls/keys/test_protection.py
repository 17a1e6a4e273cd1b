"""Records are opened, and nothing else is: vectors, real connections of OpenSSL, every bit."""

import hmac
import random
import ssl
import subprocess
import sys
from functools import partial
from pathlib import Path
from struct import pack

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kafkascope.captures.model import HandshakeResult
from kafkascope.captures.tls.keys.derive import Keys, key_block, traffic_keys
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.keys.protection import (
    BadRecord,
    Buffer,
    Protection,
    protection_12,
    protection_13,
)
from kafkascope.captures.tls.keys.suites import SUITE_NAMES, Suite, suite_of
from kafkascope.captures.tls.sources import KeySources
from tests.captures.tls.reading import Read
from tests.captures.tls.rfc8448 import CLIENT_TRAFFIC, SERVER_TRAFFIC
from tests.captures.tls.talks import contexts, talk
from tests.captures.tls.writer import CLIENT, Talk
from tests.kit.authority import Authority

HEX = bytes.fromhex
GCM = suite_of(0x1301)


def open_with(
    protection: Protection, sequence: int, kind: int, version: int, body: Buffer
) -> tuple[int, bytes]:
    """What opens behind a header of these."""
    return protection.open(sequence, pack(">BHH", kind, version, len(body)), body)


def test_records_of_rfc_8448() -> None:
    client = protection_13(GCM, CLIENT_TRAFFIC)
    body = HEX(
        "a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e"
        "1f5a6292a2977014bd1e3deae63aeebb21694915e4"
    )
    assert open_with(client, 0, 23, 0x303, body) == (23, bytes(range(50)))
    assert open_with(client, 0, 23, 0x303, memoryview(body)) == (23, bytes(range(50)))
    assert client.start == 0
    alert = HEX("c9872760655666b74d7ff1153efd6db6d0b0e3")
    assert open_with(client, 1, 23, 0x303, alert) == (21, b"\1\0")
    alert = HEX("b58fd67166ebf599d24720cfbe7efa7a8864a9")
    assert open_with(protection_13(GCM, SERVER_TRAFFIC), 2, 23, 0x303, alert) == (21, b"\1\0")


def sealed(inner: bytes) -> bytes:
    """Record 0 of TLS 1.3 with any inner plaintext."""
    keys = traffic_keys(GCM, CLIENT_TRAFFIC)
    header = b"\x17\3\3" + (len(inner) + 16).to_bytes(2, "big")
    return AESGCM(keys.key).encrypt(keys.iv, inner, header)


@pytest.mark.parametrize("zeros", [0, 1, 300])
def test_padding_is_taken_off(zeros: int) -> None:
    for content in (b"", b"content", b"content\0", bytes(20)):
        body = sealed(content + b"\x16" + bytes(zeros))
        assert open_with(protection_13(GCM, CLIENT_TRAFFIC), 0, 23, 0x303, body) == (22, content)


def test_a_record_needs_a_content_type() -> None:
    for inner in (b"", b"\0", bytes(500)):
        with pytest.raises(BadRecord):
            open_with(protection_13(GCM, CLIENT_TRAFFIC), 0, 23, 0x303, sealed(inner))


def test_how_long_a_record_may_be() -> None:
    opens = partial(open_with, protection_13(GCM, CLIENT_TRAFFIC))
    longest = sealed(bytes((1 << 14) + 239) + b"\x17")
    assert opens(0, 23, 0x303, longest) == (23, bytes((1 << 14) + 239))
    with pytest.raises(BadRecord):
        opens(0, 23, 0x303, sealed(bytes((1 << 14) + 240) + b"\x17"))


SUPPORTED = [suite for suite in map(suite_of, SUITE_NAMES) if suite.cipher]
MODERN = [suite for suite in SUPPORTED if not suite.exchange]
KINDS = [suite_of(each) for each in (0x9C, 0xCCA8, 0xC09D, 0xC0A0, 0x2F, 0xC028)]


@pytest.mark.parametrize("etm", [False, True])
@pytest.mark.parametrize("suite", MODERN + KINDS, ids=lambda suite: suite.name)
def test_garbage_is_a_bad_record(suite: Suite, etm: bool) -> None:
    source = random.Random(1)
    if not suite.exchange:
        protection = protection_13(suite, bytes(48 if suite.hash == "sha384" else 32))
    else:
        iv = 12 if "chacha" in suite.cipher else 0 if suite.mac else 4
        protection = protection_12(suite, Keys(bytes(suite.key_size), bytes(iv), b"m" * 20), etm)
    sizes = [*range(200), 16384, 16640, 16641, 18432, 18433, 65535]
    for size in sizes:
        for sequence in (0, (1 << 64) - 1, 1 << 64, 1 << 100, -1):
            with pytest.raises(BadRecord):
                open_with(protection, sequence, 23, 0x303, source.randbytes(size))
    for kind, version in ((255, 0x303), (0, 0x303), (23, 0xFFFF)):
        with pytest.raises(BadRecord):
            open_with(protection, 0, kind, version, source.randbytes(112))


def test_a_suite_without_support_has_no_protection() -> None:
    with pytest.raises(ValueError, match="3DES"):
        protection_12(suite_of(0x0A), Keys(b"", b""), False)


def real(
    version: ssl.TLSVersion, ciphers: str, etm: bool, broker: Path, authority: Authority, keys: Path
) -> Read:
    """What is read of a connection between both ends of OpenSSL."""
    client, server = contexts(broker, authority)
    client.minimum_version = client.maximum_version = version
    for each in (client, server):
        each.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    if not etm:
        client.options |= 1 << 19  # SSL_OP_NO_ENCRYPT_THEN_MAC
    keys.unlink(missing_ok=True)
    client.keylog_filename = str(keys)
    told = talk(client, server)
    log = KeyLog()
    log.add(keys.read_bytes())
    assert log.unusable == 0
    read = Read(KeySources(log)).take(told)
    assert list(map(bytes, read.plain)) == [b"a" * 100, b"b" * 100]
    assert (read.tls.error, read.tls.result) == ("", HandshakeResult("established"))
    return read


OPENSSL = [
    *("AES128-SHA", "AES256-SHA256", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384"),
    *("AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"),
    *("AES128-CCM", "AES256-CCM8"),
]


@pytest.mark.parametrize("ciphers", OPENSSL)
def test_what_openssl_seals_is_opened(
    ciphers: str, broker: Path, authority: Authority, tmp_path: Path
) -> None:
    for etm in (True, False):
        read = real(ssl.TLSVersion.TLSv1_2, ciphers, etm, broker, authority, tmp_path / "keys")
        assert read.tls.version == "TLS 1.2"


def test_what_openssl_seals_in_tls_13_is_opened(
    broker: Path, authority: Authority, tmp_path: Path
) -> None:
    read = real(ssl.TLSVersion.TLSv1_3, "DEFAULT", True, broker, authority, tmp_path / "keys")
    assert (read.tls.version, read.tls.suite) == ("TLS 1.3", "TLS_AES_256_GCM_SHA384")


def test_nothing_heavy_is_loaded_before_a_secret_is_used() -> None:
    code = (
        "import sys; from kafkascope.captures.tls.keys import keylog, derive, protection, suites;"
        "print(sorted({'cryptography', 'numpy', 'ssl'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert run.stdout.strip() == b"[]"


@pytest.mark.parametrize("etm", [False, True])
@pytest.mark.parametrize("suite", MODERN + KINDS, ids=lambda suite: suite.name)
def test_any_flipped_bit_is_a_bad_record(suite: Suite, etm: bool) -> None:
    talk = Talk(suite.number, etm=etm)
    before = len(talk.sent)
    talk.client(b"a request").client(b"x" * 40)
    if suite.exchange:
        keys = key_block(suite, talk.master, talk.client_random, talk.server_random)
        protection = protection_12(suite, keys[CLIENT], etm)
        first = 1  # behind the Finished
    else:
        protection = protection_13(suite, talk.secrets["CLIENT_TRAFFIC_SECRET_0"])
        first = 0
    for index, sent in enumerate(talk.sent[before:]):
        for bit in range(8 * len(sent.data)):
            if bit // 8 in (3, 4):
                continue  # the length is where the body ends
            data = bytearray(sent.data)
            data[bit // 8] ^= 1 << bit % 8
            with pytest.raises(BadRecord):
                protection.open(first + index, bytes(data[:5]), bytes(data[5:]))
        header, body = sent.data[:5], sent.data[5:]
        with pytest.raises(BadRecord):
            protection.open(first + index - 1, header, body)
        for cut in (body[:-1], body[1:], body + b"\0", body[16:], body[:-16], b""):
            with pytest.raises(BadRecord):
                open_with(protection, first + index, sent.data[0], 0x303, cut)
        for each in (body, memoryview(body)):
            assert protection.open(first + index, header, each) == (23, sent.plain)
            with pytest.raises(BadRecord):
                protection.open(first + index + 1, header, each)
        if not suite.mac:
            # Stream ciphers: a byte of plaintext lies where `start` says.
            assert len(body) >= protection.start + len(sent.plain)


def test_any_wrong_padding_of_cbc_is_a_bad_record() -> None:
    """Padding behind a MAC that is right: each of its bytes counts, also one that says too much."""
    keys = Keys(bytes(16), b"", b"m" * 20)
    suite = suite_of(0x2F)
    header = bytes(8) + b"\x17\3\3\0\5"
    content = b"right" + hmac.digest(keys.mac, header + b"right", "sha1")
    protection = protection_12(suite, keys, False)

    def body(padding: bytes) -> bytes:
        encryptor = Cipher(algorithms.AES(keys.key), modes.CBC(b"i" * 16)).encryptor()
        return b"i" * 16 + encryptor.update(content + padding)

    for right in (7, 23, 247):
        padding = bytes((right - 1,)) * right
        assert (len(content) + len(padding)) % 16 == 0
        assert open_with(protection, 0, 23, 0x303, body(padding)) == (23, b"right")
        for at in range(right):
            wrong = bytearray(padding)
            wrong[at] ^= 0x41
            with pytest.raises(BadRecord):
                open_with(protection, 0, 23, 0x303, body(bytes(wrong)))
