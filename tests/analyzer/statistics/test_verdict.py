"""What breaks on which release, from the facts of releases."""

from typing import Any

import pytest

from kafkascope.analyzer.identity import Identity
from kafkascope.analyzer.statistics.clients import Usage
from kafkascope.analyzer.statistics.verdict import breaks_at, verdict_of


def usage(software: str = "", **versions: list[int]) -> Usage:
    """A client that asks for versions, of a broker that offers many."""
    found = Usage(Identity("app", "10.0.0.4", software, ""))
    found.versions = {api: dict.fromkeys(numbers, 1) for api, numbers in versions.items()}
    found.versions.setdefault("ApiVersions", {3: 1})
    found.offered = dict.fromkeys(found.versions, (0, 13))
    found.total.fresh = 1
    return found


def silent(**versions: list[int]) -> Usage:
    """A client that never asks."""
    found = usage(**versions)
    del found.versions["ApiVersions"]
    return found


def why(found: Usage, release: str) -> str:
    return "; ".join(reason.text for reason in verdict_of(found, release).reasons)


@pytest.mark.parametrize(
    ("found", "release", "word"),
    [
        (usage(Produce=[2]), "3.9", "ok"),
        (usage(Produce=[2]), "4.0", "breaks"),
        (usage(Produce=[3]), "4.0", "ok"),
        # It knows newer ones, too.
        (usage(Fetch=[3, 11]), "4.0", "ok"),
        (silent(Fetch=[3, 11]), "4.0", "breaks"),
        # Versions that were announced to go and stayed.
        (silent(Metadata=[0], FindCoordinator=[0]), "4.0", "ok"),
        # JoinGroup 0 and 1 are missing in 4.0.0 alone.
        (silent(JoinGroup=[1]), "4.0.0", "breaks"),
        (silent(JoinGroup=[1]), "4.0.1", "ok"),
        (silent(JoinGroup=[1]), "4.0", "ok"),
        (silent(JoinGroup=[1]), "4.1", "ok"),
        # A version of ApiVersions that is not there is answered, and asked again.
        (usage(ApiVersions=[99], Metadata=[1]), "2.0", "ok"),
        # Nothing was seen that could break.
        (usage(SaslHandshake=[1]), "4.0", "unclear"),
        (usage(ControlledShutdown=[1]), "4.0", "breaks"),
        (usage(ConsumerGroupHeartbeat=[0]), "2.8", "unclear"),
        (usage(PushTelemetry=[0]), "2.8", "ok"),
        (usage(Fetch=[17]), "2.8", "unclear"),
    ],
)
def test_verdicts(found: Usage, release: str, word: str) -> None:
    assert verdict_of(found, release).word == word


def test_nothing_newer_was_offered_so_nobody_knows() -> None:
    found = usage(Produce=[2])
    found.offered["Produce"] = (0, 2)
    assert verdict_of(found, "4.0").word == "unclear"
    # kafka-go has Fetch 2, 5 and 10.
    other = usage(Fetch=[2])
    other.offered["Fetch"] = (0, 3)
    assert verdict_of(other, "4.0").word == "unclear"
    # Of Kafka's own clients it is known what they can.
    found.identity = found.identity._replace(software="apache-kafka-java 2.4.1")
    assert verdict_of(found, "4.0").word == "ok"
    found.identity = found.identity._replace(software="apache-kafka-java 0.10.2")
    assert verdict_of(found, "4.0").word == "breaks"


def test_a_capture_that_starts_in_the_middle_tells_less() -> None:
    found = silent(Produce=[2])
    found.total.fresh = None
    assert found.negotiates is None
    assert verdict_of(found, "4.0").word == "unclear"


def test_who_did_not_get_through_sasl_was_not_seen_asking() -> None:
    assert silent(SaslHandshake=[0]).negotiates is None
    assert silent(SaslHandshake=[0], Metadata=[0]).negotiates is False


def test_traffic_between_brokers_is_not_judged() -> None:
    found = silent(LeaderAndIsr=[0])
    found.total.roles.add("broker")
    assert verdict_of(found, "4.0").word == "broker"


def test_reasons_name_versions_and_releases() -> None:
    text = why(usage(Produce=[2]), "4.0.0")
    assert "Produce v2" in text
    assert "v3-12" in text
    assert "removed in 4.0.0" in text
    assert "missing in 4.0.0, back in 4.0.1" in why(silent(JoinGroup=[0]), "4.0.0")


@pytest.mark.parametrize(
    ("found", "release"),
    [
        (usage(Produce=[2]), "4.0.0"),
        (silent(JoinGroup=[1]), "4.0.0, not 4.0.1"),
        (usage(Produce=[9]), ""),
    ],
)
def test_the_first_release_that_breaks(found: Usage, release: str) -> None:
    assert breaks_at(found) == release


@pytest.mark.parametrize("text", ["", "four", "4.", "1.2.3.4.5"])
def test_what_is_no_release_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="no Kafka release"):
        verdict_of(usage(), text)
