"""Whatever a capture is like, fixture, cut and diff end with a sentence and an exit code."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.fixtures.check import check
from kafkascope.analyzer.fixtures.folder import read
from kafkascope.tui.cli import main
from tests.analyzer.broken import HELLO, HUGE, broken, conversation, heard_from
from tests.kit.samples import SAMPLES


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


@settings(max_examples=25)
@given(data=broken())
def test_fixtures_of_anything_are_what_they_say(folder: Path, data: bytes) -> None:
    (folder / "a.pcap").write_bytes(data)
    shutil.rmtree(folder / "f", ignore_errors=True)
    result = run("fixture", folder / "a.pcap", "-o", folder / "f")
    assert result.exit_code in (0, 1, 3, 4), result.output
    assert result.exit_code == 0 or result.output
    if (folder / "f").exists():
        assert [remark for each in read(folder / "f") for remark in check(each)] == []


@settings(max_examples=25)
@given(data=broken(), anonymous=st.booleans())
def test_a_cut_of_anything_is_a_capture(folder: Path, data: bytes, anonymous: bool) -> None:
    (folder / "a.pcap").write_bytes(data)
    (folder / "cut.pcapng").unlink(missing_ok=True)
    options = ["--anonymize"] if anonymous else []
    result = run("cut", folder / "a.pcap", "-o", folder / "cut.pcapng", *options)
    assert result.exit_code in (0, 1, 3, 4), result.output
    if (folder / "cut.pcapng").exists():
        assert run("ls", folder / "cut.pcapng", "-q").exit_code in (0, 1, 3)


@settings(max_examples=15)
@given(data=broken())
def test_anything_can_be_compared(folder: Path, data: bytes) -> None:
    (folder / "a.pcap").write_bytes(data)
    for pair in ((folder / "a.pcap", SAMPLES / "sasl-old.pcap"), (folder / "a.pcap",) * 2):
        result = run("diff", *pair, "--side", "both")
        assert result.exit_code in (0, 1, 3, 4), result.output


def test_the_sentence_says_what_is_wrong(tmp_path: Path) -> None:
    sample = (SAMPLES / "transactions.pcap").read_bytes()
    cases = {
        "tls": (conversation((0, HELLO), (1, HELLO)), "TLS"),
        "one way": (heard_from(sample, broker=True), "requests"),
        "huge": (conversation((0, HUGE + bytes(40))), ""),
        "nothing": (b"", ""),
        "text": (b"just some words, no capture at all" * 3, ""),
    }
    for name, (data, word) in cases.items():
        path = tmp_path / f"{name}.pcap"
        path.write_bytes(data)
        for command in (
            ("cut", path, "-o", tmp_path / "c"),
            ("fixture", path, "-o", tmp_path / "f"),
        ):
            result = run(*command)
            assert result.output.strip(), (name, command)
            assert "Traceback" not in result.output
            assert word in result.output, (name, result.output)
