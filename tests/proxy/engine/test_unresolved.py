"""An upstream without an address is told at the start, and the proxy stays."""

from __future__ import annotations

import re
import socket
import threading

import pytest

from kafkascope.proxy import cli
from kafkascope.proxy.engine.directory import Address


def test_a_name_without_an_address_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def nobody(host: str, port: int, **more: object) -> list[object]:
        asked.append((host, port))
        if host == "known":
            return []
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    before = set(threading.enumerate())
    cli._look_up([Address("known", 9092), Address("nosuch.example", 9092)])
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert asked == [("known", 9092), ("nosuch.example", 9092)]
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"upstream nosuch\.example:9092: Name or service not known; .* again", line)
