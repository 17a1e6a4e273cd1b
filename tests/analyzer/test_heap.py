"""Where large pieces of memory are."""

import pytest

from kafkascope.analyzer.heap import large_apart


def test_a_c_library_without_the_setting_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    large_apart(1 << 20)
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    large_apart(1 << 20)
