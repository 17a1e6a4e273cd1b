"""What `decode` and `encode` read has a bound, and a sentence beyond it."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kafkascope.analyzer.bodies import json_lines
from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.analyzer.commands import codec
from tests.kit.run import run


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_more_input_than_a_message_can_have_is_refused(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec.read_input, "__defaults__", (99,))
    path = tmp_path / "frame.hex"
    path.write_bytes(b"00" * 50)
    given = [str(path)] if way == "file" else []
    done = run("decode", "Metadata", "0", "--request", *given, input=path.read_bytes())
    assert done.exit_code == 2
    assert "DATA is larger than the limit of 99 bytes" in done.output


def test_more_json_than_is_read_is_refused() -> None:
    done = run("encode", "Metadata", "12", "--request", input=bytes(LIMITS.json_bytes + 100))
    assert done.exit_code == 2
    assert "JSON is larger than the limit of 32,000,000 bytes" in done.output


def test_json_of_too_many_values_is_refused_before_it_is_read() -> None:
    # A megabyte of text took 80 MB.
    body = b'{"topics":[' + b"{}," * LIMITS.json_values + b"{}]}"
    done = run("encode", "Metadata", "1", "--request", input=body)
    assert done.exit_code == 2
    assert "JSON with more than 1,000,000 commas" in done.output


@pytest.mark.parametrize("answer", [json_lines.encode_line, json_lines.decode_line])
def test_a_line_of_too_many_values_is_refused(
    answer: Callable[[bytes, BodyLimits], bytes],
) -> None:
    line = b'{"message":"MetadataRequest","version":1,"body":[1,2,3,4]}'
    told = json.loads(answer(line, LIMITS._replace(json_values=5)))
    assert told["ok"] is False
    assert "commas and brackets is too much" in told["error"]


def test_a_line_without_end_is_refused_and_the_next_one_answered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few = LIMITS._replace(json_bytes=100)
    monkeypatch.setattr(codec, "READ_BYTES", 10)
    good = b'{"message":"MetadataRequest","version":0,"body":{"topics":[]}}'
    path, out = tmp_path / "in", tmp_path / "out"
    path.write_bytes(b" " * 100_000 + b"x\n" + good)
    held = 0

    with path.open("rb") as source, out.open("wb") as sink:
        for some in codec.available_lines(source.fileno(), few):
            held = max([held, *map(len, some)])
        source.seek(0)
        encode = partial(json_lines.encode_line, limits=few)
        codec.serve(encode, source.fileno(), sink.fileno(), few)
    first, second = map(json.loads, out.read_text().splitlines())
    assert held < 200
    assert "more than 100 bytes of JSON" in first["error"]
    assert second == {"ok": True, "hex": "00000000"}
