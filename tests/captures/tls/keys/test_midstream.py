"""Connections without handshake: the secret and the sequence number are found, or nothing is."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from kafkascope.captures.tls.keys.derive import Keys, next_secret, traffic_keys
from kafkascope.captures.tls.keys.midstream import (
    CHUNK,
    TRIES,
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
Records = list[tuple[int, bytes]]


def secret_of(suite: Suite, at: int) -> tuple[int, bytes]:
    """The index of a secret that fits the suite, and the secret."""
    index = 2 * at + (suite.hash == "sha384")
    return index, SECRETS[index]


def written(suite: Suite, secret: bytes, start: int, sizes: list[int], padding: int = 0) -> Records:
    seal = sealer_13(suite, secret, padding)
    plain = [SOURCE.randbytes(size) for size in sizes]
    return [(23, seal(start + i, 23, each)[5:]) for i, each in enumerate(plain)]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
@pytest.mark.parametrize("start", [0, 1, CHUNK - 1, CHUNK, TRIES - 1])
def test_any_number_is_found(suite: Suite, start: int) -> None:
    index, secret = secret_of(suite, 1)
    records = written(suite, secret, start, [300, 0, 5])
    assert find([suite], SECRETS[:4], records) == FoundSecret(index, suite, start)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_records_of_any_size_tell(suite: Suite) -> None:
    index, secret = secret_of(suite, 3)
    shapes = (([16_000, 16_384], 0), ([15], 0), ([0, 0], 0), ([7, 700], 50), ([7], 16_000))
    for sizes, padding in shapes:
        records = written(suite, secret, 500, sizes, padding)
        assert find(SUITES, SECRETS[:10], records, tries=501) == FoundSecret(index, suite, 500)


def test_a_hundred_secrets_are_tried() -> None:
    suite, (index, secret) = SUITES[0], secret_of(SUITES[0], 49)
    records = written(suite, secret, 40_000, [100, 90])
    assert find(SUITES, SECRETS, records) == FoundSecret(index, suite, 40_000)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_nothing_is_found_beyond_what_is_tried(suite: Suite) -> None:
    _, secret = secret_of(suite, 0)
    records = written(suite, secret, 5000, [100, 100])
    assert find([suite], [secret], records, tries=5000) is None
    assert find([suite], [secret], records, tries=5001) == FoundSecret(0, suite, 5000)
    assert find([suite], [secret], records, first=5001, tries=5000) is None
    assert find([suite], [secret], records, first=5000, tries=1) == FoundSecret(0, suite, 5000)
    assert find([suite], SECRETS[4:6], records, tries=6000) is None


def test_far_numbers_are_found() -> None:
    for first in ((1 << 32) - 3, 1 << 40, (1 << 62) + 9):
        for suite in SUITES:
            _, secret = secret_of(suite, 0)
            records = written(suite, secret, first + 5, [10, 10])
            assert find([suite], [secret], records, first, 9) == FoundSecret(0, suite, first + 5)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_key_changes_behind_the_first_record(suite: Suite) -> None:
    _, secret = secret_of(suite, 0)
    first = sealer_13(suite, secret)(77, 22, bytes((24, 0, 0, 1, 0)))[5:]
    after = written(suite, next_secret(suite, secret), 0, [200, 200])
    records = [(23, first), *after]
    assert find([suite], [secret], records, tries=100) == FoundSecret(0, suite, 77)


def test_what_is_not_encrypted_does_not_count() -> None:
    suite, (_, secret) = SUITES[0], secret_of(SUITES[0], 0)
    one, two = written(suite, secret, 9, [10, 10])
    records = [(20, b"\1"), one, (20, b"\1"), two, (21, b"\2\x14")]
    assert find([suite], [secret], records) == FoundSecret(0, suite, 9)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_garbage_fits_nothing(suite: Suite) -> None:
    _, secret = secret_of(suite, 0)
    for size in (0, 1, 8, 16, 17, 100, 16_640, 16_641, 20_000):
        for other in (0, 5, 200):
            records = [(23, SOURCE.randbytes(size)), (23, SOURCE.randbytes(other))]
            assert find([suite], [secret], records, tries=3000) is None
    assert find([suite], [secret], []) is None
    assert find([suite], [], [(23, bytes(100))]) is None
    assert find([suite_of(0x9C), suite_of(0x1234)], [secret], [(23, bytes(100))]) is None


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
    """What makes it fast: one number in 250 with one record, one in 62 000 with two."""
    _, secret = secret_of(suite, 0)
    keys = traffic_keys(suite, secret)
    bodies = [body for _, body in written(suite, secret, 8000, [300, 300])]
    alone = list(_candidates(suite, keys, bodies[:1], 0, CHUNK))
    both = list(_candidates(suite, keys, bodies, 0, CHUNK))
    assert 8000 in alone
    assert 8000 in both
    assert 16 < len(alone) < 64
    assert len(both) < 16
