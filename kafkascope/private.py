"""Files for captured traffic: new, for their owner alone (0600), under names that may be in use.

Writing into a file that exists would keep its mode, its links and its open readers. A new file is
made in the same folder and renamed to the wanted name: whatever had that name before, a symbolic
link included, is replaced and left untouched itself. Until then it has no name where the system
knows such files, so that nothing of it stays when we are killed. FIFOs and devices are written as
they are, and /dev/stdout or /dev/fd/N is the open file of that number.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

PREFIX: Final = ".kafkascope-"
"""Start of the names that files have until they are published, where they have any."""
OPEN_FILES: Final = Path("/proc/self/fd")
STANDARD: Final = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_NUMBERED: Final = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")


class PrivateFile:
    """A file that is written; it has its name from `publish` or `close` on.

    As a context manager it is closed at the end; after an exception it is discarded, and what had
    the name before stays.
    """

    def __init__(self, path: Path | str, *, shared: bool = False, buffering: int = -1) -> None:
        """`shared`: with the mode that new files usually have; for what holds no traffic.
        `OSError` where no file can be made or the name is a folder's."""
        self.path = Path(path)
        self._temporary: Path | None = None
        self._unnamed: int | None = None
        special = _open_special(self.path)
        self.is_new = special is None
        """Whether the file was made here: it is no FIFO, device or open descriptor."""
        if special is not None:
            self.file: BinaryIO = os.fdopen(special, "wb", buffering)
            return
        descriptor, self._temporary = _create_beside(self.path)
        if self._temporary is None:
            self._unnamed = os.dup(descriptor)  # `close` needs it after the end of the file
        mode = 0o600
        if shared:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.fchmod(descriptor, mode)  # a mask may take our own rights as well
        self.file = os.fdopen(descriptor, "w+b", buffering)

    def __enter__(self) -> BinaryIO:
        return self.file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.discard()

    def published(self) -> Self:
        """Publish at once, for readers that follow a growing file."""
        self.publish()
        return self

    def publish(self) -> None:
        """Take the name now; later writes are seen under it. Raises `OSError`."""
        if self._temporary is not None or self._unnamed is not None:
            try:
                if self._unnamed is not None:
                    self._temporary = _name(self._unnamed, self.path.parent)
                    self._forget()
                assert self._temporary is not None
                self._temporary.replace(self.path)
            except OSError as error:
                self.discard()
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            self._temporary = None

    def close(self) -> None:
        """Write what is buffered, take the name, close. On `OSError` the file is discarded."""
        try:
            self.file.close()
        except OSError:
            self.discard()
            raise
        self.publish()

    def discard(self) -> None:
        """Close, and remove the file unless it was published."""
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        self._forget()
        try:
            self.file.close()
        except OSError:
            pass  # a full disk: it is gone anyway

    def _forget(self) -> None:
        unnamed, self._unnamed = self._unnamed, None
        if unnamed is not None:
            os.close(unnamed)


def make_private_folder(path: Path) -> None:
    """Make a folder, with those above it that are missing, for its owner alone whatever the umask
    is. One that exists keeps its mode."""
    if path.is_dir():
        return
    if path.parent != path:
        make_private_folder(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        path.chmod(0o700)


def is_special(path: Path) -> bool:
    """Whether a path is a FIFO, a device, a socket or an open descriptor: written as it is."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


def _descriptor(path: Path) -> int | None:
    text = str(path)
    numbered = _NUMBERED.fullmatch(text)
    return int(numbered[1]) if numbered else STANDARD.get(text)


def _open_special(path: Path) -> int | None:
    """Open what is no regular file; None for a name that a new file may take."""
    number = _descriptor(path)
    if number is not None:
        return os.dup(number)  # opening it anew would fail on sockets and begin at offset 0
    if not is_special(path):
        return None
    # O_CREAT: the kernel then refuses FIFOs that others planted in /tmp (protected_fifos).
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):  # it was changed since we looked
        os.close(descriptor)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    return descriptor


def _create_beside(path: Path) -> tuple[int, Path | None]:
    """Return the descriptor of a new file and its name, if it has one."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    folder = path.parent
    try:
        there = path.lstat()
    except FileNotFoundError:
        pass
    else:
        _refuse_of_others(path, there.st_uid)
    try:
        descriptor = _without_name(folder)
        return (descriptor, None) if descriptor is not None else _with_name(folder)
    except PermissionError as error:
        why = f"the folder {folder} is not writable, and a file is created there"
        raise PermissionError(error.errno, why, str(path)) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _without_name(folder: Path) -> int | None:
    """Return a new file without a name (O_TMPFILE); None where system or file system lack it."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not OPEN_FILES.is_dir():
        return None
    try:
        return os.open(folder, flag | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise


def _with_name(folder: Path) -> tuple[int, Path]:
    from tempfile import mkstemp  # slow to import, and many commands write no file

    descriptor, name = mkstemp(prefix=PREFIX, dir=folder)
    return descriptor, Path(name)


def _name(descriptor: int, folder: Path) -> Path:
    """Return a name that a file without one got: only a rename can take one that is in use."""
    while True:
        temporary = folder / f"{PREFIX}{os.urandom(6).hex()}"
        try:
            # Any `src_dir_fd` makes it `linkat`, which alone follows the link to an open file.
            os.link(OPEN_FILES / str(descriptor), temporary, src_dir_fd=descriptor)
        except FileExistsError:
            continue
        return temporary


def _refuse_of_others(path: Path, owner: int) -> None:
    # Known now, not when hours of work are renamed: the kernel's rule for /tmp.
    folder = path.parent.stat()
    if folder.st_mode & stat.S_ISVTX and os.geteuid() not in (0, owner, folder.st_uid):
        why = "it belongs to another user and cannot be replaced"
        raise PermissionError(errno.EPERM, why, str(path))
