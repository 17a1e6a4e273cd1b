"""The examples of docs/scapy.md give what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_examples_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    # The fences of Markdown are no part of what is expected.
    text = (
        (ROOT / "docs" / "scapy.md")
        .read_text("utf-8")
        .replace("```python\n", "")
        .replace("```", "")
    )
    test = doctest.DocTestParser().get_doctest(text, {}, "scapy.md", "docs/scapy.md", 0)
    assert len(test.examples) > 12
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert "".join(said) == ""
