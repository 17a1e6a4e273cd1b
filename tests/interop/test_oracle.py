"""Our codec against Kafka's own generated classes: they read what we write, and the reverse.

For every (message, version) pair that a release has: random bodies, our bytes, Kafka's JSON of
them compared field by field, and Kafka's bytes read back.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.reader import reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.layout import Layout
from tests.interop.oracle import RENAMED, Oracle, compare, snake
from tests.strategies import bodies

pytestmark = pytest.mark.interop

EXAMPLES = int(os.environ.get("ORACLE_EXAMPLES", "4"))
FEW = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # the first failure of a pair says enough; shrinking takes minutes
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module", params=["3.9.2", "4.4.0"])
def oracle(request: pytest.FixtureRequest, java: None) -> Iterator[Oracle]:
    with Oracle(request.param) as running:
        yield running


def test_kafka_agrees_on_every_message_and_version(oracle: Oracle) -> None:
    compared, wrong = 0, []
    for name, (low, high) in oracle.messages().items():
        declared = RENAMED.get(name, name)
        for version in range(low, high + 1):
            main = registry.layout_of(declared, ours_of(declared, version))
            # A release may have had a layout that was changed later under the same number.
            layouts = [main, *registry.variants_of(declared, main.version)]
            failures = [disagreement(oracle, name, version, layout) for layout in layouts]
            compared += 1
            if all(failures):
                wrong.append(f"{name} {version}: {failures[0]}")
    print(f"{compared} pairs of Kafka {oracle.version} compared")
    assert wrong == [], "\n".join(wrong)
    assert compared >= 740


def ours_of(name: str, version: int) -> int:
    """Our version: before 4.0 keys of coordinator records had their type as version."""
    return version if version in registry.message(name).versions else 0


def disagreement(oracle: Oracle, name: str, version: int, layout: Layout) -> str:
    """What differs, or nothing."""

    @FEW
    @given(bodies(layout))
    def law(body: dict[str, Any]) -> None:
        body = without_huge_tags(body)
        data = writer(layout)(body)
        told = oracle.ask(message=name, version=version, hex=data.hex())
        if not told["ok"] and "is not valid for version" in told["error"]:
            reject()  # an unknown tag by chance was one that Kafka knows in other versions
        assert told["ok"], told["error"]
        assert told["left"] == 0
        compare(layout.body, body, told["json"], name)
        again = bytes.fromhex(told["hex"])
        assert reader(layout)(again, 0) == (body, len(again))

    try:
        law()
    except AssertionError as failure:
        return str(failure)[:500]
    return ""


@pytest.mark.parametrize(
    ("camel", "expected"),
    [("kRaftVersion", "kraft_version"), ("enable2Pc", "enable2_pc"), ("topicId", "topic_id")],
)
def test_names_follow_the_rule(camel: str, expected: str) -> None:
    assert snake(camel) == expected


def without_huge_tags(value: Any) -> Any:
    """Kafka keeps tags as signed integers and refuses those that turn negative."""
    if isinstance(value, list):
        return [without_huge_tags(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_huge_tags(each) for key, each in value.items()}
    if "_tagged_fields" in kept:
        kept["_tagged_fields"] = [f for f in kept["_tagged_fields"] if f["tag"] < 2**31]
        if not kept["_tagged_fields"]:
            del kept["_tagged_fields"]
    return kept
