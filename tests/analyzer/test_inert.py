"""Text of traffic that runners of CI jobs would obey."""

import json
from pathlib import Path

import pytest

from kafkascope.analyzer.text import inert, inert_json
from tests.hostile import hostile
from tests.kit.run import run
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "transactions.pcap"


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in which every text begins with one command, and ends with another."""
    target = tmp_path_factory.mktemp("job") / "evil.pcapng"
    return hostile(SAMPLE, target, "##[error]y", "::error::")


@pytest.mark.parametrize(
    "text", ["::error::x", "  ::stop-commands::x", "a\n\t::set-output", "a ##[group]", "##vso[task"]
)
def test_commands_of_runners_are_text(text: str) -> None:
    lines = inert(text).split("\n")
    assert not any(line.strip().startswith("::") for line in lines)
    assert "##[" not in inert(text)
    assert "##vso[" not in inert(text)
    assert inert(text).replace("\\", "") == text
    written = json.dumps({"a": text}).encode()
    assert b"##[" not in inert_json(written)
    assert json.loads(inert_json(written)) == {"a": text}


def test_usual_text_stays() -> None:
    for text in ("[::1]:9092", "a::b", "## heading", "#[x]"):
        assert inert(text) == text


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "--columns", "client_id"],
        ["ls", "--json"],
        ["show", "-Y", "number > 0"],
        ["clients"],
        ["ls", "-T", "fields", "-e", "client"],
        ["records"],
        ["records", "-T", "fields", "-e", "value"],
        ["export", "--format", "csv", "-o", "-"],
        ["export", "--format", "jsonl", "-o", "-"],
        ["check", "--all"],
        ["check", "-Y", 'client == "nobody-by-this-name"'],
        ["check", "--format", "github"],
        ["check", "--format", "junit"],
    ],
)
def test_a_log_of_a_job_holds_no_commands_of_traffic(
    arguments: list[str], evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if arguments[0] != "check":
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
    name, *rest = arguments
    done = run(name, evil, *rest)
    assert done.exit_code in (0, 1), done.output
    own = "github" in arguments
    assert not [
        line
        for line in done.output.splitlines()
        if line.strip().startswith("::") and not (own and " title=kafkascope%3A " in line)
    ]
    assert "##[" not in done.output
    assert "error" in done.output or arguments[0] == "check"
