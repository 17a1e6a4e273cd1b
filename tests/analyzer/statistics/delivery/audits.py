"""Audits of delivery of captures, and their lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.groups.groups import Groups


def audit_of(path: Path) -> Audit:
    delivery, groups, cluster = Delivery(), Groups(), Cluster()
    with open_capture([path]) as capture:
        for exchange in capture.exchanges():
            row = row_of(exchange, capture.context.names)
            for each in (delivery, groups, cluster):
                each.add(ExchangeBatch.of(row, exchange))  # type: ignore[attr-defined]
        return Audit(delivery, groups, cluster, capture.context.names)


def line_of(audit: Audit, topic: str, number: int = 0) -> dict[str, Any]:
    return next(
        line for line in audit.partitions() if (line["topic"], line["partition"]) == (topic, number)
    )
