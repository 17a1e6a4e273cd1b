"""Findings tell why a key or value does not fit, and nothing that it holds."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.payloads import HIDDEN, complaint
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.schemas.avro import codec as avro
from kafkascope.schemas.json import codec as json_schema
from kafkascope.schemas.model import PayloadError, Schema
from kafkascope.schemas.protobuf import codec as protobuf
from tests.analyzer.findings.judging import capture_of, judged
from tests.explosion.schemas import journal, schema, value
from tests.explosion.turns import produce, write_capture
from tests.kit.counting import counted
from tests.kit.run import run

WORD = "qz4111"
CARD = {
    "type": "object",
    "properties": {
        "card": {"type": "string", "pattern": "^[0-9]{16}$"},
        "kind": {"enum": ["a", "b"]},
        "limit": {"type": "integer", "maximum": 5},
        "old": {"const": "x"},
        "list": {"type": "array", "uniqueItems": True, "maxItems": 2},
        "long": {"type": "string", "maxLength": 2},
    },
    "additionalProperties": {"type": "integer"},
    "required": ["card"],
}
VALUES: list[dict[str, Any]] = [
    {"card": WORD},
    {"card": 41_114_111},
    {"kind": WORD, "card": "1" * 16},
    {"limit": 41_114_111, "card": "1" * 16},
    {"old": WORD, "card": "1" * 16},
    {"list": [WORD, WORD], "card": "1" * 16},
    {"long": WORD, "card": "1" * 16},
    {WORD: "x", "card": "1" * 16},
    {"kind": "a"},
]


def error_of(module: Any, text: str, data: bytes) -> PayloadError:
    with pytest.raises(PayloadError) as raised:
        module.compile(text, {}, lambda name: None).codec().decode(data)
    return raised.value


@pytest.mark.parametrize("held", VALUES, ids=str)
def test_no_keyword_repeats_the_value(held: dict[str, Any]) -> None:
    text = json.dumps(CARD)
    error = error_of(json_schema, text, json.dumps(held).encode())
    told = complaint(error, Schema("json", text))
    assert all(told) or not error.path
    assert told[1]
    for each in (WORD, "4111"):
        assert each not in "".join(told), told


def test_what_a_schema_says_stays() -> None:
    text = json.dumps(CARD)
    found = [
        complaint(error_of(json_schema, text, json.dumps(each).encode()), Schema("json", text))
        for each in ({"card": 7}, {"kind": "a"}, {"kind": 1, "card": "1" * 16})
    ]
    assert found == [
        ("card", "type: not 'string'"),
        ("", "required: 'card' is a required property"),
        ("kind", "violates enum"),
    ]


def test_keys_of_maps_are_no_names() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "m", "type": {"type": "map", "values": "string"}}],
        }
    )
    word = WORD.encode()
    data = b"\x02" + bytes([2 * len(word)]) + word + b"\x08ab"
    error = error_of(avro, text, data)
    assert error.path == f"m.{WORD}"
    path, why = complaint(error, Schema("avro", text))
    assert path == f"m.{HIDDEN}"
    assert why == error.text

    text = 'syntax = "proto3"; message M { map<int64, N> m = 1; } message N { string a = 1; }'
    inner = b"\x08\x97\x9f\xfe\x13" + b"\x12\x02\x0a\x09"
    error = error_of(protobuf, text, b"\x0a" + bytes([len(inner)]) + inner)
    path, _ = complaint(error, Schema("protobuf", text))
    assert path.startswith("m")
    assert not any(char.isdigit() for char in path)


def test_a_large_schema_hides_all_names() -> None:
    error = PayloadError("does-not-fit", "it ends", path="a.b[3]")
    assert complaint(error, Schema("avro", '"a" "b"')) == ("a.b[3]", "it ends")
    assert complaint(error, Schema("avro", '"a" "b"' + " " * 40_000)) == ("*.*[3]", "it ends")


@pytest.mark.parametrize("redact", ["none", "values", "all"])
def test_a_report_tells_no_values_that_do_not_fit(redact: str, tmp_path: Path) -> None:
    # "'4111...' does not match '^[0-9]{16}$'" stood in reports that said they tell no values.
    path, out = tmp_path / "a.pcapng", tmp_path / "out.md"
    said = journal(iter([schema(1, CARD, schemaType="JSON")]))
    records = [
        Record(n, 1, None, value(1, json.dumps(v).encode()), ()) for n, v in enumerate(VALUES)
    ]
    good = Record(99, 1, None, value(1, json.dumps({"card": "1" * 16}).encode()), ())
    write_capture(path, iter([said + produce(2, encode_batch([*records, *[good] * 20]))]))
    result = run("report", path, "-o", out, "--redact", redact)
    assert result.exit_code == 0, result.output
    text = out.read_text()
    assert ("schema-misfit" in text or "not match" in text) == (redact != "all")
    assert WORD not in text
    assert "41114111" not in text


PRODUCE = 0
AUTHENTICATE = 36

Pairs = list[tuple[Row, Exchange]]


def rules(pairs: Pairs) -> set[str]:
    return {each.name for each in counted(Findings(["batch-twice"]), pairs).reported()}


def without(pairs: Pairs, *numbers: int) -> Pairs:
    return [(row, exchange) for row, exchange in pairs if row.number not in numbers]


@pytest.mark.parametrize(
    "name",
    [
        "client-too-old-producer-kafkapython",  # it takes no Produce v2, and closed
        "sasl-expired-aiokafka",  # it closed the connection when the SASL session had expired
        "moved-producer",  # NOT_LEADER_OR_FOLLOWER, then nothing until the capture ends
    ],
)
def test_what_a_broker_refused_is_not_there_twice(name: str) -> None:
    findings, pairs = judged(capture_of(name))
    batches = [
        (*outcome[:2], blob)
        for row, exchange in pairs
        if row.api_key == PRODUCE
        for outcome, parts in ExchangeBatch.of(row, exchange).parts.items()
        for blob in parts.blobs
    ]
    assert len(set(batches)) < len(batches), "nothing was sent again"
    assert "batch-twice" not in {finding.name for finding in findings}


def test_offsets_without_a_hole_prove_that_there_is_one_copy() -> None:
    _, pairs = judged(capture_of("sasl-expired-aiokafka"))
    unknown = [(row, exchange) for row, exchange in pairs if row.api_key != AUTHENTICATE]
    assert not rules(unknown)
    # Of each partition, the answer before the batch that was sent again.
    assert rules(without(unknown, 10, 17)) == {"batch-twice"}
    # With the session's lifetime there is nothing to prove.
    assert not rules(without(pairs, 10, 17))


def test_a_hole_before_the_second_copy_leaves_it_open() -> None:
    """Number 17 was given offset 85, and number 23, a second try, 86: without the answer to the one
    nobody knows what is at 85."""
    _, pairs = judged(capture_of("sasl-expired-aiokafka"))
    produced = [(row, exchange) for row, exchange in pairs if row.api_key == PRODUCE]
    (lost,) = (row for row, _ in produced if row.number == 18)
    assert lost.state == "lost"
    assert not rules(produced)
    assert rules(without(produced, 17)) == {"batch-twice"}
    assert rules(without(produced, 9)) == set()


def test_the_order_and_the_division_of_a_capture_do_not_matter() -> None:
    _, pairs = judged(capture_of("sasl-expired-aiokafka"))
    parts = [pairs[::2], pairs[1::2]]
    whole = Findings(["batch-twice"])
    for part in reversed(parts):
        one = counted(Findings(["batch-twice"]), reversed(part))
        whole.merge(Findings().load(one.dump()))
    assert not whole.reported()
