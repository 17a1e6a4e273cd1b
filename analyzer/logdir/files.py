"""Kafka's small files: indexes, producer snapshots, checkpoints and properties -> entries.

.index        relative offset 4 | position 4               zeros at the end are space set aside
.timeindex    time 8 | relative offset 4                   as above
.txnindex     version 2 | AbortedTxn
.snapshot     version 2 | ProducerSnapshot: crc 4 of all after it, entries
checkpoints   lines: version, count, then "epoch offset" or "topic partition offset"
"""

from __future__ import annotations

import json
import operator
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.logdir.model import Kind, RecoveryVerdict
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import decode_body
from kafkascope.times import iso_ms

# Larger files of these kinds no broker writes: its index files have 10 MB by default.
SMALL_LIMIT: Final = 64 << 20


@dataclass(slots=True)
class SmallFile:
    """A small file, read whole."""

    verdict: RecoveryVerdict
    entries: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fail(self, problem: str, at: int = 0) -> None:
        """Say what is wrong with the bytes from a position on; the first problem counts."""
        if not self.verdict.problem:
            self.verdict.problem, self.verdict.valid_bytes = problem, at


def read_small(path: Path, kind: Kind, base_offset: int | None) -> SmallFile:
    """The entries of a small file, and what is wrong with it."""
    with path.open("rb") as file:
        data = file.read(SMALL_LIMIT + 1)
    found = SmallFile(RecoveryVerdict(path.name, kind, len(data), len(data)))
    if len(data) > SMALL_LIMIT:
        found.verdict.total_bytes = path.stat().st_size
        found.fail("too large for a file of its kind")
    else:
        _READERS[kind](data, base_offset or 0, found)
    found.verdict.batches, found.verdict.notes = len(found.entries), tuple(found.notes)
    return found


def _fixed(data: bytes, form: struct.Struct, found: SmallFile) -> Iterator[tuple[int, Any]]:
    """Entries of one size; zeros to the end are space set aside, a rest is a cut entry."""
    whole = len(data.rstrip(b"\0"))
    for at in range(0, len(data) - form.size + 1, form.size):
        if at >= whole and at > 0:
            found.verdict.padding = len(data) - at
            return
        yield at, form.unpack_from(data, at)
    rest = len(data) % form.size
    if rest:
        found.fail(f"{rest} bytes after the last {form.size}-byte entry", len(data) - rest)


Reader: TypeAlias = Callable[[bytes, int, SmallFile], None]
"""Takes the bytes of a file and the offset in its name, and fills in what it makes out."""
_ABORTED: Final = struct.Struct(">h32s")


def _indexed(
    form: struct.Struct,
    goes_back: Callable[[int, int], bool],
    entry_of: Callable[[int, int, int], dict[str, Any]],
) -> Reader:
    """Return the reader of an index whose entries are pairs of numbers that grow."""

    def read(data: bytes, base: int, found: SmallFile) -> None:
        last = (-1 if goes_back is operator.le else -(2**63), -1)
        for at, entry in _fixed(data, form, found):
            if any(map(goes_back, entry, last)):
                found.fail(f"the entry at byte {at} is not greater than the previous entry", at)
            last = entry
            found.entries.append(entry_of(base, *entry))
        if len(found.entries) == 1 and not any(data):
            # A fresh segment: all of it is space set aside.
            found.entries, found.verdict.padding = [], len(data)

    return read


def _time_entry(base: int, time_ms: int, offset: int) -> dict[str, Any]:
    times = {"time": iso_ms(time_ms), "time_ms": time_ms}
    return {"schema": "timeindex/1", **times, "offset": base + offset}


def _txn_index(data: bytes, base: int, found: SmallFile) -> None:
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


def _producers(data: bytes, base: int, found: SmallFile) -> None:
    if len(data) < 6:
        found.fail("fewer bytes than version and checksum")
        return
    (version,) = struct.unpack_from(">h", data)
    if version != 1:
        found.fail(f"version {version} is unknown")
        return
    try:
        body, end = decode_body("ProducerSnapshot", 1, data, 2)
    except DissectError as error:
        found.fail(str(error))
        return
    import google_crc32c

    if int(google_crc32c.value(data[6:])) != body["crc"]:
        found.fail("checksum mismatch")
    if end != len(data):
        found.notes.append(f"{len(data) - end} bytes follow the last entry")
    for entry in body["producer_entries"]:
        time = iso_ms(entry["timestamp"])
        found.entries.append({"schema": "producer/1", **entry, "time": time})


def _lines(data: bytes, found: SmallFile) -> list[str]:
    if not data:
        return []
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        found.fail("no text")
        return []
    if len(lines) < 2 or lines[0].strip() != "0" or not lines[1].strip().isdecimal():
        found.fail("it does not start with version 0 and a count")
        return []
    if int(lines[1]) != len(lines) - 2:
        found.fail(f"the header says {lines[1]} entries, the file has {len(lines) - 2}")
    return lines[2:]


def _epochs(data: bytes, base: int, found: SmallFile) -> None:
    last = (-1, -1)
    for line in _lines(data, found):
        words = line.split()
        if len(words) != 2 or not all(word.isdecimal() for word in words):
            found.fail(f"not an entry: {line[:60]!r}")
            break
        entry = (int(words[0]), int(words[1]))
        if entry[0] <= last[0] or entry[1] < last[1]:
            found.notes.append(f"epoch {entry[0]} from offset {entry[1]} follows {last}")
        last = entry
        found.entries.append(
            {"schema": "leader-epoch/1", "epoch": entry[0], "start_offset": entry[1]}
        )


def _offsets(data: bytes, base: int, found: SmallFile) -> None:
    for line in _lines(data, found):
        words = line.split()
        if len(words) != 3 or not words[1].isdecimal() or not words[2].lstrip("-").isdecimal():
            found.fail(f"not an entry: {line[:60]!r}")
            break
        found.entries.append(
            {
                "schema": "offset/1",
                "topic": words[0],
                "partition": int(words[1]),
                "offset": int(words[2]),
            }
        )


def _properties(data: bytes, base: int, found: SmallFile) -> None:
    for line in data.decode("utf-8", "replace").splitlines():
        name, mark, value = line.partition("=" if "=" in line else ":")
        if line.startswith("#") or not mark:
            continue
        found.entries.append({"schema": "property/1", "name": name.strip(), "value": value.strip()})
    if not found.entries:
        found.fail("it has no properties")


def _quorum_state(data: bytes, base: int, found: SmallFile) -> None:
    try:
        state = json.loads(data)
    except (ValueError, RecursionError):
        found.fail("no JSON")
        return
    if not isinstance(state, dict):
        found.fail("not a JSON object")
        return
    found.entries.append({"schema": "quorum-state/1", **state})


_READERS: Final[dict[Kind, Reader]] = {
    "index": _indexed(
        struct.Struct(">ii"),
        operator.le,
        lambda base, offset, position: {
            "schema": "index/1",
            "offset": base + offset,
            "position": position,
        },
    ),
    "timeindex": _indexed(struct.Struct(">qi"), operator.lt, _time_entry),
    "txnindex": _txn_index,
    "producer-snapshot": _producers,
    "leader-epochs": _epochs,
    "offsets": _offsets,
    "properties": _properties,
    "quorum-state": _quorum_state,
}
