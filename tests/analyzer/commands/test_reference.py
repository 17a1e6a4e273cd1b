"""`kafkascope error`: codes of Kafka, and those of ZooKeeper that share no number with them."""

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.commands.reference import error
from kafkascope.dissectors.reference.zookeeper import MEANINGS, ZOOKEEPER


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
