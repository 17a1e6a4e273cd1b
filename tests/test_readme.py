"""The README prints what its commands print on a terminal of 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "analyzer" / "commands" / "terminals"
README = (ROOT / "README.md").read_text("utf-8")


def test_it_has_120_lines_at_most() -> None:
    assert README.count("\n") <= 120


def test_answers_are_what_the_commands_print() -> None:
    answers = re.findall(r"^    \$ kafkascope (.*)\n((?:    .*\n)+)", README, re.MULTILINE)
    assert len(answers) == 3
    for command, answer in answers:
        name = "-".join(re.findall(r"\w+", command.replace("-", " ")))
        printed = (GOLDEN / f"{name}-80.txt").read_text("utf-8").splitlines()
        at = 0
        for line in (line[4:] for line in answer.splitlines() if line.strip() != "..."):
            at = printed.index(line, at) + 1
