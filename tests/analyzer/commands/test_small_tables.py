"""Tables that drop nearly all they are told, each its own part: what is left is told without what
another table has dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.statistics import mergeable
from kafkascope.tui.cli import main

SAMPLES = sorted((Path(__file__).parents[3] / "captures" / "samples").glob("*.pcap*"))
COMMANDS = ("check", "cluster", "clients", "groups", "delivery", "producers")


@pytest.fixture(params=[(1,), (2,), (1, 2, 3, 5, 10)], ids=str)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table keeps at most so many keys; of several limits each has another."""
    limits, random = request.param, Random(7)
    made: Callable[..., None] = mergeable.Keyed.__init__

    def less(self: Any, kind: Any, limit: int = mergeable.MAX_KEYS, *rest: Any) -> None:
        made(self, kind, min(limit, random.choice(limits)), *rest)

    monkeypatch.setattr(mergeable.Keyed, "__init__", less)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_commands_tell_what_small_tables_kept(path: Path) -> None:
    for command in COMMANDS:
        result = CliRunner().invoke(main, [command, str(path), "--jobs", "1"])
        if not isinstance(result.exception, SystemExit):
            assert result.exception is None, command
        assert result.exit_code in (0, 1, 4), (command, result.output)
