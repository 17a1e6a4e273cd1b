"""A broker's certificate, for handshakes in memory."""

from pathlib import Path

import pytest

from tests.kit.authority import Authority


@pytest.fixture(scope="session")
def broker(authority: Authority) -> Path:
    return authority.issue("broker", "127.0.0.1")
