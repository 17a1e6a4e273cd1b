"""`show` takes one line for something with the range of its versions, and says nothing less."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.commands.show import show

SAMPLE = Path(__file__).parents[3] / "captures" / "samples" / "libraries.pcap"


def run(*options: str) -> list[str]:
    result = CliRunner().invoke(show, [str(SAMPLE), "1", *options])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_one_line_for_each_api() -> None:
    lines = [line.strip() for line in run()]
    (body,) = json.loads(run("--json")[0])["response"]["api_keys"][1:2]
    assert (body["api_key"], body["min_version"], body["max_version"]) == (1, 4, 18)
    assert "Fetch 4-18" in lines
    assert not any(line.startswith("min_version:") for line in lines)
    start = lines.index("api_keys: 79") + 1
    assert len(set(lines[start : start + 79])) == 79
    assert "throttle_time_ms: 0" in lines[start + 79]
    assert "group.version 0-1" in lines, "features of a broker have ranges, too"
    assert any(line.startswith("max_version_level:") for line in lines), "another field stays"


@pytest.mark.parametrize("option", ["--all", "--hex"])
def test_all_of_it_when_asked_for(option: str) -> None:
    text = "\n".join(run(option))
    assert text.count(" api_key: ") == 79
    assert text.count(" max_version: ") >= 79
