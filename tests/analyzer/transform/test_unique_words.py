"""No output with redaction holds anything of what people wrote into a message: every text, bytes
field and uuid of every version of every message has a word of its own, and none is found again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.dissectors.registry import APIS, decode_request, decode_response
from kafkascope.tui.cli import main
from tests.analyzer.unique_words import (
    FORMS,
    Filler,
    exchanges,
    leaks,
    leaks_of_capture,
    leaks_of_records,
    write_capture,
)

KEYS = sorted(APIS)
PARTS = 8
"""APIs are spread over captures, so that a leak is told with few others around it."""


@pytest.mark.parametrize("form", FORMS)
def test_no_word_of_any_message_is_left(form: str) -> None:
    redaction, filler = Redaction("all"), Filler(form)
    pairs = 0
    for key, version, asked, answer in exchanges(filler, KEYS):
        pairs += 1
        for found in (redaction.request(asked), redaction.response(answer, key, version)):
            assert found is not None, (APIS[key].name, version)
            assert leaks(found) == [], (APIS[key].name, version)
        request = redaction.request(asked) or b""
        decoded = (
            decode_request(request),
            decode_response(redaction.response(answer, key, version) or b"", key, version),
        )
        for each in decoded:
            assert leaks_of_records(each.body) == set()
    assert pairs > 350
    assert filler.count > 3_500


@pytest.fixture(scope="module", params=range(PARTS))
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "qz999999k.pcapng"
    assert write_capture(path, Filler(), KEYS[request.param :: PARTS])
    assert len(leaks(path.read_bytes())) > 200
    return path


def run(*words: str) -> None:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 0, result.output


def test_no_word_is_left_in_a_cut(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "cut.pcapng"
    run("cut", str(capture), "--anonymize", "-o", str(target))
    assert leaks_of_capture(target) == []


def test_no_word_is_left_in_fixtures(capture: Path, tmp_path: Path) -> None:
    folder, lines = tmp_path / "made", tmp_path / "made.jsonl"
    run("fixture", str(capture), "--redact", "all", "-o", str(folder))
    run("fixture", str(capture), "--redact", "all", "-o", str(lines))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    for path in (*files, lines):
        assert leaks(path.read_bytes()) == [], path.name


@pytest.mark.parametrize("suffix", ["html", "md"])
def test_no_word_is_left_in_a_report(capture: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"report.{suffix}"
    run("report", str(capture), "--redact", "all", "-o", str(target))
    assert leaks(target.read_bytes().replace(b"\\", b"")) == []
    run("report", str(capture), "--redact", "all", "--full", "-o", str(target))
    text = target.read_bytes().replace(b"\\", b"")
    assert b"Fetch" in text or b"Clients" in text
    assert leaks(text) == []
