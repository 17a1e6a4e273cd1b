"""Key logs that grow are followed through whatever happens to files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkascope.captures.errors import CaptureError, NotACapture
from kafkascope.captures.inputs import keylogs
from kafkascope.captures.inputs.keylogs import EVERY, QUIET, KeyLogFollower, follow_key_logs
from kafkascope.captures.limits import LIMITS, CaptureLimits


def line(number: int) -> bytes:
    return b"CLIENT_RANDOM %064x %096x\n" % (number, number + 7)


class Following:
    """A follower with a clock of its own."""

    def __init__(self, *paths: Path, limits: CaptureLimits = LIMITS) -> None:
        self.seconds = 50.0
        self.follower = KeyLogFollower(paths, lambda: self.seconds, limits)

    def after(self, seconds: float = EVERY) -> Following:
        self.seconds += seconds
        self.follower.poll()
        return self

    def knows(self) -> list[int]:
        found = (self.follower.log.secrets(number.to_bytes(32, "big")) for number in range(20))
        return [number for number, each in enumerate(found) if each is not None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.log"


def test_what_is_appended_is_read_line_by_line(path: Path) -> None:
    path.write_bytes(line(1))
    following = Following(path)
    assert following.knows() == [1]
    with path.open("ab") as file:
        file.write(line(2) + line(3)[:90])
        file.flush()
        assert following.after().knows() == [1, 2]
        file.write(line(3)[90:])
        file.flush()
        assert following.after(EVERY / 4).knows() == [1, 2]
        assert following.after().knows() == [1, 2, 3]
    following.follower.close()


def test_a_file_that_is_not_there_may_come(path: Path) -> None:
    following = Following(path)
    assert [str(each) for each in following.after().follower.errors()] == [
        f"{path}: no such file or folder"
    ]
    path.write_bytes(line(1))
    assert following.after().knows() == [1]
    assert following.follower.errors() == []
    assert follow_key_logs([]) is None


def test_a_file_that_is_truncated_is_read_from_its_start(path: Path) -> None:
    path.write_bytes(line(1) + line(2)[:30])
    following = Following(path)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(line(3)[:20])
    assert following.after().knows() == [1]
    with path.open("ab") as file:
        file.write(line(3)[20:])
    assert following.after().knows() == [1, 3]


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_is_replaced_is_read_to_its_end_first(path: Path, gone: bool) -> None:
    path.write_bytes(line(1))
    following = Following(path)
    with path.open("ab") as file:
        path.rename(path.with_suffix(".1"))
        if gone:
            assert following.after().knows() == [1]
        file.write(line(2))
        if gone:
            file.flush()
            assert following.after().knows() == [1, 2]
    path.write_bytes(line(3))
    assert following.after().knows() == [1, 2, 3]
    path.unlink()
    path.write_bytes(line(4))
    assert following.after().knows() == [1, 2, 3, 4]


def test_a_last_line_without_an_end_counts_when_nothing_more_comes(path: Path) -> None:
    path.write_bytes(line(1)[:-1])
    following = Following(path)
    assert following.after().knows() == []
    assert following.after(QUIET).knows() == [1]
    lines = following.follower.log.lines
    assert following.after(QUIET).follower.log.lines == lines


def test_at_the_end_everything_is_taken(path: Path) -> None:
    path.write_bytes(line(1))
    following = Following(path)
    with path.open("ab") as file:
        file.write(line(2) + line(3)[:-1])
    following.follower.finish()
    assert following.knows() == [1, 2, 3]


def test_a_folder_is_no_key_log(tmp_path: Path) -> None:
    with pytest.raises(NotACapture, match="directory"):
        KeyLogFollower([tmp_path])


def test_what_may_not_be_read_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(line(1))
    usual = os.open

    def refused(name: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(keylogs.os, "open", refused)
    with pytest.raises(CaptureError, match="permission denied"):
        KeyLogFollower([path])
    monkeypatch.setattr(keylogs.os, "open", usual)
    following = Following(path)
    monkeypatch.setattr(keylogs.os, "open", refused)
    path.rename(path.with_suffix(".1"))
    path.write_bytes(line(2))
    following.after().after()
    assert "permission denied" in str(following.follower.errors()[0])
    monkeypatch.setattr(keylogs.os, "open", usual)
    assert following.after().knows() == [1, 2]
    assert following.follower.errors() == []


def test_a_pipe_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    following = Following(path)
    writer = os.open(path, os.O_WRONLY)
    assert following.after().knows() == []
    os.write(writer, line(1))
    assert following.after().knows() == [1]
    os.close(writer)
    assert following.after().knows() == [1]
    following.follower.close()


def test_of_a_log_that_grows_by_much_some_is_read_at_once(path: Path) -> None:
    path.write_bytes(line(1))
    following = Following(path, limits=CaptureLimits(keylog_read_bytes=10 * len(line(2))))
    with path.open("ab") as file:
        file.write(b"".join(map(line, range(2, 20))))
    assert len(following.after().knows()) == 11
    assert len(following.after().knows()) == 19
    endless = Following(Path("/dev/zero"))
    assert endless.after().knows() == []


def test_two_logs_may_be_cut_in_the_same_moment(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "ab"]
    for number, each in enumerate(paths):
        each.write_bytes(line(number)[:80])
    following = Following(*paths)
    for number, each in enumerate(paths):
        with each.open("ab") as file:
            file.write(line(number)[80:])
    assert following.after().knows() == [0, 1]
