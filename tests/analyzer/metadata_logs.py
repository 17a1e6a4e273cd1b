"""Responses that bring the metadata log of KRaft, with credentials in it."""

from typing import Any

from kafkascope.dissectors.embedded.internal import CLUSTER_METADATA_ID
from kafkascope.dissectors.layout import implied_default, resolve
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import example, layout_of, message, write_layout
from tests.kit.wire import response

SECRETS = (b"stored-key-hunter2", b"server-key-hunter2", b"salt-hunter2", b"config-hunter2")
CREDENTIALS = {
    "name": "alice",
    "mechanism": 1,
    "salt": SECRETS[2],
    "stored_key": SECRETS[0],
    "server_key": SECRETS[1],
    "iterations": 4096,
}
CONFIGS = [
    {"resource_type": 4, "resource_name": "1", "name": name, "value": value}
    for name, value in (("x.pwd", SECRETS[3].decode()), ("retention.ms", "12345"))
]


def framed(name: str, body: dict[str, Any]) -> bytes:
    declared = message(name)
    layout = resolve(declared, declared.versions.high)
    filled = example(name, declared.versions.high) | body
    assert declared.key is not None
    return bytes([1, declared.key, declared.versions.high]) + write_layout(layout, filled)


def log(codec: int) -> bytes:
    values = [framed("UserScramCredentialRecord", CREDENTIALS)]
    values += [framed("ConfigRecord", each) for each in CONFIGS]
    plain = encode_batch([Record(9, 1, b"key", b"no secret", ())], codec=codec)
    return encode_batch([Record(0, 1, None, each, ()) for each in values], codec=codec) + plain


def element(name: str, version: int, *path: str) -> dict[str, Any]:
    """Defaults of what is in an array of a message."""
    wire: Any = layout_of(name, version).body
    for each in path:
        wire = next(slot for slot in wire.slots if slot.name == each).wire.element
    made: dict[str, Any] = implied_default(wire)
    return made


def answer(
    version: int, records: bytes, topic: str = "__cluster_metadata", correlation_id: int = 1
) -> bytes:
    partition = element("FetchResponse", version, "responses", "partitions")
    named = element("FetchResponse", version, "responses")
    named |= {"partitions": [partition | {"records": records}]}
    if version > 12:
        named["topic_id"] = CLUSTER_METADATA_ID if topic.startswith("__") else b"\7" * 16
    else:
        named["topic"] = topic
    return response("Fetch", version, correlation_id, responses=[named])


def snapshot(records: bytes, correlation_id: int = 1) -> bytes:
    partition = element("FetchSnapshotResponse", 1, "topics", "partitions")
    topic = element("FetchSnapshotResponse", 1, "topics") | {"name": "__cluster_metadata"}
    topic |= {"partitions": [partition | {"unaligned_records": records}]}
    return response("FetchSnapshot", 1, correlation_id, topics=[topic])
