"""An upstream at which no broker answers is reported at the start, and the proxy stays."""

from __future__ import annotations

import socket

import pytest

from kafkascope.proxy.engine.directory import Address, reason, unanswered


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_refused_and_unresolved_upstreams_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection

    def connected(address: tuple[str, int], timeout: float) -> socket.socket:
        if address[0] == "nosuch.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return connect(address, timeout)

    monkeypatch.setattr(socket, "create_connection", connected)
    port = free_port()
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = Address("127.0.0.1", server.getsockname()[1])
        addresses = [there, Address("127.0.0.1", port), Address("nosuch.example", 9092)]
        unanswered(addresses, said.append)
    assert said == [
        f"no broker answers at 127.0.0.1:{port} (connection refused)",
        "no broker answers at nosuch.example:9092 (name or service not known)",
    ]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "connection refused"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed"), "connection refused"),
        (TimeoutError(), "timed out"),
        (OSError(113, "x"), "no route to host"),
        (OverflowError("port must be 0-65535"), "port must be 0-65535"),
    ],
)
def test_reasons_are_words_of_the_system(error: Exception, words: str) -> None:
    assert reason(error) == words
