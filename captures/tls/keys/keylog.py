"""Key logs: the secrets of TLS connections, as programs write them into files. No I/O.

log = KeyLog()
log.add(data)                       # bytes of a file in any pieces, again when it has grown
log.finish()                        # the end of that file: its last line may lack its end
log.secrets(client_random)          # what is known of a connection

Lines (draft-ietf-tls-keylogfile; the last two of NSS and of Java), hexadecimal of any case:

    CLIENT_RANDOM                    <32 bytes of client random>  <48 bytes of master secret>
    CLIENT_HANDSHAKE_TRAFFIC_SECRET  <client random>              <secret of 32 or 48 bytes>
    RSA                              <8 bytes of premaster>       <48 bytes of premaster secret>
    RSA Session-ID:<up to 32 bytes>  Master-Key:<48 bytes of master secret>

A log may hold anything: what is no such line is counted and skipped.
"""

from __future__ import annotations

import codecs
import re
from binascii import Error, hexlify, unhexlify
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS

LABELS: Final = {
    b"CLIENT_RANDOM": 0,
    b"CLIENT_HANDSHAKE_TRAFFIC_SECRET": 1,
    b"SERVER_HANDSHAKE_TRAFFIC_SECRET": 2,
    b"CLIENT_TRAFFIC_SECRET_0": 3,
    b"SERVER_TRAFFIC_SECRET_0": 4,
    b"CLIENT_EARLY_TRAFFIC_SECRET": 5,
}
"""Label -> index in `Secrets`."""
NAMES: Final = tuple(LABELS)
MASTER: Final = 0
TRAFFIC: Final = (3, 4)

MASTER_SIZE: Final = 48
HASH_SIZES: Final = (32, 48)
"""A secret of TLS 1.3 is as long as its suite's hash."""

_RANDOM, _PREMASTER, _SESSION = b"r", b"p", b"s"
"""First byte of a key of the store: what kind of name the rest is."""
_SPARE_LABEL: Final = re.compile(rb"[A-Z][A-Z0-9_]+$")


class Secrets(NamedTuple):
    """Secrets in a key log for one client random."""

    master: bytes | None = None
    """TLS 1.2: the master secret."""
    client_handshake: bytes | None = None
    server_handshake: bytes | None = None
    client_traffic: bytes | None = None
    server_traffic: bytes | None = None
    client_early: bytes | None = None

    def __repr__(self) -> str:
        """Say which secrets there are, not what they are."""
        return f"Secrets({', '.join(n for n, v in self._asdict().items() if v is not None)})"


class LogLines:
    """Cuts one key log into lines, whatever pieces it comes in. State without I/O.

    UTF-16 (PowerShell's `>`) is detected by its byte order mark.
    """

    def __init__(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self._head: bytes | None = b""
        """The first bytes, until it is clear whether they are a byte order mark; then None."""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._tail = b""
        """A line without its end, at most a byte longer than what is looked at."""

    def add(self, data: bytes) -> list[bytes]:
        """Return the lines that these bytes complete, without their ends; of one longer than
        `keylog_line_bytes` at least a byte more than that."""
        if self._head is not None:
            data = self._head + data
            if len(data) < 3 and (
                data in (b"", b"\xff", b"\xfe") or b"\xef\xbb\xbf".startswith(data)
            ):
                self._head = data
                return []
            self._head = None
            for mark, encoding in (
                (codecs.BOM_UTF16_LE, "utf-16-le"),
                (codecs.BOM_UTF16_BE, "utf-16-be"),
            ):
                if data.startswith(mark):
                    self._decoder = codecs.getincrementaldecoder(encoding)("replace")
                    data = data[2:]
            data = data.removeprefix(codecs.BOM_UTF8)
        if self._decoder is not None:
            data = self._decoder.decode(data).encode("ascii", "replace")
        first, *rest = data.split(b"\n")
        lines = [self._tail + first[: LIMITS.keylog_line_bytes + 1 - len(self._tail)], *rest]
        self._tail = lines.pop()[: LIMITS.keylog_line_bytes + 1]
        return lines

    @property
    def rest(self) -> bytes:
        """A last line that has no end yet."""
        return (self._head or b"") + self._tail

    def finish(self) -> list[bytes]:
        """Return the last line, if it had no end. What comes then is another log."""
        tail = self.rest
        self._restart()
        return [tail] if tail else []


class KeyLog:
    """A bounded store of secrets; of too many the older half is forgotten. State without I/O."""

    def __init__(self, most: int = LIMITS.secrets) -> None:
        self.changes = 0
        """Grows whenever something new was learned."""
        self.lines = 0
        """Lines that were neither blank nor comments."""
        self.unusable = 0
        """Lines that are none of a key log, or cut or damaged ones. Labels that are of no use
        here do not count."""
        self.limited = False
        """Secrets were forgotten."""
        self.fresh: list[bytes] | None = None
        """Client randoms of TLS 1.3 since somebody emptied it; None where nobody wants them."""
        self.other_names = False
        """There are secrets that no client random names."""
        self._most = most
        self._old: dict[bytes, bytes] = {}
        self._new: dict[bytes, bytes] = {}
        """Kind and name -> its secrets, each after its index and its size: one object for each
        connection, for there are many. In `_new` is what came last, up to half of all; keys are in
        one of the two."""
        self._held = 0
        """Secrets in `_new`."""
        self._text = LogLines()

    def __repr__(self) -> str:
        return f"<KeyLog: {len(self._old) + len(self._new)} connections>"

    def copy(self) -> KeyLog:
        """Return one that learns for itself from here on."""
        twin = KeyLog(self._most)
        twin.changes, twin.limited = self.changes, self.limited
        twin.other_names = self.other_names
        twin._old, twin._new, twin._held = self._old.copy(), self._new.copy(), self._held
        return twin

    def identity(self) -> str:
        """Return the identity of this log, made of the names in it, not of the secrets."""
        digest = blake2b(digest_size=8)
        for key in sorted([*self._old, *self._new]):
            digest.update(key)
        return digest.hexdigest()

    def add(self, data: bytes) -> None:
        """Take bytes of a log. Logs that grow at the same time are each cut by a `LogLines`."""
        for line in self._text.add(data):
            self.take(line)

    def finish(self) -> None:
        """Take what has no end as a line; what is added next begins another log."""
        for line in self._text.finish():
            self.take(line)

    def take(self, line: bytes) -> None:
        line = line[: LIMITS.keylog_line_bytes + 1]
        words = line.split()
        if not words or words[0].startswith(b"#"):
            return
        self.lines += 1
        if len(line) > LIMITS.keylog_line_bytes or not self._take(words):
            self.unusable += 1

    def _take(self, words: list[bytes]) -> bool:
        """Return whether the words are a line of a key log."""
        if len(words) != 3:
            return False
        # A label with a client random (NSS), or RSA with the beginning of the encrypted premaster
        # secret or with a session id: what Wireshark reads.
        label, name, secret = words
        kind, index = _RANDOM, LABELS.get(label, -1)
        if index < 0 and label == b"RSA":
            index = MASTER
            kind = _PREMASTER
            if name.startswith(b"Session-ID:") and secret.startswith(b"Master-Key:"):
                kind = _SESSION
                name, secret = name[11:], secret[11:]
        try:
            key, value = unhexlify(name), unhexlify(secret)
        except Error:
            return False
        if index < 0:
            return _SPARE_LABEL.match(label) is not None
        if kind == _RANDOM:
            fits = len(key) == 32
        else:
            fits = len(key) == 8 if kind == _PREMASTER else 0 < len(key) <= 32
        if not fits or len(value) not in (HASH_SIZES if index != MASTER else (MASTER_SIZE,)):
            return False
        self._learn(kind + key, index, value)
        self.other_names |= kind != _RANDOM
        return True

    def _learn(self, key: bytes, index: int, value: bytes) -> None:
        known = dict(_parts(self._packed(key)))
        before = known.get(index)
        if before == value:
            return
        if self.fresh is not None and index in TRAFFIC and known.keys().isdisjoint(TRAFFIC):
            self.fresh.append(key[1:])
        known[index] = value
        # Two generations: nothing is kept of the order of use, and forgetting is one assignment.
        if self._held >= self._most // 2:
            self.limited = self.limited or bool(self._old)
            self._old, self._new, self._held = self._new, {}, 0
        self._held += before is None if key in self._new else len(known)
        self._old.pop(key, None)
        self._new[key] = b"".join(bytes((i, len(each))) + each for i, each in known.items())
        self.changes += 1

    def _packed(self, key: bytes) -> bytes:
        return self._new.get(key) or self._old.get(key, b"")

    def secrets(self, client_random: bytes) -> Secrets | None:
        """Return what is known of the connection with a client random."""
        return self._of(_RANDOM + client_random)

    def by_session(self, session_id: bytes) -> bytes | None:
        """Return the master secret of a session of TLS 1.2."""
        found = self._of(_SESSION + session_id)
        return found and found.master

    def by_premaster(self, first8: bytes) -> bytes | None:
        """Return the premaster secret whose encrypted form begins with these 8 bytes."""
        found = self._of(_PREMASTER + first8)
        return found and found.master

    def _of(self, key: bytes) -> Secrets | None:
        packed = self._packed(key)
        if not packed:
            return None
        known: list[bytes | None] = [None] * len(NAMES)
        for index, secret in _parts(packed):
            known[index] = secret
        return Secrets(*known)

    def randoms(self) -> Iterator[bytes]:
        """Iterate over the client randoms of TLS 1.3 that have traffic secrets, the oldest first.

        The log may grow meanwhile; what is new then does not come.
        """
        for key in [*self._old, *self._new]:
            indexes = (index for index, _ in _parts(self._packed(key)))
            if key.startswith(_RANDOM) and any(index in TRAFFIC for index in indexes):
                yield key[1:]

    def lines_of(self, client_random: bytes) -> bytes:
        return self._lines(_RANDOM + client_random)

    def all_lines(self) -> bytes:
        return b"".join(map(self._lines, [*self._old, *self._new]))

    def _lines(self, key: bytes) -> bytes:
        kind, name, parts = key[:1], key[1:], sorted(_parts(self._packed(key)))
        if kind == _SESSION:
            line = b"RSA Session-ID:%b Master-Key:%b\n"
            return b"".join(line % (hexlify(name), hexlify(secret)) for _, secret in parts)
        return b"".join(
            log_line(b"RSA" if kind == _PREMASTER else NAMES[index], name, secret)
            for index, secret in parts
        )


def log_line(label: bytes, name: bytes, secret: bytes) -> bytes:
    """Return a line of a key log: `CLIENT_RANDOM` of a resumed connection, for example."""
    return b"%b %b %b\n" % (label, hexlify(name), hexlify(secret))


def _parts(packed: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(packed):
        end = at + 2 + packed[at + 1]
        yield packed[at], packed[at + 2 : end]
        at = end
