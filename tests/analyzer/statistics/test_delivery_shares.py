"""What the delivery audit says of share groups: that it has nothing to audit, and where to look."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner, Result

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.tui.cli import main
from kafkascope.tui.screens.groups import audited

SHARES = str(Path(__file__).parents[1] / "captures" / "share-group.pcap.gz")
CLASSIC = str(Path(__file__).parents[3] / "captures" / "samples" / "rebalance.pcap")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args)


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
