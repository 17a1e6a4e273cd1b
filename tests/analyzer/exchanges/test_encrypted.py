"""Real encrypted traffic, of real clients and brokers, is read as tshark reads it."""

import gzip
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.conversation.phases import Phases
from kafkascope.analyzer.exchanges.offline import open_capture
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


# --- encrypted traffic is read while it comes -----------------------------------------------------


NAME = "tls13-mutual"
WAIT = 40.0


def packets(name: str = NAME) -> bytes:
    return gzip.decompress((TLS / f"{name}.pcap.gz").read_bytes())


def secrets(name: str = NAME) -> str:
    return (TLS / f"{name}.keys").read_text()


def expected(name: str = NAME) -> list[str]:
    """The rows, by what a stream has in common with a file."""
    with open_capture([TLS / f"{name}.pcap.gz"], keylog=[TLS / f"{name}.keys"]) as found:
        return sorted(f"{each.api} {each.correlation_id}" for each in found.exchanges() if each.api)


class Listing:
    """`kafkascope ls -` with a pipe, and its lines."""

    def __init__(self, log: Path) -> None:
        command = [sys.executable, "-P", "-m", "kafkascope.tui.cli", "ls", "-", "--json"]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([*command, "--keylog", str(log)], **pipes)
        self.timer = threading.Timer(WAIT, self.process.kill)
        self.timer.start()
        self.rows: list[dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def take(self, count: int) -> None:
        """Wait for so many rows."""
        for _ in range(count):
            line = self.process.stdout.readline()
            if not line:
                said = self.process.communicate()[1].decode()
                raise AssertionError(f"ended with {self.process.returncode}: {said} {self.rows}")
            self.rows.append(json.loads(line))

    def end(self, *, interrupt: bool = False) -> str:
        """End the input; return what was said."""
        if interrupt:
            time.sleep(1)  # it is told a row at a time, and then waits for packets
            self.process.send_signal(signal.SIGINT)
        out, said = self.process.communicate()
        self.rows += map(json.loads, out.splitlines())
        return said.decode()

    def close(self) -> None:
        self.timer.cancel()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The key log, which is not there yet."""
    return tmp_path / "keys.log"


@pytest.fixture
def listing(log: Path) -> Iterator[Listing]:
    made = Listing(log)
    yield made
    made.close()


def told(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(f"{row['api']} {row['correlation_id']}" for row in rows if row["api"])


def test_rows_come_when_the_secrets_do_though_nothing_else_comes(
    log: Path, listing: Listing
) -> None:
    listing.send(packets())
    lines = secrets().splitlines(keepends=True)
    for begin, end in ((0, 1), (1, 2), (2, len(lines))):
        with log.open("a") as file:
            file.write("".join(lines[begin:end]))
    wanted = expected()
    listing.take(len(wanted))  # the pipe is open, and silent
    assert listing.process.poll() is None
    assert told(listing.rows) == wanted
    numbers = [row["number"] for row in listing.rows]
    assert sorted(numbers) == sorted(set(numbers))
    assert "no such file" not in listing.end()


@pytest.mark.parametrize("interrupt", [False, True])
def test_what_still_waits_at_the_end_is_told(log: Path, listing: Listing, interrupt: bool) -> None:
    log.write_text(secrets("tls13-missing-key"))
    listing.send(packets("tls13-missing-key"))
    wanted = expected("tls13-missing-key")
    listing.take(len(wanted))
    assert told(listing.rows) == wanted
    listing.end(interrupt=interrupt)
    left = [row for row in listing.rows if not row["api"]]
    assert left
    assert all("waited for until the capture ended" in row["reason"] for row in left)


def test_a_key_log_that_never_came_is_named(log: Path, listing: Listing) -> None:
    listing.send(packets())
    assert f"{log}: no such file or folder" in listing.end()


def test_of_a_file_on_disk_the_log_is_read_once(log: Path) -> None:
    with pytest.raises(Exception, match="no such file"):
        open_capture([TLS / f"{NAME}.pcap.gz"], keylog=[log])
    with open_capture([TLS / f"{NAME}.pcap.gz"], keylog=[TLS / f"{NAME}.keys"]) as capture:
        assert not capture.context.keys.growing
        assert capture.source.patience is None
