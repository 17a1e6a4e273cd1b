"""Real encrypted traffic, of real clients and brokers, is read as tshark reads it."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.conversation.phases import Phases
from kafkascope.analyzer.exchanges.rows import Row, to_json
from kafkascope.analyzer.identity import identity_of
from kafkascope.captures.model import Tls, TlsSummary
from tests.analyzer.encrypted import differences, read
from tests.kit.samples import TLS, rows_of

TRUTHS = sorted(TLS.glob("*.truth.json"))


@pytest.fixture(params=TRUTHS, ids=[path.name.partition(".")[0] for path in TRUTHS])
def truth(request: pytest.FixtureRequest) -> Any:
    return json.loads(request.param.read_text())


def test_each_connection_holds_what_tshark_decrypts(truth: dict[str, Any]) -> None:
    assert list(differences(TLS / truth["capture"], truth)) == []


def test_without_a_key_log_nothing_is_read_and_that_is_told(truth: dict[str, Any]) -> None:
    found = read(TLS / truth["capture"])
    for told in truth["tls_connections"]:
        tls = found[told["client_port"]].connection.tls
        if truth.get("keys_inside"):
            assert (any(tls.decrypted), tls.error) == (told["decrypted"], "")
        else:
            assert (any(tls.decrypted), tls.error) == (False, "no-key-log")


def test_with_wrong_secrets_nothing_is_read_and_that_is_told(
    truth: dict[str, Any], tmp_path: Path
) -> None:
    if truth.get("keys_inside"):
        return
    wrong = tmp_path / "wrong.keys"
    log = (TLS / truth["keys"]).read_text()
    wrong.write_text(
        re.sub(r"[0-9a-fA-F]$", lambda last: "1" if last[0] == "0" else "0", log, flags=re.M)
    )
    found = read(TLS / truth["capture"], wrong)
    for told in truth["tls_connections"]:
        tls = found[told["client_port"]].connection.tls
        assert not any(tls.decrypted)
        if told["decrypted"]:
            assert tls.error == "bad-secret"


def test_there_is_traffic_of_every_kind() -> None:
    told = [json.loads(path.read_text()) for path in TRUTHS]
    sums = [each["tls"] for each in told]
    assert {version for each in sums for version in each["versions"]} == {"TLS 1.2", "TLS 1.3"}
    kinds = ("resumed_connections", "encrypt_then_mac_connections", "client_certificates_asked")
    for kind in (*kinds, "key_updates", "renegotiations"):
        assert sum(each[kind] for each in sums) > 0
    assert sum("failed" in each for each in told) > 4


def test_without_the_library_a_key_log_inside_is_of_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    found = read(TLS / "tls13-dsb.pcapng.gz")
    errors = {each.connection.tls.error for each in found.values() if each.connection.tls}
    assert errors == {"no-key-log"}


def rows(name: str) -> list[Row]:
    return rows_of(TLS / f"{name}.pcap.gz", keylog=[TLS / f"{name}.keys"])


def test_rows_say_what_they_came_out_of() -> None:
    for row in rows("tls13-mutual"):
        assert row.tls == TlsSummary(
            *("TLS 1.3", "TLS_AES_256_GCM_SHA384"), resumed=False, client="CN=client"
        )
        assert to_json(row)["tls"] == "TLS 1.3 TLS_AES_256_GCM_SHA384"
        assert to_json(row)["tls_sni"] is None
    assert {row.tls.resumed for row in rows("tls12-tickets") if row.tls} == {True, False}


def test_the_owner_of_a_certificate_is_the_user_where_there_is_no_sasl() -> None:
    mutual = rows("tls13-mutual")
    assert {row.user for row in mutual} == {"CN=client"}
    assert {identity_of(row).user for row in mutual if row.api == "ApiVersions"} == {""}
    phases, tls = Phases(), Tls(client="CN=client")
    assert phases.user_within(tls) == "CN=client"
    phases.mechanism = "PLAIN"
    assert phases.user_within(tls) == ""
    phases.user = "alice"
    assert phases.user_within(tls) == "alice"
