"""No output with redaction holds anything of what people wrote into a message: every text, bytes
field and uuid of every version of every message has a word of its own, and none is found again."""

from pathlib import Path

import pytest

from kafkascope.analyzer.transform.redaction import Redaction
from kafkascope.dissectors.registry import APIS, decode_request, decode_response
from tests.analyzer import unique_words
from tests.analyzer.unique_words import FORMS, Filler, leaks, leaks_of_capture, redacted_outputs

KEYS = sorted(APIS)
PARTS = 8
"""APIs are spread over captures, so that a leak is told with few others around it."""


@pytest.mark.parametrize("form", FORMS)
def test_no_word_of_any_message_is_left(form: str) -> None:
    redaction, filler = Redaction("all"), Filler(form)
    pairs = 0
    for key, version, asked, answer in unique_words.exchanges(filler, KEYS):
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
            assert unique_words.leaks_of_records(each.body) == set()
    assert pairs > 350
    assert filler.count > 3_500


@pytest.fixture(scope="module", params=range(PARTS))
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "qz999999k.pcapng"
    assert unique_words.write_capture(path, Filler(), KEYS[request.param :: PARTS])
    assert len(leaks(path.read_bytes())) > 200
    return path


def test_no_word_is_left_in_any_output(capture: Path, tmp_path: Path) -> None:
    found = {name: leaks(data) for name, data in redacted_outputs(capture, tmp_path)}
    assert len(found) > 20
    assert not any(found.values())
    assert leaks_of_capture(tmp_path / "cut.pcapng") == []
