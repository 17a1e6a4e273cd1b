"""Commands say on stderr why they print no rows, and which names and numbers there are."""

from pathlib import Path

import pytest

from kafkascope.analyzer.commands.grid import NO_LINES
from kafkascope.analyzer.reading.absent import listed
from kafkascope.analyzer.reading.limits import LIMITS
from tests.kit.run import run
from tests.kit.samples import SAMPLES

REBALANCE = str(SAMPLES / "rebalance.pcap")
OTHERS = "-Y", "api == Vote"

FILTERED = (
    ("ls",),
    ("ls", "--json"),
    ("ls", "--connects"),
    ("show",),
    ("check",),
    ("clients",),
    ("clients", "--apis"),
    ("groups",),
    ("groups", "--delivery"),
    ("groups", "--timeline"),
    ("cluster",),
    ("cluster", "--only", "leaders"),
    ("producers",),
    ("topics",),
    ("latency",),
    ("errors",),
    ("connections",),
    ("stats", "apis"),
    ("stats", "sizes"),
    ("stats", "rates"),
    ("stats", "partitions"),
    ("stats", "zookeeper"),
)


@pytest.mark.parametrize("command", FILTERED, ids=" ".join)
def test_a_filter_that_matches_nothing_says_so(command: tuple[str, ...]) -> None:
    done = run(*command, REBALANCE, *OTHERS)
    assert done.exit_code == 0
    assert done.stderr.count("0 of 152 exchanges match") == 1
    assert "in this capture" not in done.stderr
    assert run(*command, REBALANCE, *OTHERS, "-q").stderr == ""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("topic == demox", ["topic", "librdkafka.group"]),
        ("client == nobody and api == Fetch", ["client", "librdkafka-1"]),
        ("group == g", ["group", "java-4.4.0.group.group"]),
    ],
)
def test_a_filter_with_an_unknown_name_lists_those_that_exist(text: str, names: list[str]) -> None:
    kind, name = names
    said = run("ls", REBALANCE, "-Y", text).stderr
    assert f"there is no {kind} " in said
    assert f"; {kind}s: " in said
    assert name in said.split(f"; {kind}s: ")[1]


@pytest.mark.parametrize("text", ["topic != demox and api == Vote", "topic contains demox"])
def test_other_comparisons_name_nothing(text: str) -> None:
    assert "there is no" not in run("ls", REBALANCE, "-Y", text).stderr


@pytest.mark.parametrize("command", ["records", "schemas"])
def test_a_filter_of_records_that_matches_nothing_says_so(command: str) -> None:
    assert "0 of 152 exchanges have records" in run(command, REBALANCE, *OTHERS).stderr


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_files_without_rows_say_so(suffix: str, tmp_path: Path) -> None:
    file = str(tmp_path / f"none.{suffix}")
    assert "0 of 152 exchanges match" in run("export", REBALANCE, *OTHERS, "-o", file).stderr


def test_captures_and_fixtures_without_exchanges_say_so(tmp_path: Path) -> None:
    file, folder = str(tmp_path / "none.pcapng"), str(tmp_path / "none.jsonl")
    assert "0 of 152 exchanges match" in run("cut", REBALANCE, *OTHERS, "-o", file).stderr
    assert "0 of 152 exchanges match" in run("fixture", REBALANCE, *OTHERS, "-o", folder).stderr
    both = run("diff", REBALANCE, REBALANCE, *OTHERS).stderr
    assert both.count("0 of 152 exchanges match") == 2


def test_a_time_range_without_exchanges_says_so() -> None:
    assert "0 of 152 exchanges match" in run("ls", REBALANCE, "--from", "9999").stderr


@pytest.mark.parametrize(
    ("command", "things"),
    [
        (("producers",), "producers with IDs"),
        (("producers", "--transactions"), "transactions"),
        (("schemas",), "record schemas"),
        (("stats", "zookeeper"), "ZooKeeper traffic"),
        (("stats", "zookeeper", "--only", "sessions"), "ZooKeeper sessions"),
        (("cluster", "--only", "elections"), "controller elections in ZooKeeper"),
        (("cluster", "--only", "topics"), "topics created or deleted in ZooKeeper"),
    ],
)
def test_a_table_without_rows_says_what_the_capture_lacks(
    command: tuple[str, ...], things: str
) -> None:
    for form in ("table", "jsonl"):
        done = run(*command, REBALANCE, "--format", form)
        assert f"no {things} in this capture" in done.stderr
        assert done.stdout == ""
    assert things in NO_LINES.values() or things == "ZooKeeper traffic"
    assert run(*command, REBALANCE, "-q").stderr == ""


def test_a_table_without_rows_counts_the_exchanges_that_match() -> None:
    done = run("groups", REBALANCE, "-Y", "api == ApiVersions")
    assert "no consumer groups in the " in done.stderr
    assert "matching exchanges" in done.stderr


@pytest.mark.parametrize("view", [(), ("--timeline",), ("--members",), ("--delivery",)])
def test_a_group_that_is_not_there_lists_those_that_are(view: tuple[str, ...]) -> None:
    done = run("groups", REBALANCE, "java-4.4.group", *view)
    assert (done.exit_code, done.stdout) == (2, "")
    assert 'no group "java-4.4.group" in this capture' in done.stderr
    assert done.stderr.rstrip().endswith("java-4.4.0.group.group, librdkafka.group.group")


def test_an_exchange_that_is_not_there_says_which_are() -> None:
    done = run("diff", f"{REBALANCE}#1", f"{REBALANCE}#999")
    assert done.exit_code == 2
    assert f"no exchange 999; {REBALANCE} has 1 to 152" in done.stderr


def test_at_most_ten_names_are_listed_the_nearest_first() -> None:
    names = [f"orders-{n}" for n in range(40)] + ["billing"]
    text = listed("biling", names)
    assert text.startswith("billing, ")
    assert text.count(",") == LIMITS.listed_names
    assert text.endswith("and 31 more")


@pytest.mark.parametrize("command", ["clients", "check", "report"])
def test_an_unknown_release_names_the_nearest_and_the_newest(command: str) -> None:
    done = run(command, REBALANCE, "--for", "9.9")
    assert done.exit_code == 2
    assert "9.9 is not a known Kafka release; the newest is 4." in done.stderr
    done = run(command, REBALANCE, "--for", "3.10")
    assert "the nearest 3.9.0 and 4.0.0" in done.stderr


def test_a_release_is_written_in_several_ways() -> None:
    tables = {run("clients", REBALANCE, "--for", each).stdout for each in ("v4.0", "4.0", "4.0.7")}
    assert len(tables) == 1
    assert run("clients", REBALANCE, "--for", "4").exit_code == 0
