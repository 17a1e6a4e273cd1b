"""Kafka's own generated message classes as a codec: one child process that answers line by line."""

import base64
from typing import Any, assert_never

from kafkascope.dissectors import layout
from kafkascope.dissectors.values import Uuid
from tests.interop.asked import Asked
from tests.interop.maven import BROKERS, compiled, jars


class Oracle(Asked):
    """java/Oracle.java with the jars of one broker release; a context manager."""

    def __init__(self, version: str) -> None:
        self.version = version
        classes = compiled(jars(f"broker-{version}", BROKERS[version]), ["Oracle"])
        # It looks for message classes in the jars of its class path, so these are named one by one.
        path = ":".join([str(classes.classes), *map(str, sorted(classes.lib.glob("*.jar")))])
        super().__init__("Oracle", path, 512)

    def messages(self) -> dict[str, tuple[int, int]]:
        """All messages this release has, with their lowest and highest version."""
        told = self.ask(list=True)["messages"]
        return {name: (low, high) for name, (low, high) in told.items()}


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


def compare(wire: layout.Wire, ours: Any, theirs: Any, path: str) -> None:
    """Our value and Kafka's JSON of it."""
    if ours is None or theirs is None:
        assert ours is theirs, path
        return
    match wire:
        case layout.NumberWire():
            assert float(ours) == float(theirs) if wire.code == "d" else ours == theirs, path
        case layout.BoolWire() | layout.StringWire():
            assert ours == theirs, path
        case layout.UuidWire():
            assert str(Uuid(ours)) == theirs, path
        case layout.BytesWire():
            assert base64.b64encode(ours).decode() == theirs, path
        case layout.ArrayWire():
            assert len(ours) == len(theirs), path
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                compare(wire.element, one, other, f"{path}[{index}]")
        case layout.StructWire():
            compare_struct(wire, ours, theirs, path)
        case _:
            assert_never(wire)


def compare_struct(
    wire: layout.StructWire, ours: dict[str, Any], theirs: dict[str, Any], path: str
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
        if isinstance(slot.wire, layout.BytesWire) and slot.wire.records:
            # Only the size is told; the bytes are compared when they come back.
            told = slot.name if value is None else f"{slot.name}_size_in_bytes"
            assert named.pop(told, "absent") == (None if value is None else len(value)), at
        elif slot.name in named:
            compare(slot.wire, value, named.pop(slot.name), at)
        else:
            assert slot.tag is not None, f"{at} is not in Kafka's JSON"
            assert value == layout.default_of(slot) or (message, slot.name) in LATER_TAGS, at
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
