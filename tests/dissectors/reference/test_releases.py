"""Which release has which version."""

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.errors import UnknownApi, UnknownVersion
from kafkascope.dissectors.reference import releases
from kafkascope.dissectors.reference.release_facts import APIS, LATE_TAGS, MESSAGES
from kafkascope.dissectors.reference.releases import RELEASES, Span, has, release_key, since, span
from kafkascope.dissectors.values import Versions


def test_every_version_of_every_message_has_a_release() -> None:
    assert APIS.keys() == {api.name for api in registry.APIS.values()}
    kafkas = {name for name in registry.message_names() if not name.startswith("zk.")}
    assert MESSAGES.keys() == kafkas - {
        f"{api.name}{side}" for api in registry.APIS.values() for side in ("Request", "Response")
    }
    for name in sorted(kafkas):
        versions = registry.message(name).versions
        assert list(releases.spans(name)) == list(range(versions.low, versions.high + 1)), name


def test_versions_come_in_the_order_of_releases() -> None:
    for name in (*APIS, *MESSAGES):
        first = [release_key(found.since) for found in releases.spans(name).values()]
        assert first == sorted(first), name
    assert list(RELEASES) == sorted(RELEASES, key=release_key)


def test_late_tags_are_tagged_fields() -> None:
    for name, tags in LATE_TAGS.items():
        text = repr([registry.layout_of(name, v).body for v in releases.spans(name)])
        for path in tags:
            assert f"Slot(name='{path.rpartition('.')[2]}'" in text


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.8.2.2", "0.9.0.0"),
        ("0.9", "0.10.0.0"),
        ("0.10.1.1", "0.10.2"),
        ("0.10.2.1", "0.10"),
        ("0.11", "1.0"),
        ("2.8.1", "2.8"),
        ("3.9.9", "4.0.0"),
        ("3", "4.0.0"),
        ("4.4.0", "4"),
    ],
)
def test_releases_are_written_as_people_write_them(older: str, newer: str) -> None:
    assert release_key(older) < release_key(newer)
    assert release_key("v3.9.1") == release_key("3.9.1")


@pytest.mark.parametrize("text", ["", "newest", "3.x", "1.2.3.4.5", "-1", "3..1"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no Kafka release"):
        release_key(text)


def test_since() -> None:
    assert since("Fetch", 12) == since("FetchRequest", 12) == since("FetchResponse", 12) == "2.7.0"
    assert since("ProducerSnapshot", 1) == "0.11.0"
    with pytest.raises(UnknownVersion):
        since("Fetch", 99)
    with pytest.raises(UnknownApi):
        since("Fetsh", 0)


def test_a_span_tells_the_whole_life_of_a_version() -> None:
    assert span("JoinGroup", 0) == Span("0.9.0", "0.9.0", "", (("4.0.0", "4.0.1"),))
    assert span("Produce", 2) == Span("0.10.0", "0.10.0", "4.0.0", ())
    assert span("InitProducerId", 6).stable == releases.NEVER


@pytest.mark.parametrize(
    ("name", "version", "release", "there"),
    [
        ("Fetch", 12, "2.6.3", False),
        ("Fetch", 12, "2.7.0", True),
        ("Fetch", 3, "3.9", True),
        ("Fetch", 3, "4.0.0", False),
        ("Fetch", 99, "4.0.0", False),
        ("JoinGroup", 0, "3.9.1", True),
        ("JoinGroup", 0, "4.0.0", False),
        ("JoinGroup", 0, "4.0.1", True),
        ("JoinGroup", 0, "4.0", True),
        ("Metadata", 2, "0.10.0.1", False),
        ("Metadata", 2, "0.10.1.0", True),
        ("Metadata", 2, "0.10", True),
        ("OffsetCommit", 9, "3.6.2", False),  # there, but not finished
        ("OffsetCommit", 9, "3.7.0", True),
        ("InitProducerId", 6, "4.4.0", False),
    ],
)
def test_whether_a_release_has_a_version(
    name: str, version: int, release: str, there: bool
) -> None:
    assert has(name, version, release) is there


def test_unfinished_versions_count_when_asked_for() -> None:
    assert has("InitProducerId", 6, "4.4.0", unstable=True)
    assert has("OffsetCommit", 9, "3.6.0", unstable=True)
    assert not has("OffsetCommit", 9, "3.5.2", unstable=True)


def versions_in(release: str, *, listener: str = "", unstable: bool = False) -> dict[str, Versions]:
    """The versions in a release by API; of one kind of listener, or of all."""
    return {
        name: versions
        for name, facts in APIS.items()
        if (not listener or listener in facts.listeners.split())
        and (versions := releases.versions_of(name, release, unstable=unstable)) is not None
    }


def test_the_versions_in_a_release() -> None:
    old = versions_in("0.8.0")
    assert {name: str(versions) for name, versions in old.items()} == {
        "Produce": "0",
        "Fetch": "0",
        "ListOffsets": "0",
        "Metadata": "0",
        "LeaderAndIsr": "0",
        "StopReplica": "0",
        "UpdateMetadata": "0",
        "ControlledShutdown": "0",
    }
    new = versions_in("4.0")
    assert str(new["Produce"]) == "3-12"
    assert str(new["Fetch"]) == "4-17"
    assert "LeaderAndIsr" not in new
    assert "Vote" not in versions_in("4.0", listener="broker")
    assert "Vote" in versions_in("4.0", listener="controller")
    assert "LeaderAndIsr" not in versions_in("3.9", listener="broker")
    assert str(versions_in("3.9", unstable=True)["ShareFetch"]) == "0"
    assert "ShareFetch" not in versions_in("3.9")


def test_a_major_release_is_the_newest_of_its_lines() -> None:
    for major in ("2", "v3", "4"):
        name = releases.known_release(major)
        assert name.count(".") == 1
        assert name.startswith(major.removeprefix("v") + ".")
        older = major.removeprefix("v")
        assert releases.versions_of("Fetch", name) == releases.versions_of("Fetch", older)
