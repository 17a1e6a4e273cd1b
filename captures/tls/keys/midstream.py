"""Finds the secret of a TLS 1.3 connection whose handshake is not in the capture. Stateless.

Nothing in its records says which secret of a key log is theirs, or which sequence number the first
of them has; but only the right pair authenticates. To try a pair costs 2 µs, and there are 65 536
numbers for each secret. So all numbers are tried at once on one byte: the last one of what is
encrypted is the content type, or zero behind it where records are padded (RFC 8446, 5.4). The bytes
of the key stream at its place, one for each number, are one call of AES, or ChaCha20 over arrays.
Where the rest of the record may be what ends so, and the same holds for the next one, the pair is
tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.captures.tls.keys.derive import Keys, traffic_keys
from kafkascope.captures.tls.keys.protection import (
    HEADER,
    MOST_BODY_13,
    BadRecord,
    aead,
    protection_13,
    tag_size,
)
from kafkascope.captures.tls.keys.suites import Suite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.uint64]
    KeyStream = Callable[[Numbers, int], NDArray[np.uint8]]
    """Sequence numbers, position in the plaintext -> the byte of each number's key stream."""

PROTECTED: Final = 23
"""Type of all encrypted records."""
VERSION: Final = 0x0303
ALERT, HANDSHAKE, DATA = 21, 22, 23
LAST_BYTES: Final = (0, ALERT, HANDSHAKE, DATA)
"""What plaintext may end with: 0 is padding."""
ALERT_SIZE: Final = 2
MESSAGES: Final = (4, 11, 13, 15, 20, 24)
"""Types of messages behind the handshake, which share no record with others' rest: tickets, late
client certificates, KeyUpdates."""
KEY_UPDATE: Final = 6
"""Bytes of a KeyUpdate with its type: a record that long may be one, and the next has other keys
then."""
TRIES: Final = 65_536
CHUNK: Final = 8_192
"""Numbers that are tried at once: arrays that fit into the processor's cache."""
GCM_CHUNK: Final = 65_536
"""The same with AES-GCM, where an array takes a fourth of the time that its calls take."""
MASK: Final = 0xFFFF_FFFF


class FoundSecret(NamedTuple):
    """Which secret and suite open the records."""

    which: int
    """Index of the secret."""
    suite: Suite
    sequence: int
    """Sequence number of the first protected record."""


def find(
    suites: Iterable[Suite],
    secrets: Iterable[bytes],
    records: Sequence[tuple[int, bytes]],
    first: int = 0,
    tries: int = TRIES,
) -> FoundSecret | None:
    """Return the secret that opens the records of one direction, and the number of the first.

    Records are kind and body, none missing in between; what is not encrypted does not count. Of the
    suites those are tried that fit a secret's length; the sequence numbers are `first` to
    `first + tries - 1`. For 65 536 of them a secret takes 2 ms with AES, and ten times that with
    ChaCha20, which should come last. Secrets behind the one that fits are not asked for.
    """
    bodies = [body for kind, body in records if kind == PROTECTED][:2]
    if not bodies or len(bodies[0]) > MOST_BODY_13:
        return None
    known = list(suites)
    for index, secret in enumerate(secrets):
        for suite in known:
            if len(secret) == suite.secret_size and not suite.exchange and suite.cipher:
                sequence = _sequence(suite, secret, bodies, first, tries)
                if sequence is not None:
                    return FoundSecret(index, suite, sequence)
    return None


def _sequence(
    suite: Suite, secret: bytes, bodies: list[bytes], first: int, tries: int
) -> int | None:
    """Return the sequence number with which the secret opens the first of one or two records."""
    keys, body = traffic_keys(suite, secret), bodies[0]
    decrypt, invalid = aead(suite, keys.key)
    iv, header = int.from_bytes(keys.iv, "big"), HEADER.pack(PROTECTED, VERSION, len(body))
    for number in _candidates(suite, keys, bodies, first, tries):
        try:  # not `Protection.open`, which takes twice as long to say no
            decrypt((iv ^ number).to_bytes(12, "big"), body, header)
            protection_13(suite, secret).open(number, PROTECTED, VERSION, body)
        except (invalid, BadRecord):
            continue
        return number
    return None


def _candidates(
    suite: Suite, keys: Keys, bodies: list[bytes], first: int, tries: int
) -> Iterator[int]:
    """Yield the numbers with which all records end as plaintext may end."""
    import numpy as np

    tag = tag_size(suite)
    chunk = CHUNK
    if suite.cipher == "chacha20-poly1305":
        stream = _chacha_stream(keys)
    elif suite.cipher == "aes-gcm" and first + tries + len(bodies) < MASK:
        chunk = min(GCM_CHUNK, tries)
        stream = _gcm_stream(keys, chunk)
    else:
        stream = _aes_stream(suite, keys)
    if len(bodies[0]) <= tag + KEY_UPDATE:
        bodies = bodies[:1]
    if any(len(body) <= tag for body in bodies):
        return
    for start in range(first, first + tries, chunk):
        numbers = np.arange(start, min(start + chunk, first + tries), dtype=np.uint64)
        for ahead, body in enumerate(bodies):
            numbers = _fitting(stream, numbers, ahead, body[:-tag])
        yield from numbers.tolist()


def _fitting(stream: KeyStream, numbers: Numbers, ahead: int, sealed: bytes) -> Numbers:
    """Return those of the numbers of a record with which the one that is `ahead` of it ends as
    plaintext may end, and begins as what ends so begins."""
    import numpy as np

    def shown(of: Numbers, at: int) -> NDArray[np.uint8]:
        return stream(of + np.uint64(ahead), at) ^ np.uint8(sealed[at])

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


def _gcm_stream(keys: Keys, most: int) -> KeyStream:
    """Return the key stream of GCM for `most` sequence numbers at once, below 2^32: only one word
    of four is another one in each block."""
    import numpy as np
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    update: Any = Cipher(algorithms.AES(keys.key), modes.ECB()).encryptor().update_into
    blocks = np.empty((most, 4), np.uint32)
    blocks[:] = np.frombuffer(keys.iv + bytes(4), np.uint32)
    last = blocks[0, 2]
    made = np.empty(16 * most + 15, np.uint8)

    def stream(numbers: Numbers, position: int) -> NDArray[np.uint8]:
        count = len(numbers)
        here = blocks[:count]
        np.bitwise_xor(numbers.astype(">u4").view(np.uint32), last, out=here[:, 2])
        counter = (2 + position // 16).to_bytes(4, "big")  # 1 is of the tag
        here[:, 3] = np.frombuffer(counter, np.uint32)[0]
        update(here.view(np.uint8).reshape(-1).data, made.data)
        return made[position % 16 : 16 * count : 16]

    return stream


def _aes_stream(suite: Suite, keys: Keys) -> KeyStream:
    """Return the key stream of GCM (NIST SP 800-38D) or CCM (RFC 3610), with nonces of 12 bytes."""
    import numpy as np
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    update: Callable[[Any], bytes]
    update = Cipher(algorithms.AES(keys.key), modes.ECB()).encryptor().update
    high, low = int.from_bytes(keys.iv[:4], "big"), np.uint64(int.from_bytes(keys.iv[4:], "big"))
    gcm = suite.cipher == "aes-gcm"

    def stream(numbers: Numbers, position: int) -> NDArray[np.uint8]:
        nonces = numbers ^ low
        blocks = np.empty((len(numbers), 2), ">u8")
        if gcm:  # nonce, counter of 4 bytes; 1 is of the tag
            blocks[:, 0] = np.uint64(high << 32) | nonces >> np.uint64(32)
            blocks[:, 1] = nonces << np.uint64(32) | np.uint64(2 + position // 16)
        else:  # size of the counter less one, nonce, counter of 3 bytes; 0 is of the tag
            blocks[:, 0] = np.uint64(2 << 56 | high << 24) | nonces >> np.uint64(40)
            blocks[:, 1] = nonces << np.uint64(24) | np.uint64(1 + position // 16)
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
