"""The real program on real captures in a real terminal."""

import pytest

from tests.terminals import PROGRAM, Terminal

DEMO = "captures/samples/libraries.pcap"


def test_a_session_with_a_capture() -> None:
    with Terminal(f"{PROGRAM} {DEMO}") as terminal:
        terminal.wait_for("336 exchanges", "ApiVersionsResponse", without="ctrl+c stops")
        terminal.type("e")
        terminal.wait_for("MetadataRequest v13")
        terminal.type("/")
        terminal.write("api == Produce")
        terminal.wait_for("applied", " of 336 shown")
        terminal.type("Enter")
        terminal.wait_for("Enter details")
        terminal.type("7")
        terminal.wait_for("Authentication of aiokafka", "Fix")
        terminal.resize(20, 5)
        terminal.wait_for("Severity")
        terminal.resize(80, 24)
        terminal.wait_for("Authentication of aiokafka")
        terminal.type("Enter")
        terminal.wait_for("of 336 shown", "SaslAuthenticate")
        terminal.type("Enter")
        terminal.wait_for("▼ SaslAuthenticateResponse")
        terminal.type("Q")
        terminal.wait_for("EXIT 0")


@pytest.mark.soak
def test_piped_stdin_leaves_the_keyboard_alone() -> None:
    with Terminal(f"cat {DEMO} | {PROGRAM} open -", 80, 24) as terminal:
        terminal.wait_for("336 exchanges")
        terminal.type("Home")  # what is read from a pipe stays on its newest row
        terminal.wait_for("ApiVersions v5")
        terminal.type("e", "Enter")
        terminal.wait_for("▼ MetadataRequest v13")
        terminal.type("Q")
        terminal.wait_for("EXIT 0")


@pytest.mark.soak
def test_an_endless_pipe_is_stopped_by_ctrl_c() -> None:
    endless = f"(cat {DEMO}; sleep 50) | {PROGRAM} open - --plain"
    with Terminal(endless, 100, 30) as terminal:
        terminal.wait_for("ctrl+c stops", "newest", "SaslAuthenticate")
        terminal.type("C-c")
        terminal.wait_for("stopped")
