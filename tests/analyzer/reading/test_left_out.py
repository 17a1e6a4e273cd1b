"""What is not taken note of, for there is too much of it, is said in a sentence."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from kafkascope.analyzer.commands import cut
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.limits import LIMITS, ConversationLimits
from kafkascope.analyzer.exchanges import offline
from kafkascope.analyzer.pipeline import tasks
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.limits import LIMITS as TRANSFORM_LIMITS
from tests.kit.run import run
from tests.kit.samples import CAPTURES, SAMPLES, rows_of

DEMO = SAMPLES / "demo.pcap.zst"
ZOOKEEPER = CAPTURES / "zookeeper-groups.pcapng.gz"


def limited(limits: ConversationLimits) -> Callable[..., Context]:
    """What makes a context with these limits in place of its own."""

    def made(decode_as: Iterable[int] = (), *_: object) -> Context:
        return Context(decode_as, limits)

    return made


BODIES = LIMITS.bodies
FEW_TOPICS = LIMITS._replace(topics=LIMITS.topics._replace(names=2))
FEW_LOG_ENDS = LIMITS._replace(bodies=BODIES._replace(log_ends=0))
FEW_PARTITIONS = LIMITS._replace(bodies=BODIES._replace(session_partitions=0))
FEW = {
    "too many topics have an id": FEW_TOPICS,
    "brokers were advertised": LIMITS._replace(bodies=BODIES._replace(nodes=1)),
    "endpoints answered": LIMITS._replace(endpoints=1),
    "too many partitions are fetched": FEW_PARTITIONS,
}


def said(*words: str) -> str:
    return run(*words, codes=[0]).stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("sentence", FEW)
def test_a_sentence_says_what_was_left_out(
    sentence: str, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sentence not in said("ls", str(DEMO), "--jobs", jobs)
    for module in (offline, tasks):
        monkeypatch.setattr(module, "Context", limited(FEW[sentence]))
    assert sentence in said("ls", str(DEMO), "--jobs", jobs)


def test_log_ends_that_were_forgotten_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "Context", limited(FEW_LOG_ENDS))
    assert "too many partitions are fetched" in said("ls", str(DEMO))


def test_tables_say_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = str(tmp_path / "out")
    monkeypatch.setattr(tasks, "Context", limited(FEW_TOPICS))
    assert "too many topics" in said("spark", str(DEMO), "-o", out, "--engine", "plain")
    monkeypatch.undo()
    assert "too many topics" in said("stats", "apis", out)


def test_handshakes_that_were_forgotten_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "cut", str(ZOOKEEPER), "-Y", 'api == "zk.closeSession"', "-o"
    assert "written without the handshakes" not in said(*words, str(tmp_path / "whole.pcapng"))
    few = partial(Cutting, limits=TRANSFORM_LIMITS._replace(handshakes=1))
    monkeypatch.setattr(cut, "Cutting", few)
    sentence = "too many: 4 connections to ZooKeeper"
    assert sentence in said(*words, str(tmp_path / "cut.pcapng"))
    # Of five.
    assert [row.api for row in rows_of(tmp_path / "cut.pcapng")].count("zk.connect") == 1
