"""`kafkascope open`: what it takes, and what it passes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.tui.cli import main
from kafkascope.tui.open import open_, tab_words

SAMPLE = Path(__file__).parents[2] / "captures" / "samples" / "libraries.pcap"


def test_a_key_log_that_is_not_there_is_told_before_the_screen_is_taken() -> None:
    done = CliRunner().invoke(main, ["open", str(SAMPLE), "--keylog", "no-such.keys"])
    assert done.exit_code == 3
    assert done.output == "kafkascope: no-such.keys: no such file or folder\n"


def test_every_tab_gets_the_options_that_all_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.avsc").write_text('"string"')
    words = ["-Y", "api == Fetch", "-d", "tcp.port==9093,kafka", "--keylog", "a.keys"]
    words += ["--keylog", "env", "-t", "u", "--legs", "both", "--plain"]
    Path("a").mkdir()
    Path("b").mkdir()
    words += ["--schemas", "a", "--schemas", "b", "--schema", "t:key=x.avsc", "--no-schemas"]
    words += ["--registry", "http://localhost:8081", "--registry-ca", "ca.pem"]
    given = open_.make_context("open", [*words, "x.pcap"]).params
    again = open_.make_context("open", tab_words(given)[1:]).params
    assert {**again, "tab": False} == given
