"""tshark as a second opinion on every sample: where it is right, its values equal ours.

tshark 4.0 knows versions up to Kafka 2.5 and is wrong on some of these: messages on which it
reports
a problem of its own are left out (counted), and so are the fields in `LEFT_OUT`.
"""

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.dissectors.layout import ArrayWire, StructWire, Wire
from kafkascope.dissectors.registry import Decoded
from tests.kit.samples import ROOT
from tests.matrix import each_nth

pytestmark = pytest.mark.tshark

SAMPLES = sorted((ROOT / "captures" / "samples").glob("*.pcap*"))

NAMES = {
    "kafka.partition_id": {
        "partition",
        "partition_index",
        "index",
        "partition_indexes",
        "partitions",
    },
    "kafka.error": {"error_code", "partition_error_code"},
    "kafka.required_acks": {"acks"},
    "kafka.consumer_group": {"group_id", "groups", "key"},
    "kafka.member_id": {"member_id"},
    "kafka.generation_id": {"generation_id", "generation_id_or_member_epoch"},
    "kafka.session_timeout": {"session_timeout_ms"},
    "kafka.rebalance_timeout": {"rebalance_timeout_ms"},
    "kafka.host": {"host"},
    "kafka.port": {"port"},
    "kafka.leader_id": {"leader_id"},
    "kafka.max_wait_time": {"max_wait_ms"},
    "kafka.min_bytes": {"min_bytes"},
    "kafka.protocol_type": {"protocol_type"},
    "kafka.api_versions.api_key": {"api_key"},
    "kafka.api_versions.min_version": {"min_version"},
    "kafka.api_versions.max_version": {"max_version"},
    "kafka.transactional_id": {"transactional_id", "v3_and_below_transactional_id"},
    "kafka.producer_id": {"producer_id", "v3_and_below_producer_id"},
    "kafka.producer_epoch": {"producer_epoch", "v3_and_below_producer_epoch"},
}
"""tshark's field -> our names of it; topic names go by their mark."""

LEFT_OUT = {
    # tshark shows the headers of record batches under the same names.
    ("ProduceRequest", "kafka.producer_id"),
    ("ProduceRequest", "kafka.producer_epoch"),
    ("FetchResponse", "kafka.producer_id"),
    ("FetchResponse", "kafka.producer_epoch"),
}
"""(message, tshark's field) that stands for something else there."""

MESSAGE_SETS = {"ProduceRequest": range(3), "FetchResponse": range(4)}
"""Versions that carry message sets, which tshark 4.0 reads wrongly: it loses partitions behind
one."""


def collected(wire: Wire, value: Any, names: set[str]) -> Iterator[str]:
    """All values of fields with one of these names, as tshark prints them."""
    if value is None:
        return
    if isinstance(wire, ArrayWire):
        for each in value:
            yield from collected(wire.element, each, names)
    elif isinstance(wire, StructWire):
        for slot in (*wire.slots, *wire.tags):
            inner = value[slot.name]
            topic = "kafka.topic_name" in names and slot.field.entity == "topicName"
            if (topic or slot.name in names) and not _has_structs(slot.wire):
                for each in inner if isinstance(inner, list) else [inner]:
                    yield "" if each is None else str(each)
            else:
                yield from collected(slot.wire, inner, names)


def _has_structs(wire: Wire) -> bool:
    return isinstance(wire, StructWire) or (
        isinstance(wire, ArrayWire) and isinstance(wire.element, StructWire)
    )


def theirs(path: Path, scratch: Path) -> Iterator[tuple[int, Counter[tuple[str, str]]]]:
    """Packet number and fields of every message on which tshark reports nothing odd."""
    command = ["tshark", "-n", "-r", str(path), "-d", "tcp.port==9092-9295,kafka"]
    command += ["-Y", "kafka", "-T", "pdml"]
    with scratch.open("wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=True)
    for _, element in ET.iterparse(scratch):
        if element.tag != "packet":
            continue
        number = int(element.findall("proto/field[@name='num']")[0].get("show", ""))
        for message in element.findall("proto[@name='kafka']"):
            fields = [(f.get("name", ""), f.get("show", "")) for f in message.iter("field")]
            if not any(name.startswith("_ws.") for name, _ in fields):
                yield number, Counter(fields)
        element.clear()


def ours(path: Path) -> dict[tuple[int, str, str], Decoded]:
    """(last packet, correlation id, side) -> the message, as tshark places it."""
    found: dict[tuple[int, str, str], Decoded] = {}
    with open_capture([path]) as capture:
        for exchange in capture.exchanges():
            for side, half in (("request", exchange.request), ("response", exchange.response)):
                if half is not None and half.decoded is not None:
                    packet = half.frame.parts[-1].packet
                    found[packet, str(exchange.correlation_id), side] = half.decoded
    return found


# Its dissector of ZooKeeper's protocol is no authority.
@pytest.mark.parametrize(
    "path",
    each_nth([each for each in SAMPLES if each.stem != "zookeeper"], 4),
    ids=lambda path: path.stem,
)
def test_values_are_those_of_tshark(path: Path, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        assert not os.environ.get("CI"), "tshark is missing"
        pytest.skip("tshark is not installed")
    known, compared, different = ours(path), 0, []
    for packet, fields in theirs(path, tmp_path / "out.pdml"):
        their = dict(fields.keys())
        correlation = their.get("kafka.correlation_id", "")
        side = "request" if "kafka.api_version" in their else "response"
        message = known.get((packet, correlation, side))
        if message is None:
            continue
        if message.version in MESSAGE_SETS.get(message.message, ()):
            continue
        version = their.get("kafka.api_version") or their.get("kafka.response.version")
        assert (str(message.version), message.message) == (version, message.message)
        for name, names in {**NAMES, "kafka.topic_name": {"kafka.topic_name"}}.items():
            if (message.message, name) in LEFT_OUT:
                continue
            wanted = Counter({v: n for (f, v), n in fields.items() if f == name})
            have = Counter(collected(message.layout.body, message.body, names))
            have.pop("", None)
            for nothing in ("", "[ Null ]"):
                wanted.pop(nothing, None)
            compared += sum(wanted.values())
            if wanted and have != wanted:
                different.append((message.message, message.version, packet, name, have, wanted))
    print(f"\n{path.stem}: {compared} values compared")
    assert different == []
    assert compared > 0
