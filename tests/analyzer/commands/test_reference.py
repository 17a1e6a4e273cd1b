"""`kafkascope error`: codes of Kafka, and those of ZooKeeper that share no number with them."""

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kafkascope.analyzer.commands.reference import error
from kafkascope.dissectors.reference.zookeeper import MEANINGS, ZOOKEEPER
from kafkascope.tui.cli import main
from tests.kit.run import run


@pytest.mark.parametrize(
    ("wanted", "head"),
    [
        ("NONODE", "NONODE (-101), of ZooKeeper"),
        ("nonode", "NONODE (-101), of ZooKeeper"),
        ("-112", "SESSIONEXPIRED (-112), of ZooKeeper"),
        ("-1", "UNKNOWN_SERVER_ERROR (-1), since Kafka 0.8.0, once UNKNOWN"),
        ("25", "UNKNOWN_MEMBER_ID (25), since Kafka 0.9.0"),
    ],
)
def test_one_is_explained(wanted: str, head: str) -> None:
    run = CliRunner().invoke(error, ["--", wanted], standalone_mode=False)
    assert run.output.splitlines()[0] == head
    assert len(run.output.splitlines()) >= 3


def test_all_of_zookeepers_have_a_meaning() -> None:
    assert {0, *MEANINGS} == set(ZOOKEEPER["ZooKeeperError"])


# --- fields, and completion of -Y, -e and --sort --------------------------------------------------


def completions(*arguments: str) -> list[str]:
    shell = ShellComplete(main, {}, "kafkascope", "_KAFKASCOPE_COMPLETE")
    *before, last = arguments
    return [item.value for item in shell.get_completions(["ls", *before], last)]


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (("-Y", "top"), "topic"),
        (("-Y", "api == Fe"), "api == Fetch"),
        (("-Y", "open and not la"), "open and not latency"),
        (("-e", "kafka.topic_n"), "kafka.topic_name"),
        (("--sort", "late"), "latency"),
    ],
)
def test_shells_complete_filters(arguments: tuple[str, ...], first: str) -> None:
    assert completions(*arguments)[0] == first


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("ls de", "file"),
        ("de.pc", "file"),
        ("ls x.pcap --keylog ke", "file"),
        ("records x.pcap --schemas s", "dir"),
        ("check x.pcap --rule broker-d", "broker-down"),
        ("clients x.pcap --for 4.0", "4.0.0"),
        ("errors x.pcap --by code,cl", "code,client"),
        ("grammar fet", "Fetch"),
        ("error NOT_LEADER", "NOT_LEADER_OR_FOLLOWER"),
        ("capture -i an", "any"),
        ("dem", "demo"),
    ],
)
def test_shells_complete_files_and_names(words: str, first: str) -> None:
    *before, last = words.split()
    shell = ShellComplete(main, {}, "kafkascope", "_KAFKASCOPE_COMPLETE")
    found = shell.get_completions(before, last)[0]
    assert first == (found.value if found.type == "plain" else found.type)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("topic", "topic"),
        ("record", "record.value"),
        ("session_timeout", "body.session_timeout_ms"),
        ("kafka.session_timeout", "body.session_timeout_ms"),
        ("body.leader_ep", "body.leader_epoch"),
        ("request.Fetch", "request.max_wait_ms"),
    ],
)
def test_fields_lists_what_has_the_word(word: str, name: str) -> None:
    done = run("fields", word, "--format", "tsv")
    assert done.exit_code == 0
    assert name in [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_all_fields_have_type_cost_and_example() -> None:
    lines = run("fields", "--format", "tsv").stdout.splitlines()
    assert lines[0].split("\t")[:5] == ["field", "type", "cost", "meaning", "example"]
    assert all(all(line.split("\t")[:5]) for line in lines[1:])


def test_a_word_that_no_field_has_gets_the_nearest_name() -> None:
    done = run("fields", "latncy")
    assert done.exit_code == 0
    assert "did you mean latency?" in done.stderr
