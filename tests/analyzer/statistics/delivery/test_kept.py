"""Consumers before 0.9: what they fetch, and the offsets that they keep in ZooKeeper."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from kafkascope.analyzer.commands.groups import groups
from kafkascope.analyzer.statistics.delivery.parts import offset_in

CAPTURES = Path(__file__).parents[2] / "captures"


def test_commits_in_zookeeper_are_held_against_the_fetches_of_the_same_group() -> None:
    path = str(CAPTURES / "zookeeper-consumers.pcap.zst")
    run = CliRunner().invoke(groups, [path, "--partitions", "--json"], standalone_mode=False)
    lines = [json.loads(line) for line in run.output.splitlines() if line.startswith("{")]
    found = {
        (each["topic"], each["partition"]): (
            each["committed_offset"],
            each["fetched_offset"],
            each["lag"],
        )
        for each in lines
        if each["group"] == "zk-group"
    }
    assert found == {
        ("orders", 0): (19, 19, 0),
        ("orders", 1): (11, 11, 0),
        ("orders", 2): (10, 10, 0),
    }
    readers = {reader for each in lines for reader in each["readers"]}
    assert readers == {
        "one-ConsumerFetcherThread-zk-group_one-0-1@127.0.0.1",
        "two-ConsumerFetcherThread-zk-group_two-0-1@127.0.0.1",
    }


def test_what_is_no_offset_is_none() -> None:
    assert [offset_in(data) for data in (b"17", b"", None, b"-1", b"x", b"9" * 20)] == [
        17,
        None,
        None,
        None,
        None,
        None,
    ]
