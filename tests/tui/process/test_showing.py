"""What a terminal shows before the UI is loaded, and settings of the process while it is there."""

import gc
import subprocess
import sys

import pytest

from kafkascope.tui.showing import BEGIN, END, GC_THRESHOLD, rare_collections, splash


def test_it_says_what_is_opened_and_leaves_it_for_the_ui(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with splash("orders.pcapng"):
        said = capsys.readouterr().err
    assert said.startswith(BEGIN)
    assert "orders.pcapng" in said
    assert capsys.readouterr().err == ""


def test_a_name_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with splash("a\x1b]0;gone\x07.pcap\nb"):
        pass
    shown = capsys.readouterr().err.removeprefix(BEGIN)
    assert "\x1b" not in shown
    assert shown.count("\n") == 1


def test_it_is_taken_away_when_something_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), splash("a"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err.endswith(END)


def test_the_first_screen_waits_for_nothing_heavy() -> None:
    code = "import sys, kafkascope.tui.app\n"
    code += "print(*{'numpy', 'construct', 'pyarrow', 'scapy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_few_looks_for_cycles_while_the_screen_is_there() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with rare_collections():
        assert gc.get_threshold()[0] == GC_THRESHOLD
        assert gc.get_freeze_count() > frozen
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
