"""Encrypted traffic on loopback is read while it passes; the key log comes after the packets."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.kit.authority import Authority
from tests.kit.wire import beat, heartbeat

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        os.geteuid() != 0 or not (shutil.which("tcpdump")),
        reason="captures on lo: needs root and tcpdump",
    ),
]
COUNT = 5
WAIT = 30.0


def test_rows_come_when_a_client_has_written_its_secrets(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem, written, late = authority.issue("localhost"), tmp_path / "written.log", tmp_path / "late"
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    asking = ssl.create_default_context(cafile=authority.certificate)
    asking.check_hostname = False
    asking.keylog_filename = str(written)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        dump = subprocess.Popen(
            [
                *("tcpdump", "-i", "lo", "-U", "--immediate-mode", "-s", "0", "-w", "-"),
                *("tcp", "port", str(port)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        command = [sys.executable, "-P", "-m", "kafkascope.tui.cli", "ls", "-", "--json"]
        listing = subprocess.Popen(
            [*command, "--keylog", str(late)], stdin=dump.stdout, stdout=subprocess.PIPE
        )
        timer = threading.Timer(WAIT, listing.kill)
        timer.start()
        try:
            assert dump.stderr is not None
            assert b"listening" in dump.stderr.readline()

            def serve() -> None:
                with serving.wrap_socket(listener.accept()[0], server_side=True) as server:
                    for number in range(COUNT):
                        server.recv(4096)
                        server.send(beat(number))
                    server.recv(1)

            threading.Thread(target=serve, daemon=True).start()
            with asking.wrap_socket(socket.create_connection(("127.0.0.1", port))) as client:
                for number in range(COUNT):
                    client.send(heartbeat(number))
                    client.recv(4096)
                written.rename(late)
                assert listing.stdout is not None
                rows = [json.loads(listing.stdout.readline()) for _ in range(COUNT)]
            assert [row["correlation_id"] for row in rows] == list(range(COUNT))
            assert {row["api"] for row in rows} == {"Heartbeat"}
        finally:
            dump.terminate()
            dump.wait()
            listing.communicate()
            timer.cancel()
            if dump.stdout is not None:
                dump.stdout.close()
            if dump.stderr is not None:
                dump.stderr.close()
