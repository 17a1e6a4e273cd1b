"""SCRAM credentials and passwords in the metadata log of KRaft, on their way into a cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.transform.secrets import masked_metadata_log
from kafkascope.dissectors.embedded.internal import CLUSTER_METADATA_ID
from kafkascope.dissectors.layout import implied_default, resolve
from kafkascope.dissectors.records.records import Record, batches, crc_ok, open_batch
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import example, layout_of, message, write_layout
from kafkascope.tui.cli import main
from tests.analyzer.capture_files import capture_file
from tests.analyzer.wire import request, response

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


def answer(version: int, records: bytes, topic: str = "__cluster_metadata") -> bytes:
    partition = element("FetchResponse", version, "responses", "partitions")
    named = element("FetchResponse", version, "responses")
    named |= {"partitions": [partition | {"records": records}]}
    if version > 12:
        named["topic_id"] = CLUSTER_METADATA_ID if topic.startswith("__") else b"\7" * 16
    else:
        named["topic"] = topic
    return response("Fetch", version, 1, responses=[named])


def snapshot(records: bytes) -> bytes:
    partition = element("FetchSnapshotResponse", 1, "topics", "partitions")
    topic = element("FetchSnapshotResponse", 1, "topics") | {"name": "__cluster_metadata"}
    topic |= {"partitions": [partition | {"unaligned_records": records}]}
    return response("FetchSnapshot", 1, 1, topics=[topic])


def records_in(data: bytes) -> list[Record]:
    found = []
    for batch in batches(data):
        assert crc_ok(data, batch)
        found += open_batch(data, batch).records
    return found


@pytest.mark.parametrize("codec", [0, 1, 2, 4], ids=["none", "gzip", "snappy", "zstd"])
@pytest.mark.parametrize("api", ["Fetch 11", "Fetch 12", "Fetch 17", "FetchSnapshot 1"])
def test_a_cut_has_none_of_its_secrets(tmp_path: Path, api: str, codec: int) -> None:
    name, _, version = api.partition(" ")
    data = log(codec)
    answered = answer(int(version), data) if name == "Fetch" else snapshot(data)
    turns = [("client", request(name, int(version), 1)), ("broker", answered)]
    path, out = capture_file(tmp_path / "in.pcapng", turns), tmp_path / "out.pcapng"
    done = CliRunner().invoke(main, ["cut", str(path), "-o", str(out)])
    assert done.exit_code == 0, done.output
    with open_capture([out]) as capture:
        (exchange,) = capture.exchanges()
    body = exchange.response.decoded.body  # type: ignore[union-attr]
    topic = body["responses" if name == "Fetch" else "topics"][0]
    (partition,) = topic["partitions"]
    written = partition["records" if name == "Fetch" else "unaligned_records"]
    before, after = records_in(data), records_in(written)
    assert not [each for each in after for secret in SECRETS if secret in (each.value or b"")]
    assert [len(each.value or b"") for each in after] == [len(each.value or b"") for each in before]
    assert after[2:] == before[2:]
    assert b"alice" in (after[0].value or b"")
    assert len(written) == len(data) or codec


def test_what_holds_no_secret_of_it_keeps_its_bytes() -> None:
    values = [Record(0, 1, None, framed("ConfigRecord", CONFIGS[1]), ())]
    for codec in (0, 1, 4):
        payload = answer(12, encode_batch(values, codec=codec))[4:]
        assert masked_metadata_log(payload, 1, 12) == payload
    other = answer(12, log(0), "orders")[4:]
    assert masked_metadata_log(other, 1, 12) == other


@pytest.mark.parametrize("cut_at", [20, 70, 100, 150, -1])
def test_what_is_cut_or_unreadable_becomes_asterisks(cut_at: int) -> None:
    for data in (log(0)[:cut_at], log(0)[7:], log(1)[:90] + b"\0" * 9 + log(1)[99:]):
        for payload, key, version in ((answer(12, data)[4:], 1, 12), (snapshot(data)[4:], 59, 1)):
            written = masked_metadata_log(payload, key, version)
            assert not [secret for secret in SECRETS if secret in written]
