"""Kafka over TLS by real clients: what we decrypt is what tshark decrypts with the same key log,
and exchanges and records are what the clients did."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.analyzer.encrypted import differences
from tests.interop.compare import kafkascope
from tests.interop.needs import need
from tests.interop.tls_cases import CASES, Case, Made, Maker

pytestmark = [pytest.mark.interop, pytest.mark.tshark]

QUICK = (
    *("tls13-java", "tls13-librdkafka", "tls13-kafka-python", "tls13-kafkajs", "tls13-sasl"),
    *("tls13-psk", "tls13-keyupdate-broker", "tls13-ccm", "tls13-midstream", "tls12-java"),
    *("tls12-mutual", "tls12-session-ids", "tls12-tickets", "tls12-renegotiation"),
    *("tls12-rsa-premaster", "failed13-expired", "failed12-no-certificate"),
)
"""One of each client, version and habit; suites are in the others."""
FAILED = [case for case in CASES.values() if case.cause]
DECRYPTED = [case for case in CASES.values() if not case.cause]


def _parameters(cases: list[Case]) -> list[Any]:
    soak = pytest.mark.soak
    return [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK else soak) for case in cases
    ]


@pytest.fixture(scope="module")
def made(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Made]]:
    """The capture of a case, made at first use."""
    need("tcpdump", "tshark", "editcap", "openssl")
    with Maker(tmp_path_factory.mktemp("tls")) as maker:
        yield maker.of


@pytest.mark.parametrize("case", _parameters(DECRYPTED))
def test_each_connection_holds_what_tshark_decrypts(
    made: Callable[[str], Made], case: Case
) -> None:
    one = made(case.name)
    assert sum(c["decrypted"] for c in one.truth["tls_connections"]) > 1
    assert list(differences(one.capture, one.truth)) == []


@pytest.mark.parametrize(
    "case", _parameters([case for case in DECRYPTED if case.change not in ("loss", "missing-key")])
)
def test_exchanges_and_records_are_what_clients_did(
    made: Callable[[str], Made], case: Case
) -> None:
    one = made(case.name)
    options = [] if one.truth.get("keys_inside") else ["--keylog", one.keys]
    exchanges = kafkascope("ls", one.capture, *options, "--json")
    assert [
        e for e in exchanges if e["state"] in ("orphan", "opaque") and not _midstream(case)
    ] == []
    # The capture may begin between a request and its response; of TLS 1.2 nobody reads such
    # connections at all.
    fine = {"surplus", "orphan"} if _midstream(case) else {"surplus"}
    unread = {c["client_port"] for c in one.truth["tls_connections"] if not c["decrypted"]}
    exchanges = [e for e in exchanges if e["state"] != "opaque" or _port(e) not in unread]
    assert [e for e in exchanges for u in e["undecoded"] if u["reason"] not in fine] == []
    counted = Counter((_port(e), f"{e['api_key']} v{e['api_version']}") for e in exchanges)
    for told in one.truth["tls_connections"]:
        if told["decrypted"]:
            for api, count in told["kafka_frames"]["requests_by_api_key"].items():
                assert counted.pop((told["client_port"], api)) == count
    assert not counted or _midstream(case)
    records = kafkascope("records", one.capture, *options, "--json")
    sources = {"produce": "produce", "consume": "fetch"}
    assert one.truth["steps"]
    for step in one.truth["steps"]:
        seen = {
            (r["partition"], r["offset"], _text(r["key"]), _text(r["value"]))
            for r in records
            if r["source"] == sources[step["do"]] and r["topic"] == step["topic"]
        }
        assert {tuple(row[:4]) for row in step["records"]} <= seen


@pytest.mark.parametrize("case", _parameters(FAILED))
def test_a_handshake_that_fails_gives_no_exchanges_and_no_reason_of_ours(
    made: Callable[[str], Made], case: Case
) -> None:
    one = made(case.name)
    options = ["--keylog", one.keys]
    if case.cause not in ("plain-to-tls", "tls-to-plain"):
        assert kafkascope("ls", one.capture, *options, "--json") == []
    table = kafkascope("stats", "connections", one.capture, *options, "--json")
    assert {_port(c) for c in table} >= {c["client_port"] for c in one.truth["tls_connections"]}


def test_another_service_is_decrypted_and_gives_no_exchanges(made: Callable[[str], Made]) -> None:
    one = made("tls13-https")
    assert list(differences(one.capture, one.truth)) == []
    assert kafkascope("ls", one.capture, "--keylog", one.keys, "--json") == []


def test_early_data_is_decrypted(made: Callable[[str], Made]) -> None:
    one = made("tls13-early-data")
    assert list(differences(one.capture, one.truth)) == []
    exchanges = kafkascope("ls", one.capture, "--keylog", one.keys, "--json")
    assert [e["api"] for e in exchanges] == ["ApiVersions", "Metadata"]


def _midstream(case: Case) -> bool:
    return case.name.endswith("midstream")


def _port(row: dict[str, Any]) -> int:
    return int(row["client_address"].rpartition(":")[2])


def _text(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
