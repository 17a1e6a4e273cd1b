"""Connections without handshake: the secret and the sequence number are found, or nothing is."""

import random

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.tls.keys.derive import Keys, traffic_keys
from kafkascope.captures.tls.keys.midstream import (
    CHUNK,
    FoundSecret,
    _candidates,
    _chacha_stream,
    find,
)
from kafkascope.captures.tls.keys.suites import Suite, suite_of
from tests.captures.tls.writer import sealer_13

SUITES = [suite_of(number) for number in (0x1301, 0x1302, 0x1304, 0x1305, 0x1303)]
SOURCE = random.Random(1)
SECRETS = [SOURCE.randbytes(size) for size in (32, 48) * 50]


def secret_of(suite: Suite, at: int) -> tuple[int, bytes]:
    """The index of a secret that fits the suite, and the secret."""
    index = 2 * at + (suite.hash == "sha384")
    return index, SECRETS[index]


def written(suite: Suite, secret: bytes, number: int, size: int, padding: int = 0) -> bytes:
    return sealer_13(suite, secret, padding)(number, 23, SOURCE.randbytes(size))[5:]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
@pytest.mark.parametrize("start", [0, 1, CHUNK - 1, CHUNK, LIMITS.sequences - 1])
def test_any_number_is_found(suite: Suite, start: int) -> None:
    index, secret = secret_of(suite, 1)
    body = written(suite, secret, start, 300)
    assert find([suite], SECRETS[:4], body) == FoundSecret(index, suite, start)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_records_of_any_size_tell(suite: Suite) -> None:
    index, secret = secret_of(suite, 3)
    for size, padding in ((16_384, 0), (15, 0), (0, 0), (7, 50), (7, 16_000)):
        body = written(suite, secret, 500, size, padding)
        assert find(SUITES, SECRETS[:10], body, tries=501) == FoundSecret(index, suite, 500)


def test_a_hundred_secrets_are_tried() -> None:
    suite, (index, secret) = SUITES[0], secret_of(SUITES[0], 49)
    body = written(suite, secret, 40_000, 100)
    assert find(SUITES, SECRETS, body) == FoundSecret(index, suite, 40_000)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_nothing_is_found_beyond_what_is_tried(suite: Suite) -> None:
    _, secret = secret_of(suite, 0)
    body = written(suite, secret, 5000, 100)
    assert find([suite], [secret], body, tries=5000) is None
    assert find([suite], [secret], body, tries=5001) == FoundSecret(0, suite, 5000)
    assert find([suite], SECRETS[4:6], body, tries=6000) is None


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_message_of_a_handshake_is_found(suite: Suite) -> None:
    _, secret = secret_of(suite, 0)
    update = sealer_13(suite, secret)(77, 22, bytes((24, 0, 0, 1, 0)))[5:]
    assert find([suite], [secret], update, tries=100) == FoundSecret(0, suite, 77)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_garbage_fits_nothing(suite: Suite) -> None:
    _, secret = secret_of(suite, 0)
    for size in (0, 1, 8, 16, 17, 100, 16_640, 16_641, 20_000):
        assert find([suite], [secret], SOURCE.randbytes(size), tries=3000) is None
    assert find([suite], [], bytes(100)) is None
    assert find([suite_of(0x9C), suite_of(0x1234)], [secret], bytes(100)) is None


def test_the_key_stream_is_that_of_chacha20() -> None:
    keys = Keys(SOURCE.randbytes(32), SOURCE.randbytes(12))
    stream = _chacha_stream(keys)
    numbers = np.array([0, 1, 77, 1 << 33, (1 << 64) - 1], np.uint64)
    for position in (0, 1, 2, 3, 20, 63, 64, 1000):
        found = stream(numbers, position).tolist()
        for number, byte in zip(numbers.tolist(), found, strict=True):
            nonce = (int.from_bytes(keys.iv, "big") ^ number).to_bytes(12, "big")
            cipher = Cipher(algorithms.ChaCha20(keys.key, b"\1\0\0\0" + nonce), None)
            assert cipher.encryptor().update(bytes(position + 1))[-1] == byte


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_few_numbers_are_left_to_try(suite: Suite) -> None:
    """What makes it fast: one number in 250."""
    _, secret = secret_of(suite, 0)
    keys = traffic_keys(suite, secret)
    body = written(suite, secret, 8000, 300)
    found = list(_candidates(suite, keys, body, CHUNK))
    assert 8000 in found
    assert 16 < len(found) < 64
