"""What connections learn of each other to be decrypted, where each task has some of them only.

A connection of TLS 1.2 may resume what another one negotiated; one whose handshake is not in the
capture is tried with the secrets that no other has claimed. So tasks note what they ask and tell
(`TaskKeys`), and one process goes through these notes in the order of the packets, with the key log
(`Agreement`). Of it come the answers, and the lines of the key log that tasks need (`Agreed`). The
first notes are made of the beginnings of connections (`heads`), without any secret.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.pipeline import state
from kafkascope.captures.formats.records import DecryptionSecrets
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.keys.sessions import Origin
from kafkascope.captures.tls.records import TlsRecord
from kafkascope.captures.tls.search import FoundKeys
from kafkascope.captures.tls.sources import MOST_SEQUENCES, TLS_KEY_LOG, KeySources
from kafkascope.extras import installed, require

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.job import Job
    from kafkascope.captures.model import Connection
    from kafkascope.captures.tls.keys.epoch import Epoch

TLS_1_2: Final = 0x0303
HELLO, OFFER, RESUME, RECORD, EPOCH = range(5)
"""Kinds of notes, in the order in which a packet may make them."""
Note: TypeAlias = tuple[Any, ...]
"""Number of the packet, kind, and what was asked or told."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """What tasks are told."""

    since: int = 0
    """Number of the packet from which on there is a key log."""
    lines: bytes = field(default=b"", repr=False)
    """Those of the key log that are needed."""
    other_names: bool = True
    """Whether a key log has secrets that no client random names."""
    origins: dict[tuple[bytes, bytes], tuple[Origin, ...]] = field(default_factory=dict)
    """By client random: the handshakes behind a name that this client offers."""
    found: dict[bytes, FoundKeys] = field(default_factory=dict)
    """By digest of a record: what trying secrets gave."""


class TaskKeys:
    """What one task decrypts with: see `captures.tls.sources.SharedKeys`."""

    def __init__(self, told: Agreed, now: Callable[[], int]) -> None:
        """`now`: number of the current packet."""
        require("TLS decryption in a Spark worker")
        self._told = told
        self._now = now
        self._log = KeyLog()
        self._log.add(told.lines)
        self._log.finish()
        self._log.other_names = told.other_names
        self.sequences = MOST_SEQUENCES
        self.growing = False
        self.trials = 0
        self.opened: Callable[[Connection, Epoch], None] | None = None
        self._begun: set[bytes | int] = set()
        """Client randoms of handshakes that began here, and connections without one."""
        self._notes: set[Note] = set()

    @property
    def log(self) -> KeyLog | None:
        """The lines that are needed, once there is a key log."""
        return self._log if self._now() >= self._told.since else None

    def log_for(self, epoch: Epoch) -> KeyLog | None:
        """Note which secrets an epoch needs that began in another batch."""
        if epoch.client_random not in self._begun:
            own = Origin(epoch.suite, epoch.client_random, epoch.server_random)
            for origin in epoch.origins or (own,):
                self._note(EPOCH, tuple(origin))
        return self.log

    def claim(self, client_random: bytes) -> None:
        """Note that a handshake was seen."""
        self._begun.add(client_random)
        self._note(HELLO, client_random)

    def origins(self, client_random: bytes, name: bytes) -> tuple[Origin, ...]:
        """Return what the others say of a name."""
        if name:
            self._note(OFFER, client_random, name)
        return self._told.origins.get((client_random, name), ())

    def resume(
        self, own: Origin, offered: tuple[bytes, ...], given: tuple[bytes, ...]
    ) -> tuple[Origin, ...]:
        """Return what the others say of the names."""
        self._note(RESUME, tuple(own), offered, given)
        told = self._told.origins
        found = [each for name in offered for each in told.get((own.client_random, name), ())]
        return own, *(each for each in found if each != own)

    def midstream(
        self,
        record: TlsRecord,
        tried: set[tuple[bytes, bool]],
        place: tuple[int, int],
        *,
        client: bool | None,
        epoch: Epoch | None,
    ) -> FoundKeys:
        """Return what was found for the record."""
        number = place[0]
        if number in self._begun:
            # What was found in the other direction, if anything, follows from the notes.
            client = epoch = None
        self._begun.add(number)
        self._note(RECORD, place, record.kind, record.body, client, epoch)
        return self._told.found.get(_digest(record.body), FoundKeys())

    def _note(self, *note: Any) -> None:
        self._notes.add((self._now(), *note))

    def notes(self) -> Iterator[str]:
        """Yield the notes as JSON: names, no secrets."""
        for note in self._notes:
            yield state.write(note).decode()


class Agreement:
    """Takes the notes of all tasks, and makes of them what tasks are told."""

    def __init__(self, log: KeyLog | None, blocks: list[tuple[int, bytes]], before: bytes) -> None:
        """`blocks`: key logs inside the files, each with the packet from which on it is known.
        `before`: what the last batch left."""
        self._log = log
        self._blocks = blocks
        self._before = before
        self._notes: set[Note] = set()
        self._whole = False
        """Tasks get all secrets: connections that negotiate anew, inside the encryption, would
        name one after the other."""
        self.told = Agreed(0 if log is not None else blocks[0][0])
        self._keys = KeySources()

    def begin(self, notes: Iterable[str]) -> None:
        """Take the notes that were made of the beginnings of connections."""
        self._notes = set(map(_note_of, notes))
        self.told = self._agreed()

    def learn(self, notes: Iterable[str]) -> bool:
        """Take the notes of a round; return whether another one would be told anything else."""
        found = set(map(_note_of, notes))
        if found <= self._notes:
            return False
        self._notes |= found
        before, self.told = self.told, self._agreed()
        if self.told == before:
            return False
        if not self._whole:
            self._whole = True
            self.told = self._agreed()
        return True

    def left(self) -> bytes:
        """Return what the next batch needs, without secrets."""
        keys = self._keys
        spent = keys.trials, keys.rare, keys.before
        return state.write([keys.sessions.dump(), keys.claimed, *spent])

    def _agreed(self) -> Agreed:
        blocks: list[DecryptionSecrets] = []
        keys = self._keys = KeySources(self._log and self._log.copy(), blocks)
        if self._before:
            sessions, keys.claimed, *spent = state.read(self._before)
            keys.trials, keys.rare, keys.before = spent
            keys.sessions.load(sessions)
        answers = _Answers(keys)
        later = deque(self._blocks)
        for note in sorted(self._notes, key=lambda note: (*note[:2], repr(note[2:]))):
            while later and later[0][0] <= note[0]:
                blocks.append(_block(later.popleft()[1]))
            answers.take(*note[1:])
        blocks += [_block(data) for _, data in later]
        log = keys.log
        assert log is not None
        lines = log.all_lines() if self._whole else answers.lines()
        return Agreed(self.told.since, lines, log.other_names, answers.origins, answers.found)


class _Answers:
    """Goes through the notes in order, as one process that reads all connections."""

    def __init__(self, keys: KeySources) -> None:
        self._keys = keys
        self.origins: dict[tuple[bytes, bytes], tuple[Origin, ...]] = {}
        self.found: dict[bytes, FoundKeys] = {}
        self._lines: dict[bytes, None] = {}
        self._others: dict[int, tuple[Epoch, int]] = {}
        """By connection without a handshake: what it uses, and the direction of its client."""

    def take(self, kind: int, *said: Any) -> None:
        """Take the next note."""
        (self._hello, self._offer, self._resume, self._record, self._epoch)[kind](*said)

    def lines(self) -> bytes:
        """Return the lines of the key log that tasks need."""
        return b"".join(self._lines)

    def _needs(self, *origins: Origin) -> None:
        """Add what the key log has by now of these handshakes."""
        log = self._keys.log
        if log is None:
            return
        for each in origins:
            named = log.lines_for([each.client_random], [each.session_id], [each.premaster])
            self._lines[named] = None

    def _hello(self, client_random: bytes) -> None:
        self._keys.claim(client_random)
        self._needs(Origin(0, client_random, b""))

    def _offer(self, client_random: bytes, name: bytes) -> None:
        found = self._keys.origins(client_random, name)
        if found:
            self.origins[client_random, name] = found
            self._needs(*found)

    def _resume(
        self, own: tuple[Any, ...], offered: tuple[bytes, ...], given: tuple[bytes, ...]
    ) -> None:
        origin = Origin(*own)
        for name in offered:
            self._offer(origin.client_random, name)
        self._needs(*self._keys.resume(origin, offered, given))

    def _record(
        self,
        place: tuple[int, int],
        kind: int,
        body: bytes,
        client: bool | None,
        epoch: Epoch | None,
    ) -> None:
        number, direction = place
        if epoch is None and number in self._others:
            epoch, asking = self._others[number]
            client = direction == asking
        record = TlsRecord(kind, TLS_1_2, len(body), body, [], 0)
        found = self._keys.midstream(record, set(), place, client=client, epoch=epoch)
        self.found[_digest(body)] = found
        if found.epoch is not None:
            asking = direction if found.client else 1 - direction
            self._others[number] = found.epoch, asking
            self._needs(Origin(0, found.epoch.client_random, b""))

    def _epoch(self, origin: tuple[Any, ...]) -> None:
        self._needs(Origin(*origin))


def _note_of(text: str) -> Note:
    note: Note = state.read(text.encode())
    return note


def _block(data: bytes) -> DecryptionSecrets:
    return DecryptionSecrets(0, TLS_KEY_LOG, data)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def blocks_of(job: Job) -> list[DecryptionSecrets]:
    """Return the key logs inside the files of a job."""
    return [_block(data) for file in job.files for _, data in file.index.secrets]


def agreement_of(job: Job) -> Agreement | None:
    """Return what decides for a job; None where there is no key log."""
    # What is read in an order of its own knows all from the start, as `open_inputs` does.
    blocks = [
        (0 if job.order else file.first_frame + packet - 1, data)
        for file in job.files
        for packet, data in file.index.secrets
    ]
    if not installed("tls") or (job.keys is None and not blocks):
        return None
    return Agreement(job.keys, blocks, job.before.tls)
