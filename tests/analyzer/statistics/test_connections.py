"""What connections tell of their TLS is what tshark sees."""

import json
from typing import Any

import pytest

from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.captures.tls.begin import ALERTS
from tests.kit.counting import count_capture
from tests.kit.samples import TLS

TRUTHS = sorted(TLS.glob("*.truth.json"))


@pytest.fixture(params=TRUTHS, ids=[path.name.partition(".")[0] for path in TRUTHS])
def truth(request: pytest.FixtureRequest) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(request.param.read_text())
    return told


def lines_of(truth: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The line of each connection, by the client's port."""
    keys = [] if truth.get("keys_inside") else [TLS / truth["keys"]]
    found = Connections()
    count_capture(TLS / truth["capture"], found, keylog=keys)
    again = Connections().load(json.loads(json.dumps(found.dump())))
    assert again.rows() == found.rows()
    return {int(line["client_address"].rpartition(":")[2]): line for line in found.rows()}


def alerts_of(told: dict[str, Any]) -> list[str]:
    """Alerts but for close_notify, as our lines have them."""
    found = [(side, int(number)) for side, number in map(str.split, told["alerts"])]
    sides = {"client": "client", "server": "broker"}
    return [f"{sides[side]}: {ALERTS[number]}" for side, number in found if number]


def test_the_handshake_and_what_was_decrypted(truth: dict[str, Any]) -> None:
    lines = lines_of(truth)
    for told in truth["tls_connections"]:
        line = lines[told["client_port"]]
        if told.get("version"):
            assert line["tls"] == f"{told['version']} {told['cipher_suite']}"
            assert line["resumed"] == told["resumed"]
        if told["decrypted"]:
            sizes = told["app_bytes"]["client_to_server"], told["app_bytes"]["server_to_client"]
            ours = line["tls_sent"], line["tls_received"]
            if line["gap_bytes"]:
                # Behind a hole tshark reads no more.
                assert all(our >= size for our, size in zip(ours, sizes, strict=True))
            else:
                assert ours == sizes
            assert line["tls_alerts"] == alerts_of(told)
        elif told["tcp_handshake_seen"]:
            assert not line["tls_sent"]
    readable = [line for line in lines.values() if not line["tls_error"]]
    assert sum(line["tls_updates"] for line in readable) == truth["tls"]["key_updates"]
