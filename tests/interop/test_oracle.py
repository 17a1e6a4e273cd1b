"""Our codec against Kafka's own generated classes: they read what we write, and the reverse.

For every (message, version) pair that a release has: random bodies, our bytes, Kafka's JSON of
them compared field by field, and Kafka's bytes read back.
"""

import base64
import os
from collections.abc import Iterator
from typing import Any, assert_never

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.reader import reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
    default_of,
)
from kafkascope.dissectors.values import Uuid
from tests.interop.oracle import Oracle
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

# 3.9 calls the first version of ListConfigResources by its old name.
RENAMED = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
}
# Fields that have another name since, and the message they are in.
OLD_FIELD_NAMES = {
    ("ListClientMetricsResourcesResponse", "client_metrics_resources"): "config_resources",
    ("ListClientMetricsResourcesResponse", "name"): "resource_name",
    ("TxnOffsetCommitRequest", "generation_id"): "generation_id_or_member_epoch",
    ("VoteRequest", "candidate_epoch"): "replica_epoch",
    ("VoteRequest", "candidate_id"): "replica_id",
    ("VoteRequest", "candidate_directory_id"): "replica_directory_id",
}
# Tagged fields that 4.x added to versions that 3.9 has without them: unknown tags to 3.9.
LATER_TAGS = {
    ("ConsumerGroupCurrentMemberAssignmentValue", "assignment_epochs"),
    ("ConsumerGroupMetadataValue", "metadata_hash"),
    ("ConsumerGroupTargetAssignmentMetadataValue", "assignment_timestamp"),
    ("OffsetCommitValue", "topic_id"),
    ("RemoteLogSegmentMetadataRecord", "txn_index_empty"),
    ("RemoteLogSegmentMetadataSnapshotRecord", "txn_index_empty"),
    ("ShareGroupTargetAssignmentMetadataValue", "assignment_timestamp"),
    ("ShareSnapshotValue", "delivery_complete_count"),
    ("ShareUpdateValue", "delivery_complete_count"),
    ("StreamsGroupCurrentMemberAssignmentValue", "assignment_epochs"),
    ("StreamsGroupMetadataValue", "failed_description_topology_epoch"),
    ("StreamsGroupMetadataValue", "last_assignment_configs"),
    ("StreamsGroupMetadataValue", "stored_description_topology_epoch"),
    ("StreamsGroupMetadataValue", "validated_topology_epoch"),
    ("StreamsGroupTargetAssignmentMetadataValue", "assignment_timestamp"),
    ("TransactionLogValue", "client_transaction_version"),
    ("TransactionLogValue", "next_producer_epoch"),
    ("TransactionLogValue", "next_producer_id"),
    ("TransactionLogValue", "previous_producer_id"),
}


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


def compare(wire: Wire, ours: Any, theirs: Any, path: str) -> None:
    """Our value and Kafka's JSON of it."""
    if ours is None or theirs is None:
        assert ours is theirs, path
        return
    match wire:
        case NumberWire():
            assert float(ours) == float(theirs) if wire.code == "d" else ours == theirs, path
        case BoolWire() | StringWire():
            assert ours == theirs, path
        case UuidWire():
            assert str(Uuid(ours)) == theirs, path
        case BytesWire():
            assert base64.b64encode(ours).decode() == theirs, path
        case ArrayWire():
            assert len(ours) == len(theirs), path
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                compare(wire.element, one, other, f"{path}[{index}]")
        case StructWire():
            compare_struct(wire, ours, theirs, path)
        case _:
            assert_never(wire)


def compare_struct(
    wire: StructWire, ours: dict[str, Any], theirs: dict[str, Any], path: str
) -> None:
    """All fields of a struct; Kafka's JSON leaves out tagged fields at their default."""
    message = path.partition(".")[0]
    named = {snake(key): value for key, value in theirs.items()}
    for old in named.keys() - {slot.name for slot in (*wire.slots, *wire.tags)}:
        if (message, old) in OLD_FIELD_NAMES:
            named[OLD_FIELD_NAMES[message, old]] = named.pop(old)
    for slot in (*wire.slots, *wire.tags):
        at = f"{path}.{slot.name}"
        value = ours[slot.name]
        if isinstance(slot.wire, BytesWire) and slot.wire.records:
            # Only the size is told; the bytes are compared when they come back.
            told = slot.name if value is None else f"{slot.name}_size_in_bytes"
            assert named.pop(told, "absent") == (None if value is None else len(value)), at
        elif slot.name in named:
            compare(slot.wire, value, named.pop(slot.name), at)
        else:
            assert slot.tag is not None, f"{at} is not in Kafka's JSON"
            assert value == default_of(slot) or (message, slot.name) in LATER_TAGS, at
    assert not named, f"{path}: Kafka has {sorted(named)}"


def snake(camel: str) -> str:
    """Kafka's rule: an underscore before an uppercase letter that follows another kind."""
    name = camel[0].upper() + camel[1:]
    pairs = zip(name, " " + name, strict=False)
    parts = [
        ("_" if c.isupper() and not before.isupper() and before != " " else "") + c.lower()
        for c, before in pairs
    ]
    return "".join(parts)


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
