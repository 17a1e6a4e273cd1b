"""Where the broker is: a fixture of this name tells `kafka_capture`. Here, the environment does."""

import os

import pytest


@pytest.fixture
def kafka_bootstrap() -> str:
    """HOST:PORT of a broker for tests."""
    return os.environ["KAFKA_BOOTSTRAP"]
