"""Consumers before 0.9: what they fetch, and the offsets that they keep in ZooKeeper."""

from __future__ import annotations

import json
import re

from click.testing import CliRunner

from kafkascope.analyzer.commands.groups import groups
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.delivery.parts import offset_in
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.tui.screens.groups import audited
from tests.kit.run import run
from tests.kit.samples import CAPTURES, SAMPLES


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


# --- what the delivery audit says of share groups: that it has nothing to audit, and  -------------


SHARES = str(CAPTURES / "share-group.pcap.gz")
CLASSIC = str(SAMPLES / "rebalance.pcap")


def test_each_share_group_gets_its_sentence() -> None:
    for more in ((), ("share-group",)):
        done = run("groups", "--delivery", SHARES, *more)
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr.startswith("kafkascope: share-group is a share group: ")
        assert done.stderr.count("\n") == 1
    assert run("groups", "--delivery", SHARES, "-q").stderr == ""
    assert "share group" not in run("groups", "--delivery", CLASSIC).stderr


def test_the_filters_that_it_names_find_what_they_should() -> None:
    said = run("groups", "--delivery", SHARES).stderr
    handed = re.search(r"-Y '([^']+)'", said)
    again = re.search(r"'(and [^']+)'", said)
    assert handed is not None
    assert again is not None
    first = run("ls", SHARES, "-Y", handed[1], "--json").stdout.splitlines()
    assert any('"api":"ShareAcknowledge"' in line for line in first)
    second = run("ls", SHARES, "-Y", f"{handed[1]} {again[1]}", "--json")
    assert second.exit_code == 0
    assert len(second.stdout.splitlines()) < len(first)


def test_the_screen_says_the_same() -> None:
    delivery, groups, cluster = Delivery(), Groups(), Cluster()
    with open_capture([SHARES]) as capture:
        for exchange in capture.exchanges():
            row = row_of(exchange, capture.context.names)
            for each in (delivery, groups, cluster):
                each.add(ExchangeBatch.of(row, exchange))
        audit = Audit(delivery, groups, cluster, capture.context.names)
        for tab in ("Delivery", "Audit", "Plans"):
            sheet, empty = audited(audit, tab, "share-group", Times("u"))
            assert not sheet.lines
            assert "is a share group" in empty
