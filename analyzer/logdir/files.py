"""Kafka's small files: indexes, producer snapshots, checkpoints and properties -> entries.

.index        relative offset 4 | position 4               zeros at the end are space set aside
.timeindex    time 8 | relative offset 4                   as above
.txnindex     version 2 | AbortedTxn
.snapshot     version 2 | ProducerSnapshot: crc 4 of all behind it, entries
checkpoints   lines: version, count, then "epoch offset" or "topic partition offset"
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.logdir.model import Kind, RecoveryVerdict
from kafkascope.analyzer.times import iso_ms
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import decode_body

SMALL_LIMIT: Final = 64 << 20
"""Larger files of these kinds no broker writes: its index files have 10 MB by default."""


class SmallFile(NamedTuple):
    """A small file, read whole."""

    entries: list[dict[str, Any]]
    verdict: RecoveryVerdict


def read_small(path: Path, kind: Kind, base_offset: int | None) -> SmallFile:
    """The entries of a small file, and what is wrong with it."""
    with path.open("rb") as file:
        data = file.read(SMALL_LIMIT + 1)
    if len(data) > SMALL_LIMIT:
        verdict = RecoveryVerdict(
            path.name, kind, path.stat().st_size, 0, problem="too large for a file of its kind"
        )
        return SmallFile([], verdict)
    found = _READERS[kind](data, base_offset or 0)
    verdict = RecoveryVerdict(
        file=path.name,
        kind=kind,
        total_bytes=len(data),
        valid_bytes=len(data) if not found.problem else found.valid_bytes,
        batches=len(found.entries),
        problem=found.problem,
        padding=found.padding,
        notes=tuple(found.notes),
    )
    return SmallFile(found.entries, verdict)


class _Found:
    """What a reader made out."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.problem = ""
        self.valid_bytes = 0
        self.padding = 0

    def fail(self, problem: str, at: int) -> None:
        """The first problem counts."""
        if not self.problem:
            self.problem, self.valid_bytes = problem, at


def _fixed(data: bytes, form: struct.Struct, found: _Found) -> Iterator[tuple[int, Any]]:
    """Entries of one size; zeros to the end are space set aside, a rest is a cut entry."""
    whole = len(data.rstrip(b"\0"))
    for at in range(0, len(data) - form.size + 1, form.size):
        if at >= whole and at > 0:
            found.padding = len(data) - at
            return
        yield at, form.unpack_from(data, at)
    rest = len(data) % form.size
    if rest:
        found.fail(f"{rest} bytes after the last {form.size}-byte entry", len(data) - rest)


_INDEX: Final = struct.Struct(">ii")
_TIME_INDEX: Final = struct.Struct(">qi")
_ABORTED: Final = struct.Struct(">h32s")


def _index(data: bytes, base: int) -> _Found:
    found = _Found()
    last = (-1, -1)
    for at, entry in _fixed(data, _INDEX, found):
        if entry[0] <= last[0] or entry[1] <= last[1] or entry[0] < 0:
            found.fail(f"the entry at byte {at} is not greater than the previous entry", at)
        last = entry
        found.entries.append({"schema": "index/1", "offset": base + entry[0], "position": entry[1]})
    if found.entries == [{"schema": "index/1", "offset": base, "position": 0}] and not any(data):
        # A fresh segment: all of it is space set aside.
        found.entries, found.padding = [], len(data)
    return found


def _time_index(data: bytes, base: int) -> _Found:
    found = _Found()
    last = (-(2**63), -1)
    for at, entry in _fixed(data, _TIME_INDEX, found):
        if entry[0] < last[0] or entry[1] < last[1]:
            found.fail(f"the entry at byte {at} is not greater than the previous entry", at)
        last = entry
        found.entries.append(
            {
                "schema": "timeindex/1",
                "time": iso_ms(entry[0]),
                "time_ms": entry[0],
                "offset": base + entry[1],
            }
        )
    if len(found.entries) == 1 and not any(data):
        found.entries, found.padding = [], len(data)
    return found


def _txn_index(data: bytes, base: int) -> _Found:
    found = _Found()
    last = -1
    for at, (version, body) in _fixed(data, _ABORTED, found):
        if version != 0:
            found.fail(f"version {version} of the entry at byte {at} is unknown", at)
            break
        entry, _ = decode_body("AbortedTxn", 0, body)
        if entry["last_offset"] <= last or entry["first_offset"] > entry["last_offset"]:
            found.fail(f"the entry at byte {at} is not greater than the previous entry", at)
        last = entry["last_offset"]
        found.entries.append({"schema": "txnindex/1", **entry})
    return found


def _producers(data: bytes, base: int) -> _Found:
    found = _Found()
    if len(data) < 6:
        found.fail("fewer bytes than version and checksum", 0)
        return found
    (version,) = struct.unpack_from(">h", data)
    if version != 1:
        found.fail(f"version {version} is unknown", 0)
        return found
    try:
        body, end = decode_body("ProducerSnapshot", 1, data, 2)
    except DissectError as error:
        found.fail(str(error), 0)
        return found
    import google_crc32c

    if int(google_crc32c.value(data[6:])) != body["crc"]:
        found.fail("checksum mismatch", 0)
    if end != len(data):
        found.notes.append(f"{len(data) - end} bytes follow the last entry")
    for entry in body["producer_entries"]:
        time = iso_ms(entry["timestamp"])
        found.entries.append({"schema": "producer/1", **entry, "time": time})
    return found


def _lines(data: bytes, found: _Found) -> list[str]:
    """The lines of a checkpoint behind its version and count; an empty file has none."""
    if not data:
        return []
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        found.fail("no text", 0)
        return []
    if len(lines) < 2 or lines[0].strip() != "0" or not lines[1].strip().isdecimal():
        found.fail("it does not start with version 0 and a count", 0)
        return []
    if int(lines[1]) != len(lines) - 2:
        found.fail(f"the header says {lines[1]} entries, the file has {len(lines) - 2}", 0)
    return lines[2:]


def _epochs(data: bytes, base: int) -> _Found:
    found = _Found()
    last = (-1, -1)
    for line in _lines(data, found):
        words = line.split()
        if len(words) != 2 or not all(word.isdecimal() for word in words):
            found.fail(f"not an entry: {line[:60]!r}", 0)
            break
        entry = (int(words[0]), int(words[1]))
        if entry[0] <= last[0] or entry[1] < last[1]:
            found.notes.append(f"epoch {entry[0]} from offset {entry[1]} follows {last}")
        last = entry
        found.entries.append(
            {"schema": "leader-epoch/1", "epoch": entry[0], "start_offset": entry[1]}
        )
    return found


def _offsets(data: bytes, base: int) -> _Found:
    found = _Found()
    for line in _lines(data, found):
        words = line.split()
        if len(words) != 3 or not words[1].isdecimal() or not words[2].lstrip("-").isdecimal():
            found.fail(f"not an entry: {line[:60]!r}", 0)
            break
        found.entries.append(
            {
                "schema": "offset/1",
                "topic": words[0],
                "partition": int(words[1]),
                "offset": int(words[2]),
            }
        )
    return found


def _properties(data: bytes, base: int) -> _Found:
    found = _Found()
    for line in data.decode("utf-8", "replace").splitlines():
        name, mark, value = line.partition("=" if "=" in line else ":")
        if line.startswith("#") or not mark:
            continue
        found.entries.append({"schema": "property/1", "name": name.strip(), "value": value.strip()})
    if not found.entries:
        found.fail("it has no properties", 0)
    return found


def _quorum_state(data: bytes, base: int) -> _Found:
    found = _Found()
    try:
        state = json.loads(data)
    except (ValueError, RecursionError):
        found.fail("no JSON", 0)
        return found
    if not isinstance(state, dict):
        found.fail("not a JSON object", 0)
        return found
    found.entries.append({"schema": "quorum-state/1", **state})
    return found


_READERS: Final[dict[Kind, Callable[[bytes, int], _Found]]] = {
    "index": _index,
    "timeindex": _time_index,
    "txnindex": _txn_index,
    "producer-snapshot": _producers,
    "leader-epochs": _epochs,
    "offsets": _offsets,
    "properties": _properties,
    "quorum-state": _quorum_state,
}
