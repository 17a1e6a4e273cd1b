"""Conversations with ZooKeeper without end, in small: every attack is read, told and cut."""

from pathlib import Path

import pytest

from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.zookeeper import paths
from kafkascope.dissectors.zookeeper.paths import place_of
from tests.explosion.attacks import ATTACKS
from tests.kit.run import run

NAMES = [name for name in ATTACKS if name.startswith("ZooKeeper")]
COMMANDS = ("stats zookeeper", "check", "groups", "cluster", "show --json -Y number>0")


@pytest.mark.parametrize("name", NAMES)
def test_attacks_are_read(name: str, tmp_path: Path) -> None:
    path, out = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    ATTACKS[name].write(path, ATTACKS[name].make(60))
    for command in COMMANDS:
        result = run(*command.split(), path)
        assert result.exit_code in (0, 1), result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
    read = [run("ls", path, "--json").output]
    cut = run("cut", path, "--anonymize", "-o", out)
    assert cut.exit_code == 0, cut.output
    read.append(run("ls", out, "--json").output)
    before, after = (each.count('"protocol":"zookeeper"') for each in read)
    assert before == after > 0


@pytest.mark.timeout(10)
def test_a_path_of_many_words_of_kafka_is_matched_once() -> None:
    # Each of its parts may be where a chroot ends; a megabyte took minutes.
    path = "/config" * 150_000
    place = place_of(path)
    assert not place.what
    assert len(place.steps) == 150_000
    assert (
        place_of("/config" * 50_000 + "/config/topics/t").what == place_of("/config/topics/t").what
    )
    assert place_of("/config" * 50_000 + "/config/topics/t").first("topicName") == "t"


def test_long_paths_are_not_remembered() -> None:
    paths._kept_place.cache_clear()
    for number in range(10):
        place_of(f"/{number}" + "/a" * LIMITS.znode_path_chars)
    assert paths._kept_place.cache_info().currsize == 0
