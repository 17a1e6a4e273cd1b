"""docs/coverage.md is what docs/print_coverage.py prints."""

from __future__ import annotations

from docs.print_coverage import TARGET, document, load
from kafkascope.dissectors import registry


def test_the_committed_document_is_the_printed_one() -> None:
    assert TARGET.read_text() == document(load())


def test_what_was_met_is_declared() -> None:
    for name, version in load():
        assert version in registry.api_named(name).versions
