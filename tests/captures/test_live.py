"""Live capture: the program that captures, and what it refuses."""

import sys
from pathlib import Path

import pytest

from kafkascope.captures.errors import CaptureError, NotAllowed
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.live import _Program, capture_command, refusal
from tests.kit.captures import conversation


def test_prefers_dumpcap_then_tcpdump(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"dumpcap", "tcpdump"}
    monkeypatch.setattr("shutil.which", lambda name: f"/x/{name}" if name in installed else None)
    assert capture_command("lo", "port 9092") == [
        *["/x/dumpcap", "-q", "-i", "lo", "-f", "port 9092", "-w", "-"]
    ]
    installed.discard("dumpcap")
    command = capture_command("lo", "port 9092")
    assert command[0] == "/x/tcpdump"
    assert command[-2:] == ["--", "port 9092"]
    installed.clear()
    assert capture_command("lo") is None


def test_a_missing_right_names_the_command_that_grants_it() -> None:
    error = refusal("eth0", "/usr/bin/dumpcap", "You don't have permission to capture")
    assert isinstance(error, NotAllowed)
    assert "setcap cap_net_raw,cap_net_admin=eip" in str(error)
    other = refusal("eth9", "/usr/bin/dumpcap", "There is no device named eth9\n")
    assert not isinstance(other, NotAllowed)
    assert str(other) == "cannot capture on eth9: There is no device named eth9"
    said = "The capture session could not be initiated.\n(No such device exists)\n"
    assert str(refusal("eth9", "dumpcap", said)) == "cannot capture on eth9: No such device exists"


@pytest.mark.parametrize(
    "said",
    [
        "dumpcap: Invalid capture filter \"x\" for interface 'lo'.\n\nThat string isn't a valid "
        "capture filter (can't parse filter expression: syntax error).\nSee the User's Guide.\n",
        "tcpdump: can't parse filter expression: syntax error\n",
    ],
)
def test_a_wrong_capture_filter_is_named(said: str) -> None:
    text = str(refusal("lo", "program", said))
    assert "can't parse filter expression: syntax error; -f takes a filter of tcpdump" in text


def test_reads_a_program_and_stops_it(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(conversation(1).pcap())
    program = f"import sys,time; sys.stdout.buffer.write(open({str(path)!r},'rb').read());"
    program += "sys.stdout.flush(); time.sleep(60)"
    stream = _Program([sys.executable, "-c", program], "lo")
    with Source(["lo"], None, {0: stream}) as source:
        source.sorts = False  # as `open_interface` has it: else it would wait for later packets
        packets = source.packets()
        assert [next(packets).number for _ in conversation(1).frames] == list(
            range(1, len(conversation(1).frames) + 1)
        )
        packets.close()
    assert stream._process.returncode is not None


def test_a_program_that_fails_is_an_error() -> None:
    stream = _Program([sys.executable, "-c", "import sys; sys.exit('no such device')"], "eth9")
    with (
        Source(["eth9"], None, {0: stream}) as source,
        pytest.raises(CaptureError, match="no such"),
    ):
        list(source.packets())
