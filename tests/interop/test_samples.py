"""The captures that come with the project, against what their clients said when they were made."""

import json
import socket
from pathlib import Path

import pytest

from kafkascope.captures.merge.inputs import open_inputs
from tests.interop.compare import Recording, assert_right
from tests.interop.demo.derive import SHOP
from tests.interop.demo.machines import IN_THE_DEMO, MACHINES
from tests.interop.drivers import Story
from tests.interop.make_samples import BY_HAND, LIMIT_BYTES, LIST, SAMPLES, TRUTH, Sample

BROKER_PORTS = frozenset(
    port + 100 * node for port in (9092, 9093, 9094, 9095) for node in range(3)
)


@pytest.fixture(scope="module", params=LIST, ids=[sample.name for sample in LIST])
def sample(request: pytest.FixtureRequest) -> Sample:
    made: Sample = request.param
    return made


@pytest.fixture(scope="module")
def recording(sample: Sample) -> Recording:
    story = Story.from_json(json.loads((TRUTH / f"{sample.name}.json").read_text()))
    return Recording(SAMPLES / sample.file, BROKER_PORTS, story).read()


def test_all_is_what_the_clients_tell(recording: Recording) -> None:
    assert recording.story.produced
    assert_right(recording)


def test_it_is_small_and_in_the_readme(sample: Sample) -> None:
    assert (SAMPLES / sample.file).stat().st_size < LIMIT_BYTES
    assert f"| {sample.file} |" in (SAMPLES / "README.md").read_text()


def packets_of(path: Path) -> list[tuple[int, bytes]]:
    """(time, bytes) of each."""
    with open_inputs([path]) as source:
        return [(each.time_ns, bytes(each.data)) for each in source.packets()]


def test_the_demo_has_all_packets_of_its_programs_and_no_others() -> None:
    ours = {socket.inet_aton(MACHINES[name]) for name in IN_THE_DEMO}
    demo, shop = (packets_of(path) for path in (SAMPLES / "demo.pcap.zst", SHOP))
    # Ethernet and IPv4 without a tag: source and destination.
    assert demo == [each for each in shop if ours & {each[1][26:30], each[1][30:34]}]
    assert 0 < len(demo) < len(shop)


def test_every_file_has_a_maker() -> None:
    made = {sample.file for sample in LIST} | {"README.md", "demo.pcap.zst", *BY_HAND}
    assert {path.name for path in SAMPLES.iterdir()} == made
