"""Nothing of keys and values that are decoded by schema leaves where names are hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.run import run
from tests.kit.schemas import SAMPLES, capture

NAMES = [
    "avro-registry",
    "protobuf-json-schemas-topic",
    "apicurio-serdes",
    "avro-protobuf-apicurio-ccompat",
]
LEAST = 5
"""Characters of a word that does not stand anywhere by chance."""


def ran(*words: str) -> str:
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def words_of(path: Path, schemas: str) -> set[str]:
    """The texts of all decoded keys and values, with their encodings."""
    found: set[str] = set()
    for line in ran("records", str(path), "--schemas", schemas, "--json", "-q").splitlines():
        record = json.loads(line)
        for side in ("key", "value"):
            if f"{side}_decoded" in record:
                found.update(texts(record[f"{side}_decoded"]))
                raw = record[side]
                found.add(raw if isinstance(raw, str) else raw["base64"])
    return {word for word in found if sum(map(str.isalnum, word)) >= LEAST}


def absent(words: set[str], *parts: bytes) -> None:
    for part in parts:
        assert not [word for word in words if word.encode() in part]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_decoded_values_leaves(name: str, tmp_path: Path) -> None:
    path, schemas = capture(name), str(SAMPLES / "schemas" / name)
    words = words_of(path, schemas)
    plain = path.read_bytes()
    assert sum(word.encode() in plain for word in words) > 5
    # Anybody may decode what is kept: with schemas that are given, and those of the capture.
    given = ["--schemas", schemas]

    cut = tmp_path / "cut.pcapng"
    ran("cut", str(path), "-o", str(cut), "--anonymize", "-q")
    said = ran("records", str(cut), *given, "--json", "-q")
    assert said
    every = ran("ls", str(cut), "--columns", "no", "-q").split()
    shown = ran("show", str(cut), *given, "--hex", "-q", *(n for n in every if n.isdecimal()))
    absent(words, cut.read_bytes(), said.encode(), shown.encode())
    assert '_decoded"' not in said

    fixtures = tmp_path / "fixtures"
    ran("fixture", str(path), "-o", str(fixtures), "--redact", "all", "-q")
    files = [each.read_bytes() for each in fixtures.rglob("*") if each.is_file()]
    assert files
    absent(words, *files)

    for kind in ("html", "md"):
        out = tmp_path / f"report.{kind}"
        ran("report", str(path), *given, "-o", str(out), "--redact", "all", "-q")
        absent(words, out.read_bytes())
