"""Wrong command lines end with one message that says what to type, and an exit code."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kafkascope.analyzer.bodies import json_lines
from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.analyzer.commands import codec
from tests.kit.run import run
from tests.kit.samples import SAMPLES

REBALANCE = str(SAMPLES / "rebalance.pcap")
WRONG = (
    ("ls missing.pcap", 3, "missing.pcap: no such file"),
    ("ls empty.pcap", 3, "empty.pcap is empty"),
    ("ls text.txt", 3, "text.txt is not a capture"),
    ("ls folder", 3, "folder is a folder without captures"),
    ("ls cut.pcap", 4, "cut.pcap is cut short"),
    ("ls -", 3, "standard input is empty"),
    ("ls", 2, "INPUT"),
    ("ls R --from noon", 2, "write 12:03"),
    ("ls R -d tcp.port==x,kafka", 2, "write tcp.port==9094,kafka"),
    ("ls R --connects -c 3", 2, "leave out --from"),
    ("ls R -T fields", 2, "at least one -e FIELD"),
    ("ls R -Y topik==3", 2, "did you mean topic?"),
    ("ls R -o folder/none/x", 3, "folder/none/x"),
    ("ls R --keylog missing", 3, "missing: no such file"),
    ("ls -r R", 2, "'-r'; name files without an option: kafkascope ls FILE"),
    ("check -i lo", 2, "kafkascope capture -i IFACE -w FILE"),
    ("ls R --from 2001-01-01 --to 2001-01-02", 0, "the capture lasts from 2026-11-"),
    ("records R --schemas missing", 2, "Directory 'missing' does not exist"),
    ("groups R nope", 2, 'kafkascope: there is no group "nope"'),
    ("help ls", 2, "see kafkascope --help, or kafkascope COMMAND --help"),
    ("show R", 2, "add a number"),
    ("show R abc", 2, '"abc" is no file and no exchange number'),
    ("show R 5-2", 2, "write 12 or 15-17"),
    ("check R --rule nope", 2, "kafkascope check --rules"),
    ("check R --baseline missing", 2, "--write-baseline missing"),
    ("check R --baseline text.txt", 2, "text.txt: line 1"),
    ("report R", 2, "write -o FILE.html"),
    ("clients R --columns nope", 2, 'no column "nope"; there are client_id'),
    ("clients R --sort verdikt --for 4.0", 2, "did you mean verdict?"),
    ("cluster R --only nope", 2, "coordinators"),
    ("latency R --by nope", 2, "choose from api"),
    ("stats nope R", 2, "choose from apis, connections"),
    ("integrations wireshark nope", 2, "choose from install, uninstall"),
    ("integrations nope", 2, 'there is no command "nope"'),
    ("nope", 2, 'there is no command and no file "nope"'),
    ("cut R", 2, "write -o FILE.pcapng"),
    ("cut R -o x --decrypt --secrets", 2, "choose one"),
    ("export R -o x --format xml", 2, "'jsonl', 'csv', 'parquet'"),
    ("export R -o x.xls", 2, "choose from jsonl, csv, parquet"),
    ("diff R", 2, "write A.pcap B.pcap"),
    ("diff R R --api Fetsch", 2, "did you mean Fetch?"),
    ("serve Z", 3, "see what the capture has with `kafkascope ls`"),
    ("serve R --listen x", 2, "write HOST:PORT"),
    ("replay R --to 127.0.0.1:1", 3, "no broker answers at 127.0.0.1:1 (connection refused)"),
    ("fixture R", 2, "fixture --help' for help"),
    ("fixture check missing", 3, "missing"),
    ("fixture check text.txt", 3, "line 1 is not a fixture"),
    ("fixture new Fetsch 1 -o x", 2, "did you mean Fetch?"),
    ("grammar Fetch 99", 2, "versions 0-18"),
    ("decode Fetch", 2, "write, for example"),
    ("encode FetchRequest 12 {", 2, "JSON cannot be read"),
    ("error 9999", 2, "list: kafkascope error"),
    ("tls-keys nope", 2, "librdkafka"),
    ("completion csh", 2, "bash"),
    ("capture", 2, "-i"),
    ("proxy", 2, "write --upstream HOST:PORT"),
    ("proxy --upstream 127.0.0.1:99999", 2, "65535"),
)


@pytest.mark.parametrize(("line", "code", "text"), WRONG, ids=[line for line, *_ in WRONG])
def test_wrong_usage_says_what_to_type(
    line: str, code: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.pcap").touch()
    Path("text.txt").write_text("hello\n")
    Path("folder").mkdir()
    Path("cut.pcap").write_bytes(Path(REBALANCE).read_bytes()[:3000])
    files = {"R": REBALANCE, "Z": str(SAMPLES / "zookeeper.pcap")}
    done = run(*[files.get(word, word) for word in line.split(" ")])
    assert done.exit_code == code, done.output
    assert text in " ".join(done.stderr.split())
    assert not re.search(r"Traceback|\b[A-Z]\w+(Error|Exception)\b|errno|at byte 0", done.stderr)


# --- bounds of what decode and encode read --------------------------------------------------------


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
