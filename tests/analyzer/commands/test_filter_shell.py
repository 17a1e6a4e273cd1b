"""The filter language at the shell: `fields`, and completion of -Y, -e and --sort."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from kafkascope.tui.cli import main
from tests.kit.run import run


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
