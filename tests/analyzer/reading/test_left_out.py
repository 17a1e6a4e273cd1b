"""What is not taken note of, for there is too much of it, is said in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer import topics
from kafkascope.analyzer.bodies import fetch_sessions, log_ends, nodes
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.limits import LIMITS as CONVERSATION_LIMITS
from kafkascope.analyzer.exchanges import offline
from kafkascope.analyzer.pipeline import tasks
from kafkascope.analyzer.transform import cut
from kafkascope.tui.cli import main
from tests.analyzer.transform.test_cut import rows_of

DEMO = Path(__file__).parents[3] / "captures" / "samples" / "demo.pcap.zst"
ZOOKEEPER = Path(__file__).parents[1] / "captures" / "zookeeper-groups.pcapng.gz"


def few_endpoints(decode_as: Iterable[int] = (), *_: object) -> Context:
    return Context(decode_as, CONVERSATION_LIMITS._replace(endpoints=1))


LIMITS = {
    "too many topics have an id": (topics, "MAX_NAMES", 2),
    "brokers were advertised": (nodes, "MAX_NODES", 1),
    "endpoints answered": (offline, "Context", few_endpoints),
    "too many partitions are fetched": (fetch_sessions, "MAX_PARTITIONS", 0),
}


def said(*words: str) -> str:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("sentence", LIMITS)
def test_a_sentence_says_what_was_left_out(
    sentence: str, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sentence not in said("ls", str(DEMO), "--jobs", jobs)
    monkeypatch.setattr(*LIMITS[sentence])
    if sentence == "endpoints answered":
        monkeypatch.setattr(tasks, "Context", few_endpoints)
    assert sentence in said("ls", str(DEMO), "--jobs", jobs)


def test_log_ends_that_were_forgotten_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_ends, "MAX_PARTITIONS", 0)
    assert "too many partitions are fetched" in said("ls", str(DEMO))


def test_tables_say_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = str(tmp_path / "out")
    monkeypatch.setattr(topics, "MAX_NAMES", 2)
    assert "too many topics" in said("spark", str(DEMO), "-o", out, "--engine", "plain")
    monkeypatch.undo()
    assert "too many topics" in said("stats", "apis", out)


def test_handshakes_that_were_forgotten_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "cut", str(ZOOKEEPER), "-Y", 'api == "zk.closeSession"', "-o"
    assert "written without the handshakes" not in said(*words, str(tmp_path / "whole.pcapng"))
    monkeypatch.setattr(cut, "MOST_GREETINGS", 1)
    sentence = "too many: 4 connections to ZooKeeper"
    assert sentence in said(*words, str(tmp_path / "cut.pcapng"))
    # Of five.
    assert [row.api for row in rows_of(tmp_path / "cut.pcapng")].count("zk.connect") == 1
