"""Decoding of Protobuf and JSON by schema against their libraries, on what real serializers wrote.

    python benchmarks/payloads_protobuf.py [--rounds 7] [--floor]

Asserts first that values are those that were written. Prints the least time for each value and how
fast we are in relation: Protobuf to `ParseFromString` with `MessageToDict`, and to
`ParseFromString` alone; JSON to `json.loads` with jsonschema's validator. --floor: exit 1 below
0.7 of the speed of the library.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from jsonschema import Draft7Validator

from kafkascope.analyzer.payloads import json_schema, protobuf

SAMPLES = Path(__file__).parent.parent / "tests" / "analyzer" / "payloads" / "samples"
LEAST = 0.7


def least(call: Callable[[bytes], Any], data: list[bytes], rounds: int) -> float:
    """Microseconds for each value, of the fastest round."""
    number = max(1, 3000 // len(data))

    def run() -> None:
        for each in data:
            call(each)

    # Time of this process: others may be busy.
    times = timeit.repeat(run, number=number, repeat=rounds, timer=time.process_time)
    return min(times) / number / len(data) * 1e6


def compiled(make: Any, schema: dict[str, Any]) -> Any:
    return make(schema["text"], schema["dependencies"], lambda _: None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--floor", action="store_true")
    options = parser.parse_args()
    records = json.loads((SAMPLES / "records.json").read_text())
    slowest = 9.0
    print(f"{'type':<28}{'ours us':>9}{'library us':>12}{'speed':>7}{'parse us':>10}{'speed':>7}")
    for message in dict.fromkeys(each["message"] for each in records["protobuf"]):
        rows = [each for each in records["protobuf"] if each["message"] == message]
        data = [bytes.fromhex(each["hex"]) for each in rows]
        codec = compiled(protobuf.compile, records["schemas"][rows[0]["schema"]]).codec(message)
        parse = codec._parse

        def library(each: bytes, parse: Any = parse) -> Any:
            return MessageToDict(parse(each), preserving_proto_field_name=True)

        assert [library(each) for each in data] == [each["value"] for each in rows]
        ours = least(codec.decode, data, options.rounds)
        theirs = least(library, data, options.rounds)
        alone = least(parse, data, options.rounds)
        print(
            f"{message:<28}{ours:>9.2f}{theirs:>12.2f}{theirs / ours:>7.2f}"
            f"{alone:>10.2f}{alone / ours:>7.2f}"
        )
        slowest = min(slowest, theirs / ours)
    rows = records["json"]
    data = [bytes.fromhex(each["hex"]) for each in rows]
    schema = {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    whole = json_schema.compile(json.dumps(schema), {}, lambda _: None).codec()
    validator: Any = Draft7Validator(schema)
    assert [whole.decode(each) for each in data] == [each["value"] for each in rows]
    ours = least(whole.decode, data, options.rounds)
    theirs = least(lambda each: validator.is_valid(json.loads(each)), data, options.rounds)
    print(f"{'JSON':<28}{ours:>9.2f}{theirs:>12.2f}{theirs / ours:>7.2f}")
    return 1 if options.floor and slowest < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
