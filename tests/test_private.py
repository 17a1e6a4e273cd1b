"""Files for captured traffic: new, 0600, under names that may be in use."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kafkascope.private import PrivateFile, is_special


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def write(path: Path, data: bytes = b"new") -> None:
    with PrivateFile(path) as file:
        file.write(data)


@pytest.fixture
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("published", [False, True])
def test_an_open_file_gives_way_to_a_closed_one(
    tmp_path: Path, open_umask: object, published: bool
) -> None:
    path, other = tmp_path / "out", tmp_path / "other name"
    path.write_bytes(b"old")
    path.chmod(0o666)
    other.hardlink_to(path)
    with path.open("rb") as reader:  # somebody waits for what comes
        file = PrivateFile(path)
        if published:
            file.publish()
            assert path.read_bytes() == b""
        else:
            assert path.read_bytes() == b"old"
        file.file.write(b"secret")
        file.close()
        assert reader.read() == b"old"
    assert (path.read_bytes(), mode(path)) == (b"secret", 0o600)
    assert (other.read_bytes(), mode(other)) == (b"old", 0o666)
    assert set(tmp_path.iterdir()) == {path, other}


@pytest.mark.parametrize("target", ["file", "nothing"])
def test_a_link_is_replaced_not_followed(tmp_path: Path, target: str) -> None:
    victim, path = tmp_path / "victim", tmp_path / "out"
    if target == "file":
        victim.write_bytes(b"theirs")
    path.symlink_to(victim)
    write(path)
    assert (path.is_symlink(), path.read_bytes(), mode(path)) == (False, b"new", 0o600)
    assert victim.read_bytes() == b"theirs" if target == "file" else not victim.exists()


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def fail() -> None:
        with PrivateFile(path) as file:
            file.write(b"half")
            raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_of_what_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    # A hidden file with captured traffic stayed, one for each time.
    path = tmp_path / "out"
    path.write_bytes(b"old")
    code = (
        "import sys; from kafkascope.private import PrivateFile\n"
        "file = PrivateFile(sys.argv[1]); file.file.write(b'secret' * 9_999); file.file.flush()\n"
        "print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        process.send_signal(how)
        process.wait(60)
    assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], b"old")


def test_files_have_a_name_where_the_file_system_wants_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, unnamed = os.open, getattr(os, "O_TMPFILE", 0)

    def refused(path: str | Path, flags: int, *more: int) -> int:
        if unnamed and flags & unnamed == unnamed:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return really(path, flags, *more)

    path = tmp_path / "out"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "open", refused)
    with PrivateFile(path) as file:
        file.write(b"new")
        assert len(list(tmp_path.iterdir())) == 2
    assert (list(tmp_path.iterdir()), path.read_bytes(), mode(path)) == ([path], b"new", 0o600)


def test_a_shared_file_has_the_usual_mode(tmp_path: Path, open_umask: object) -> None:
    path = tmp_path / "out"
    os.umask(0o027)
    with PrivateFile(path, shared=True) as file:
        file.write(b"x")
    assert mode(path) == 0o640


def test_a_fifo_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join(60)
    assert got == [b"new"]
    assert is_special(path)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_devices_are_written_as_they_are(tmp_path: Path) -> None:
    write(Path(os.devnull))
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("kind", ["pipe", "file", "socket"])
def test_stdout_is_the_open_file(tmp_path: Path, name: str, kind: str) -> None:
    code = (
        "import os; from pathlib import Path\n"
        "from kafkascope.private import PrivateFile\n"
        "os.write(1, b'a')\n"
        f"with PrivateFile(Path({name!r})) as file: file.write(b'b')\n"
        "os.write(1, b'c')\n"
    )
    link = Path("/dev/stdout").readlink()
    command = [sys.executable, "-c", code]
    if kind == "pipe":
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        said = done.stdout
    elif kind == "file":
        path = tmp_path / "log"
        path.write_bytes(b"before ")
        with path.open("ab") as file:
            subprocess.run(command, stdout=file, check=True)
        said = path.read_bytes().removeprefix(b"before ")
    else:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            subprocess.run(command, stdout=theirs, check=True)
            said = ours.recv(100)
    assert said == b"abc"
    assert Path("/dev/stdout").readlink() == link


def test_folders_and_places_that_are_not_there_are_told_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    for path in (folder, tmp_path / "link"):
        with pytest.raises(IsADirectoryError) as caught:
            PrivateFile(path)
        assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as missing:
        PrivateFile(tmp_path / "no" / "out")
    assert missing.value.filename == str(tmp_path / "no" / "out")
    assert folder.is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_writable_is_told(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError, match="not writable"):
            PrivateFile(path)
    finally:
        tmp_path.chmod(0o755)
    assert path.read_bytes() == b"old"


def test_a_file_of_somebody_else_in_a_shared_folder_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        PrivateFile(path)
    assert list(tmp_path.iterdir()) == [path]
