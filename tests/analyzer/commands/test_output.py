"""A file that is read is never opened to write."""

import json
import shutil
from pathlib import Path

import click
import pytest

from kafkascope.analyzer.commands.output import refuse_inputs
from kafkascope.tui.cli import main
from tests.kit.run import output, run
from tests.kit.samples import SAMPLES

CAPTURE = SAMPLES / "kafka-python.pcap"
SHARED = Path(__file__).parents[1] / "captures" / "share-group.pcap.gz"
SEGMENT = "00000000000000000000.log"
COMMANDS = (
    *("ls", "ls --json", "ls --format csv", "show -Y number==1", "records", "check", "clients"),
    *("stats apis", "groups", "groups --delivery", "cluster", "producers", "cut"),
    "export --format csv",
)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return Path(shutil.copy(CAPTURE, tmp_path))


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_empties_its_input(
    command: str, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([*command.split(), str(capture), "-o", str(capture)])
    assert end.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{capture} is an input: it would be overwritten" in said.err
    assert capture.read_bytes() == CAPTURE.read_bytes()


def test_an_exchange_of_a_file_is_that_file(capture: Path) -> None:
    with pytest.raises(click.UsageError, match="is an input"):
        refuse_inputs(str(capture), ["other.pcap#1", f"{capture}#12"])


def test_another_name_of_the_same_file_is_that_file(capture: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(capture)
    with pytest.raises(click.UsageError, match="is an input"):
        refuse_inputs(str(link), [str(capture)])


@pytest.mark.parametrize("name", ["kafka-python.pcap", SEGMENT, "broken.gz"])
def test_what_is_read_with_its_folder_is_an_input(name: str, capture: Path, tmp_path: Path) -> None:
    (tmp_path / SEGMENT).write_bytes(b"records")
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b\x08 cut")
    with pytest.raises(click.UsageError, match="is an input"):
        refuse_inputs(str(tmp_path / name), [str(tmp_path)])


@pytest.mark.parametrize("name", ["new.txt", "earlier.txt", "empty.txt", "below/other.pcap"])
def test_what_is_not_read_may_be_written(name: str, capture: Path, tmp_path: Path) -> None:
    (tmp_path / "earlier.txt").write_text("No\tTime\n")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "below").mkdir()
    shutil.copy(capture, tmp_path / "below" / "other.pcap")
    refuse_inputs(str(tmp_path / name), [str(tmp_path), "-", "missing.pcap"])


# --- show takes one line for something with the range of its versions, and says nothi -------------


SAMPLE = SAMPLES / "libraries.pcap"


def shown(*options: str) -> str:
    return output("show", SAMPLE, "1", *options)


def test_one_line_for_each_api() -> None:
    lines = [line.strip() for line in shown().splitlines()]
    (body,) = json.loads(shown("--json"))["response"]["api_keys"][1:2]
    assert (body["api_key"], body["min_version"], body["max_version"]) == (1, 4, 18)
    assert "Fetch 4-18" in lines
    assert not any(line.startswith("min_version:") for line in lines)
    start = lines.index("api_keys: 79") + 1
    assert len(set(lines[start : start + 79])) == 79
    assert "throttle_time_ms: 0" in lines[start + 79]
    assert "group.version 0-1" in lines, "features of a broker have ranges, too"
    assert any(line.startswith("max_version_level:") for line in lines), "another field stays"


@pytest.mark.parametrize("option", ["--all", "--hex"])
def test_all_of_it_when_asked_for(option: str) -> None:
    text = shown(option)
    assert text.count(" api_key: ") == 79
    assert text.count(" max_version: ") >= 79


@pytest.mark.parametrize("path", [CAPTURE, SHARED], ids=["classic", "share group"])
@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls --format tsv",
        "ls -t u --columns no,time,api,topic,records",
        "ls --format csv --columns no,api,result",
        "ls --format json --columns no,latency,kafka.client_software_name",
        "ls -T fields -e number -e topic -E header=y",
        "records",
        "records --json",
    ],
)
def test_what_needs_no_exchanges_is_the_same_as_what_does(command: str, path: Path) -> None:
    """A filter takes the way over objects, also one that all exchanges match."""
    words = [*command.split(), path]
    assert output(*words) == output(*words, "-Y", "number > 0")


def test_a_capture_without_records_is_said_to_have_none() -> None:
    done = run("records", SAMPLES / "zookeeper.pcap")
    assert (done.stdout, done.stderr) == ("", "kafkascope: no records in this capture\n")
