"""Looking at a running proxy: the stream of its capture, and what is said when there is none."""

import socket
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.tui.cli import main
from kafkascope.tui.process.attach import stream


def proxy(path: Path, answer: bytes) -> threading.Thread:
    """Answers one request, and leaves."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)

    def run() -> None:
        with server, server.accept()[0] as client:
            assert client.recv(100) == b'{"do":"capture"}\n'
            client.sendall(answer)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_what_follows_the_answer_is_left_to_the_reader(tmp_path: Path) -> None:
    thread = proxy(tmp_path / "p.sock", b'{"ok":true}\n\x0a\x0d\x0d\x0apcapng')
    with stream(tmp_path / "p.sock") as found:
        data = b""
        while octets := found.recv(100):
            data += octets
    thread.join()
    assert data == b"\x0a\x0d\x0d\x0apcapng"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            b'{"ok":false,"error":"streams need the control socket"}\n',
            "streams need the control socket",
        ),
        (b"", "has ended"),
        (b"no json\n", "no proxy responds"),
    ],
)
def test_a_proxy_that_refuses_is_told(tmp_path: Path, answer: bytes, said: str) -> None:
    thread = proxy(tmp_path / "p.sock", answer)
    with pytest.raises(OSError, match=said):
        stream(tmp_path / "p.sock")
    thread.join()


def test_nobody_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no proxy responds at"):
        stream(tmp_path / "none.sock")


def test_without_a_proxy_there_is_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    done = CliRunner().invoke(main, ["open", "--attach"])
    assert (done.exit_code, done.output) == (
        3,
        "kafkascope: no proxy of yours is running: kafkascope proxy starts one\n",
    )
