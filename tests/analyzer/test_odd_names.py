"""Names that are no names: what terminals obey, and bytes that are no UTF-8."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.analyzer.render.records import octets
from kafkascope.analyzer.render.tree import shown
from kafkascope.tui.cli import main
from tests.kit.batches import batch
from tests.kit.captures import capture_file
from tests.kit.wire import request, response

OBEYED = "\x1b]0;mine\x07\x9b31m\r"
"""A title, a colour, and back to the start of the line."""
BYTES = b"\xff\xfe".decode("utf-8", "surrogateescape")
ODD = OBEYED + BYTES


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One client, one group, one topic, all of them called `ODD`."""
    asked = {"group_id": ODD, "member_id": ODD}
    damaged = batch([(b"k", b"v")])[:-1] + b"w"
    broken = [{"name": ODD, "partition_data": [{"index": 0, "records": damaged}]}]
    topics = [{"name": ODD, "partition_data": [{"index": 0, "records": batch([(b"k", b"v")])}]}]
    frames: list[tuple[str, bytes]] = []
    named = {"client_software_name": "x" + OBEYED, "client_software_version": "\x1b[31m"}
    turns: list[tuple[str, int, dict[str, Any], dict[str, Any]]] = [
        ("ApiVersions", 3, named, {}),
        ("ControlledShutdown", 3, {}, {}),  # it is gone: software is named where that is said
        ("JoinGroup", 5, asked, {"generation_id": 1, "leader": ODD, "member_id": ODD}),
        ("Heartbeat", 3, asked, {"error_code": 25}),
        ("LeaveGroup", 5, {"group_id": ODD}, {"error_code": 25}),
        ("Produce", 7, {"topic_data": topics, "acks": 1}, {}),
        ("Metadata", 5, {"topics": [{"name": ODD}]}, {"cluster_id": ODD}),
        ("Produce", 7, {"topic_data": broken, "acks": 1}, {}),
    ]
    for number, (api, version, asks, answers) in enumerate(turns):
        frames.append(("client", request(api, version, number, ODD, **asks)))
        frames.append(("broker", response(api, version, number, **answers)))
    return str(capture_file(tmp_path_factory.mktemp("odd") / "odd.pcapng", frames))


def run(*args: str) -> str:
    done = CliRunner().invoke(main, args)
    assert done.exit_code in (0, 1), done.output
    return done.stdout


def said(*args: str) -> str:
    """On stderr, too."""
    done = CliRunner().invoke(main, args)
    assert done.exit_code in (0, 1), done.output
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "line",
    [
        *("ls", "show 1-4", "show 1-4 --hex", "records", "check", "groups", "groups --timeline"),
        *("cluster", "stats errors"),
    ],
)
def test_a_terminal_gets_nothing_to_obey(odd: str, line: str) -> None:
    words = line.split()
    command = words[:2] if words[0] == "stats" else words[:1]
    text = said(*command, odd, *words[len(command) :])
    assert {char for char in text if not char.isprintable()} <= {"\n", "\t"}


def test_names_that_exist_are_listed_without_control_characters(odd: str) -> None:
    done = CliRunner().invoke(main, ["groups", odd, ODD[:-3]])
    assert done.exit_code == 2
    assert "mine" in done.stderr
    assert {char for char in done.stderr if not char.isprintable()} <= {"\n"}


def test_records_of_a_topic_that_is_no_utf_8_go_to_parquet(odd: str, tmp_path: Path) -> None:
    out = tmp_path / "records.parquet"
    run("export", odd, "--table", "records", "-o", str(out))
    (row,) = pq.read_table(out).to_pylist()
    assert row["topic"] == OBEYED + r"\udcff\udcfe"


@pytest.mark.parametrize("words", [("stats", "errors"), ("stats", "topics"), ("groups",)])
def test_tables_tell_such_names_as_the_capture_does(
    odd: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    run("spark", odd, "-o", str(tmp_path), "--engine", "plain", "--records")
    assert run(*words, str(tmp_path), "--json") == run(*words, odd, "--json") != ""


def test_control_characters_in_a_filter_are_escaped() -> None:
    text = quoted("\0\x1b\x7f\x9b\n\\x41")
    assert text == r'"\x00\x1b\x7f\x9b\n\\x41"'
    assert str(parse(text)) == text


def test_an_element_that_only_one_side_has_gives_a_terminal_nothing_to_obey(
    tmp_path: Path,
) -> None:
    frames = [
        ("client", request("Metadata", 5, number, topics=topics))
        for number, topics in enumerate(([], [{"name": OBEYED}]))
    ]
    path = capture_file(tmp_path / "two.pcapng", frames)
    text = said("diff", f"{path}#1", f"{path}#2")
    assert "mine" in text
    assert {char for char in text if not char.isprintable()} <= {"\n"}


def test_file_names_give_a_terminal_nothing_to_obey(odd: str, tmp_path: Path) -> None:
    named = tmp_path / f"{OBEYED}.pcap"
    named.write_bytes(Path(odd).read_bytes())
    missing = CliRunner().invoke(main, ["ls", f"{named}x"])
    assert missing.exit_code == 3
    for text in (missing.stderr, said("diff", f"{named}#1", f"{named}#2")):
        assert "mine" in text
        assert {char for char in text if not char.isprintable()} <= {"\n"}


def test_a_file_whose_name_is_no_utf_8_goes_to_tables(odd: str, tmp_path: Path) -> None:
    named = tmp_path / f"{BYTES}.pcap"
    named.write_bytes(Path(odd).read_bytes())
    run("spark", str(named), "-o", str(tmp_path / "out"), "--engine", "plain")
    assert run("stats", "apis", str(tmp_path / "out")) == run("stats", "apis", odd)


@pytest.mark.parametrize("shorten", [octets, shown])
def test_a_long_value_that_does_not_print_takes_no_object_for_each_character(
    shorten: Callable[[Any], str],
) -> None:
    size = 1 << 20
    value: Any = bytes(size) if shorten is octets else "\0" * size
    tracemalloc.start()
    try:
        text = shorten(value)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(text) >= size
    assert peak < 20 * size


def test_names_that_differ_only_in_what_nobody_sees_are_told_apart(tmp_path: Path) -> None:
    names = ["g\u202eg", "g\u2066g", "g\x1bg", r"g\u202eg", "gg"]
    frames: list[tuple[str, bytes]] = []
    for number, name in enumerate(names):
        asked = {"group_id": name, "member_id": "m"}
        frames.append(("client", request("JoinGroup", 5, number, name, **asked)))
        frames.append(("broker", response("JoinGroup", 5, number, error_code=30)))
    path = str(capture_file(tmp_path / "in.pcapng", frames))
    found = [json.loads(line) for line in run("check", path, "--json").splitlines()]
    told = [each for each in found if each["name"] == "denied"]
    assert len({each["text"] for each in told}) == len(names)
    assert len({str(each["entities"]) for each in told}) == len(names)
    assert all(each["text"].isprintable() and each["advice"].isprintable() for each in told)
    spelled = {r"g\u202eg", r"g\u2066g", r"g\x1bg", r"g\\u202eg", "gg"}
    assert {word for each in told for word in each["text"].split()} >= spelled
    shown = run("check", path)
    assert shown.replace("\n", "").isprintable()


def test_a_name_that_is_no_utf8_and_comes_late_is_written_into_tables(tmp_path: Path) -> None:
    # The name took the place of the id when tables were made: a UnicodeEncodeError.
    topic_id = bytes(range(16))
    fetched = [{"topic_id": topic_id, "partitions": []}]
    named = {"error_code": 0, "name": BYTES, "topic_id": topic_id, "partitions": []}
    named |= {"is_internal": False, "topic_authorized_operations": 0}
    brokers: dict[str, Any] = {"brokers": [], "cluster_id": None}
    asked_for = [{"topic_id": topic_id, "name": None}]
    frames = [
        ("client", request("Fetch", 13, 1, topics=[{"topic_id": topic_id, "partitions": []}])),
        ("broker", response("Fetch", 13, 1, responses=fetched)),
        ("client", request("Metadata", 12, 2, topics=asked_for)),
        ("broker", response("Metadata", 12, 2, topics=[named], **brokers)),
    ]
    path, out = capture_file(tmp_path / "a.pcapng", frames), tmp_path / "out"
    run("spark", str(path), "-o", str(out), "--engine", "plain")
    tables = [pq.read_table(each) for each in (out / "exchanges").rglob("*.parquet")]
    topics = [
        name for table in tables for row in table.column("topics").to_pylist() for name in row
    ]
    assert set(topics) == {BYTES.encode("utf-8", "backslashreplace").decode()}
