"""Fixtures against others: Kafka's own classes and kio read all of them, with equal values.

Those of the samples, and the whole generated matrix. What a release or kio does not know (newer or
removed versions) is read by the other release; what none of them knows is counted.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from kio.serial import entity_reader

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.fixtures import Fixture
from kafkascope.analyzer.fixtures.make import Making
from kafkascope.analyzer.fixtures.new import matrix
from kafkascope.analyzer.transform.names.pseudonyms import Pseudonyms
from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire, Wire
from tests.dissectors.codec.kio_bodies import CLASSES, from_kio
from tests.interop.oracle import RENAMED, Oracle, compare
from tests.kit.samples import ROOT

SAMPLES = sorted((ROOT / "captures" / "samples").glob("*.pcap*"))
SAMPLES = [path for path in SAMPLES if path.stem != "zookeeper"]  # Kafka's classes know none of it.
FORMS = ("default", "null", "empty", "full", "tagged")
OTHER_LAYOUT = {("3.9.2", "ReadShareGroupStateSummaryResponse", 0)}
"""Changed later under the same number; 3.9 had it as a preview."""
KAFKA_NAMES = {ours: theirs for theirs, ours in RENAMED.items()}


@cache
def captured() -> list[Fixture]:
    """Every shape of every message in the samples, redacted as by default."""
    made: dict[tuple[int, int, str, str], Fixture] = {}
    for path in SAMPLES:
        making = Making(Redaction("values", Pseudonyms(same_length=True)), captures=[path.name])
        with open_capture([path]) as capture:
            for exchange in capture.exchanges():
                making.add(exchange)
        for each in making.fixtures():
            made.setdefault((each.api_key, each.version, each.direction, each.sha256), each)
    return list(made.values())


@cache
def generated() -> list[Fixture]:
    """The matrix."""
    return list(matrix())


@pytest.fixture(scope="module", params=["3.9.2", "4.4.0"])
def oracle(request: pytest.FixtureRequest, java: None) -> Iterator[Oracle]:
    with Oracle(request.param) as running:
        yield running


@pytest.mark.interop
@pytest.mark.parametrize("made", [captured, generated])
def test_kafka_reads_every_fixture_with_equal_values(oracle: Oracle, made: Any) -> None:
    known = oracle.messages()
    wrong, count = [], 0
    for each in made():
        name = f"{each.api}{each.direction.capitalize()}"
        decoded = each.decoded()
        theirs = name if name in known else KAFKA_NAMES.get(name, name)
        low, high = known.get(theirs, (0, -1))
        if not low <= decoded.version <= high:
            continue
        count += 1
        try:
            header = f"{each.direction.capitalize()}Header"
            head = each.payload[: decoded.body_at]
            agreed(oracle, header, decoded.header_layout, decoded.header, head)
            body = each.payload[decoded.body_at :]
            agreed(oracle, theirs, decoded.layout, decoded.body, body)
        except AssertionError as failure:
            if (oracle.version, name, decoded.version) not in OTHER_LAYOUT:
                wrong.append(f"{each.name} {each.source or ''}: {str(failure)[:300]}")
    assert wrong == [], "\n".join(wrong)
    print(f"{count} of {len(made())} fixtures read by Kafka {oracle.version}")
    assert count > len(made()) * 0.8


@pytest.mark.interop
def test_no_fixture_is_unknown_to_both_releases(java: None) -> None:
    known = []
    for release in ("3.9.2", "4.4.0"):
        with Oracle(release) as running:
            known.append(running.messages())
    unread = []
    for each in [*captured(), *generated()]:
        name = f"{each.api}{each.direction.capitalize()}"
        names = (name, KAFKA_NAMES.get(name, name))
        ranges = [release[n] for release in known for n in names if n in release]
        version = each.decoded().version
        if not any(low <= version <= high for low, high in ranges):
            unread.append(each.name)
    assert unread == []


def agreed(oracle: Oracle, name: str, layout: Layout, body: Body, data: bytes) -> None:
    """Kafka reads these bytes as that body, and writes them again."""
    told = oracle.ask(message=name, version=layout.version, hex=data.hex())
    assert told["ok"], told["error"]
    assert told["left"] == 0
    compare(layout.body, body, told["json"], name)
    assert told["hex"] == data.hex()


def test_every_message_seen_and_every_version_there_is_has_its_fixtures() -> None:
    seen = {(f.api_key, f.version, f.direction) for f in captured()}
    there = {(f.api_key, f.version, f.direction) for f in generated()}
    assert len(seen) > 200
    assert seen <= there
    assert {f.form for f in generated()} == set(FORMS)


@pytest.mark.parametrize("made", [captured, generated])
def test_kio_reads_every_fixture_with_equal_values(made: Any) -> None:
    wrong, count = [], 0
    for each in made():
        decoded = each.decoded()
        cls = CLASSES.get((f"{each.api}{each.direction.capitalize()}", decoded.version))
        if cls is None or each.form == "tagged":
            continue  # kio refuses unknown tags
        count += 1
        try:
            body = each.payload[decoded.body_at :]
            entity, end = entity_reader(cls)(body, 0)
        except Exception as error:
            wrong.append(f"{each.name}: {error!r}")
            continue
        found = from_kio(decoded.layout.body, entity)
        if end != len(body) or found != plain(decoded.layout.body, decoded.body):
            wrong.append(f"{each.name}: {found} is not {decoded.body}")
    assert wrong == [], "\n".join(each[:600] for each in wrong)
    assert count > len(made()) * 0.5


def plain(wire: Wire, value: Any) -> Any:
    """Without unknown tags, which kio does not keep."""
    if isinstance(wire, ArrayWire) and value is not None:
        return [plain(wire.element, each) for each in value]
    if isinstance(wire, StructWire) and value is not None:
        slots = (*wire.slots, *wire.tags)
        return {slot.name: plain(slot.wire, value[slot.name]) for slot in slots}
    return value
