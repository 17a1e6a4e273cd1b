"""Nothing of keys and values that are decoded by schema leaves where names are hidden."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analyzer.unique_words import redacted_outputs
from tests.kit.run import objects, output
from tests.kit.schemas import SAMPLES, capture

NAMES = [
    *("avro-registry", "protobuf-json-schemas-topic"),
    *("apicurio-serdes", "avro-protobuf-apicurio-ccompat"),
]
LEAST = 5
"""Characters of a word that does not stand anywhere by chance."""


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
    for record in objects("records", path, "--schemas", schemas, "--json"):
        for side in ("key", "value"):
            if f"{side}_decoded" in record:
                found.update(texts(record[f"{side}_decoded"]))
                raw = record[side]
                found.add(raw if isinstance(raw, str) else raw["base64"])
    return {word for word in found if sum(map(str.isalnum, word)) >= LEAST}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_decoded_values_leaves(name: str, tmp_path: Path) -> None:
    path, schemas = capture(name), str(SAMPLES / "schemas" / name)
    words = words_of(path, schemas)
    plain = path.read_bytes()
    assert sum(word.encode() in plain for word in words) > 5
    outputs = dict(redacted_outputs(path, tmp_path))
    # Anybody may decode what is kept: with schemas that are given, and those of the capture.
    given = ["--schemas", schemas]
    cut, report = tmp_path / "cut.pcapng", tmp_path / "with-schemas.html"
    said = output("records", cut, *given, "--json", "-q")
    assert said
    assert '_decoded"' not in said
    every = output("ls", cut, "--columns", "no", "-q").split()
    shown = output("show", cut, *given, "--hex", "-q", *(n for n in every if n.isdecimal()))
    output("report", path, *given, "-o", report, "--redact", "all", "-q")
    for part in (said.encode(), shown.encode(), report.read_bytes(), *outputs.values()):
        assert not [word for word in words if word.encode() in part]
