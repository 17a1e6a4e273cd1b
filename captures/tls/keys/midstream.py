"""Finds the secret of a TLS 1.3 connection whose handshake is not in the capture. Stateless.

Nothing in a record says which secret of a key log is its own, or which sequence number it has; but
only the right pair authenticates. To try a pair costs 2 µs, and there are 65 536
numbers for each secret. So all numbers are tried at once on one byte: the last one of what is
encrypted is the content type, or zero after it where records are padded (RFC 8446, 5.4). The bytes
of the key stream at its place, one for each number, are one call of AES, or ChaCha20 over arrays.
Where the rest of the record may be what ends so, the pair is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.tls.keys.derive import Keys, traffic_keys
from kafkascope.captures.tls.keys.protection import BadRecord, aead, protection_13, tag_size
from kafkascope.captures.tls.keys.suites import Suite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.uint64]
    KeyStream = Callable[[Numbers, int], NDArray[np.uint8]]
    """Sequence numbers, position in the plaintext -> the byte of each number's key stream."""

# Type and version of all encrypted records.
PROTECTED: Final = b"\x17\3\3"
ALERT, HANDSHAKE, DATA = 21, 22, 23
LAST_BYTES: Final = (0, ALERT, HANDSHAKE, DATA)
"""What plaintext may end with: 0 is padding."""
ALERT_SIZE: Final = 2
MESSAGES: Final = (4, 11, 13, 15, 20, 24)
"""Types of messages after the handshake, which share no record with others' rest: tickets, late
client certificates, KeyUpdates."""
# Numbers that are tried at once: arrays that fit into the processor's cache.
CHUNK: Final = 8_192
MASK: Final = 0xFFFF_FFFF


class FoundSecret(NamedTuple):
    """Which secret and suite open the record."""

    which: int
    """Index of the secret."""
    suite: Suite
    sequence: int


def find(
    suites: Iterable[Suite], secrets: Iterable[bytes], body: bytes, tries: int = LIMITS.sequences
) -> FoundSecret | None:
    """Return the secret that opens an encrypted record, and the record's number.

    Of the suites those are tried that fit a secret's length, of sequence numbers those below
    `tries`. For 65 536 of them a secret takes 2 ms with AES, and ten times that with ChaCha20,
    which should come last. Secrets after the one that fits are not asked for.
    """
    if len(body) > LIMITS.tls13_record_bytes:
        return None
    known = list(suites)
    for index, secret in enumerate(secrets):
        for suite in known:
            if len(secret) == suite.secret_size and not suite.exchange and suite.cipher:
                sequence = _sequence(suite, secret, body, tries)
                if sequence is not None:
                    return FoundSecret(index, suite, sequence)
    return None


def _sequence(suite: Suite, secret: bytes, body: bytes, tries: int) -> int | None:
    """Return the sequence number with which the secret opens the record."""
    keys = traffic_keys(suite, secret)
    decrypt, invalid = aead(suite, keys.key)
    iv, header = int.from_bytes(keys.iv, "big"), PROTECTED + len(body).to_bytes(2, "big")
    for number in _candidates(suite, keys, body, tries):
        try:  # not `Protection.open`, which takes twice as long to say no
            decrypt((iv ^ number).to_bytes(12, "big"), body, header)
            protection_13(suite, secret).open(number, header, body)
        except (invalid, BadRecord):
            continue
        return number
    return None


def _candidates(suite: Suite, keys: Keys, body: bytes, tries: int) -> Iterator[int]:
    """Yield the numbers with which the record ends as plaintext may end."""
    import numpy as np

    sealed = body[: -tag_size(suite)]
    if not sealed:
        return
    chacha = suite.cipher == "chacha20-poly1305"
    stream = _chacha_stream(keys) if chacha else _aes_stream(suite, keys)
    for start in range(0, tries, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, tries), dtype=np.uint64)
        yield from _fitting(stream, numbers, sealed).tolist()


def _fitting(stream: KeyStream, numbers: Numbers, sealed: bytes) -> Numbers:
    """Return those of the numbers with which a record ends as plaintext may end, and begins as what
    ends so begins."""
    import numpy as np

    def shown(of: Numbers, at: int) -> NDArray[np.uint8]:
        return stream(of, at) ^ np.uint8(sealed[at])

    def among(of: Numbers, at: int, bytes_: tuple[int, ...]) -> Numbers:
        return of[np.isin(shown(of, at), bytes_)] if len(of) else of

    last = len(sealed) - 1
    ends = shown(numbers, last)
    found = [numbers[ends == DATA]]
    if last:
        found.append(among(numbers[ends == HANDSHAKE], 0, MESSAGES))
        # Padding: as far as one looks, zeros or the type.
        found.append(among(numbers[ends == 0], last - 1, LAST_BYTES))
    if last == ALERT_SIZE:
        found.append(numbers[ends == ALERT])
    return np.concatenate(found)


def _aes_stream(suite: Suite, keys: Keys) -> KeyStream:
    """Return the key stream of GCM (NIST SP 800-38D) or CCM (RFC 3610), with nonces of 12 bytes."""
    import numpy as np
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # Bits of the counter after the nonce; its first number, for the one before is of the tag; and
    # what stands before the nonce: in CCM the counter's size less one.
    bits, first, size = (32, 2, 0) if suite.cipher == "aes-gcm" else (24, 1, 2)
    update: Callable[[Any], bytes]
    update = Cipher(algorithms.AES(keys.key), modes.ECB()).encryptor().update
    high, low = int.from_bytes(keys.iv[:4], "big"), np.uint64(int.from_bytes(keys.iv[4:], "big"))

    def stream(numbers: Numbers, position: int) -> NDArray[np.uint8]:
        nonces = numbers ^ low
        blocks = np.empty((len(numbers), 2), ">u8")
        blocks[:, 0] = np.uint64(size << 56 | high << bits) | nonces >> np.uint64(64 - bits)
        blocks[:, 1] = nonces << np.uint64(bits) | np.uint64(first + position // 16)
        return np.frombuffer(update(blocks.tobytes()), np.uint8)[position % 16 :: 16]

    return stream


def _chacha_stream(keys: Keys) -> KeyStream:
    """Return the key stream of ChaCha20 (RFC 8439, 2.3 and 2.4)."""
    import numpy as np

    constant = np.frombuffer(b"expand 32-byte k", "<u4").astype(np.uint32)
    key = np.frombuffer(keys.key, "<u4").astype(np.uint32)
    high = int.from_bytes(keys.iv[:4], "little")
    low = np.uint64(int.from_bytes(keys.iv[4:], "big"))

    def stream(numbers: Numbers, position: int) -> NDArray[np.uint8]:
        start = np.empty((4, 4, len(numbers)), np.uint32)
        start[0], start[1], start[2] = constant[:, None], key[:4, None], key[4:, None]
        start[3, 0], start[3, 1] = 1 + position // 64, high
        nonces = numbers ^ low
        start[3, 2] = (nonces >> np.uint64(32)).astype(np.uint32).byteswap()
        start[3, 3] = (nonces & np.uint64(MASK)).astype(np.uint32).byteswap()
        # Rows have room beside their four words: to turn one copies as few as it is turned by.
        wide = np.empty((4, 6, len(numbers)), np.uint32)
        a, b, c, d = wide
        columns = a[1:5], b[1:5], c[:4], d[1:5]
        for mine, its in zip(columns, start, strict=True):
            mine[:] = its
        diagonals = a[1:5], b[2:], c[2:], d[:4]
        for _ in range(10):
            _quarter_rounds(*columns)
            b[5], c[4:], d[0] = b[1], c[:2], d[4]
            _quarter_rounds(*diagonals)
            b[1], c[:2], d[4] = b[5], c[4:], d[0]
        row, column = divmod(position % 64 // 4, 4)
        word: NDArray[np.uint32] = columns[row][column] + start[row, column]
        return (word >> np.uint32(position % 4 * 8)).astype(np.uint8)

    return stream


def _quarter_rounds(
    a: NDArray[np.uint32], b: NDArray[np.uint32], c: NDArray[np.uint32], d: NDArray[np.uint32]
) -> None:
    """The quarter round of RFC 8439, 2.1, on whole arrays in place."""
    import numpy as np

    spare = np.empty_like(a)
    for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x += y
        z ^= x
        np.left_shift(z, np.uint32(bits), out=spare)
        z >>= np.uint32(32 - bits)
        z |= spare
