"""Addresses that mean all interfaces, in every spelling."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.proxy.hosts import is_wildcard
from kafkascope.proxy.serve.cli import serve


@pytest.mark.parametrize(
    "host",
    ["0", "0x0", "0.0", "00.0.0.0", "0.0.0.0", "::", "::0", "0:0::0", "::ffff:0.0.0.0", "*", ""],
)
def test_every_spelling_of_all_interfaces_is_one(host: str) -> None:
    assert is_wildcard(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "10.0.0.1", "127.1", "a..b"])
def test_one_interface_is_not_all(host: str) -> None:
    assert not is_wildcard(host)


def test_a_name_is_what_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", ("127.0.0.1" if host == "here" else "0.0.0.0", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert is_wildcard("all.example")
    assert not is_wildcard("here")


@pytest.mark.parametrize("listen", ["0:0", "0.0.0.0:0", "[::]:0", "0x0:0"])
def test_serve_wants_to_be_told(listen: str) -> None:
    done = CliRunner().invoke(serve, ["missing.pcap", "--listen", listen])
    assert done.exit_code == 2
    assert "--expose" in done.output
