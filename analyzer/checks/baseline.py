"""Baselines: files with the keys of findings that are known, so that only new ones fail a check.

A line of JSON for each key, sorted, so that a change of the file is a line of its difference. What
`check --json` printed is a baseline as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import orjson

from kafkascope.analyzer.text import json_safe, plural

SCHEMA: Final = "baseline/1"
ACCEPTED: Final = (SCHEMA, "finding/1")
# Bytes of a baseline file. The findings of a capture never take as many; a larger file is usually
# no baseline.
MOST_BYTES: Final = 64 << 20


class WrongBaseline(ValueError):
    """A file is no baseline; the message says why."""


def read_baseline(path: Path) -> frozenset[str]:
    """Return the keys in a file of JSON lines, or of an array of objects. `WrongBaseline`,
    `OSError`."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise WrongBaseline(f"is larger than {MOST_BYTES >> 20} MB")
    if data.lstrip()[:1] == b"[":
        found = _loaded(data, "the array")
        assert isinstance(found, list)
        entries = [(f"element {n}", each) for n, each in enumerate(found, 1)]
    else:
        lines = enumerate(data.split(b"\n"), 1)
        entries = [(f"line {n}", _loaded(line, f"line {n}")) for n, line in lines if line.strip()]
    return frozenset(_key(place, entry) for place, entry in entries)


def _loaded(data: bytes, place: str) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise WrongBaseline(f"{place} is no JSON: {error}") from None


def _key(place: str, entry: object) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
        raise WrongBaseline(f"{place} has no key of a finding")
    schema = entry.get("schema", SCHEMA)
    if schema not in ACCEPTED:
        raise WrongBaseline(f"{place} is no finding, but {str(schema)[:40]}")
    key: str = entry["key"]
    return key


def baseline_lines(keys: Iterable[str]) -> bytes:
    """Return a baseline of such keys."""
    lines = (orjson.dumps({"schema": SCHEMA, "key": key}) + b"\n" for key in sorted(set(keys)))
    return json_safe(b"".join(lines))


def gone(known: Iterable[str], found: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Return the known keys of the `wanted` rules that were not found."""
    rules = frozenset(wanted)
    missing = frozenset(known).difference(found)
    return sorted(key for key in missing if key.partition(" ")[0] in rules)


def gone_line(known: Iterable[str], found: Iterable[str], wanted: Iterable[str], named: int) -> str:
    """Return a sentence about these keys, with the first ones `named`; empty where there are
    none."""
    keys = gone(known, found, wanted)
    if not keys:
        return ""
    names = "; ".join(keys[:named])
    rest = f" and {len(keys) - named} more" if len(keys) > named else ""
    count = plural(len(keys), "known finding")
    return f"{count} no longer occur{'s' * (len(keys) == 1)}: {names}{rest}"
