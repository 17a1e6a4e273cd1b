"""Values that other serializers wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.payloads.avro.codec import AvroCodec
from kafkascope.analyzer.payloads.avro.codec import compile as compile_avro

SAMPLES: dict[str, Any] = json.loads((Path(__file__).parent / "confluent.json").read_text("utf-8"))
TEXTS = {number: json.dumps(schema) for number, schema in SAMPLES["schemas"].items()}
# Person refers to Address, which is schema 5.
SCHEMAS: dict[str, AvroCodec] = {
    number: compile_avro(text, {"people.Address": TEXTS["5"]}, lambda _: None)
    for number, text in TEXTS.items()
}


@pytest.mark.parametrize("sample", SAMPLES["values"], ids=lambda sample: sample["schema"])
def test_values_of_confluents_serializer(sample: dict[str, Any]) -> None:
    codec = SCHEMAS[sample["schema"]].codec()
    data = bytes.fromhex(sample["hex"])
    assert codec.decode(data) == sample["value"]
    assert codec.encode(sample["value"]) == data
    assert codec.explain(data).end == len(data)


def test_each_schema_is_used() -> None:
    used = {sample["schema"] for sample in SAMPLES["values"]}
    assert used == set(TEXTS) - {"5"}
