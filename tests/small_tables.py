"""Tables that drop nearly all they are told, each its own part: a fixture for tests of what is made
of what is left."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kafkascope.analyzer.merging import tables
from kafkascope.analyzer.merging.limits import LIMITS
from tests.kit.samples import ROOT

SAMPLES = sorted((ROOT / "captures" / "samples").glob("*.pcap*"))

FEW = [
    path
    for path in SAMPLES
    if path.name.partition(".")[0] in ("cluster", "rebalance", "transactions", "zookeeper")
]
"""Those with the most of groups, brokers and nodes in the least bytes."""


@pytest.fixture(
    params=[
        pytest.param((1,), marks=pytest.mark.slow),
        (2,),
        pytest.param((1, 2, 3, 5, 10), marks=pytest.mark.slow),
    ],
    ids=str,
)
def small_tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table keeps at most so many keys; of several limits each has another."""
    limits, random = request.param, Random(7)
    made: Callable[..., None] = tables.Keyed.__init__

    def less(self: Any, kind: Any, limit: int = LIMITS.keys, **more: Any) -> None:
        made(self, kind, min(limit, random.choice(limits)), **more)

    monkeypatch.setattr(tables.Keyed, "__init__", less)
