"""Inputs anywhere: local paths, folders and globs, and those that `pyarrow.fs` reaches (S3, GCS,
HDFS). With `store` the only file I/O of this package."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from kafkascope.captures.errors import NotACapture
from kafkascope.captures.formats.text import is_log
from kafkascope.captures.inputs import opening
from kafkascope.captures.inputs.inflate import ByteStream

# Bytes per read of a remote store: each request has a high latency.
CHUNK_BYTES: Final = 8 << 20
_MAGIC: Final = frozenset("*?[")
_QUERY: Final = re.compile(r"\?(?=\w+=)")
"""Where the options of a URI begin; other question marks belong to globs."""


def is_remote(name: str) -> bool:
    """Return whether a name is a URI, but not of a local file."""
    return "://" in name and not name.startswith("file://")


@lru_cache(maxsize=64)
def _connected(uri: str) -> tuple[Any, str]:
    """Return a file system and the path in it."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    return system, path


def _parts(uri: str) -> tuple[str, str, str]:
    """Return scheme and host, path, and options of a URI."""
    match = _QUERY.search(uri)
    address, query = (uri, "") if match is None else (uri[: match.start()], uri[match.end() :])
    head, _, path = address.partition("://")
    host, _, path = path.partition("/")
    return f"{head}://{host}/", path, f"?{query}" if query else ""


class _Remote:
    """A remote file from an offset on, read in large portions."""

    def __init__(self, name: str, start: int) -> None:
        self._name = name
        try:
            system, path = _connected(name)
            self._file = system.open_input_file(path)
            self._file.seek(start)
        except (OSError, ValueError) as error:
            raise _unreadable(name, error) from None
        self._chunk = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int | None:
        if not self._chunk:
            try:
                self._chunk = memoryview(self._file.read(CHUNK_BYTES))
            except OSError as error:
                raise _unreadable(self._name, error) from None
        size = min(len(buffer), len(self._chunk))
        buffer[:size] = self._chunk[:size]
        self._chunk = self._chunk[size:]
        return size

    def close(self) -> None:
        self._file.close()


def _unreadable(name: str, error: Exception) -> NotACapture:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return NotACapture(f"{name} cannot be read: {text}")


def open_anywhere(name: str, start: int) -> ByteStream:
    """Open a file at an offset: an `Opener` for all names that `listed` returns."""
    return _Remote(name, start) if is_remote(name) else opening.StoredFile(name, start)


def size_of(name: str) -> int:
    if not is_remote(name):
        return Path(name).stat().st_size
    system, path = _connected(name)
    return int(system.get_file_info(path).size)


def fingerprint_of(name: str) -> bytes:
    """Return what `exchanges.offline.fingerprint_of` does, for files anywhere."""
    stream = open_anywhere(name, 0)
    head = bytearray(opening.FINGERPRINT_BYTES)
    view, filled = memoryview(head), 0
    try:
        while filled < len(head) and (size := stream.readinto(view[filled:]) or 0):
            filled += size
    finally:
        stream.close()
    return opening.fingerprint(bytes(head[:filled]))


def listed(inputs: Iterable[str]) -> list[str]:
    """Return the files that inputs name, each once: for folders and globs those that are captures.
    Raises `NotACapture` when there are none."""
    names: dict[str, None] = {}
    for text in inputs:
        files = _remote(text) if is_remote(text) else _local(text.removeprefix("file://"))
        names.update(dict.fromkeys(files))
    if not names:
        raise NotACapture("no input")
    return list(names)


def _local(text: str) -> list[str]:
    path = Path(text)
    if path.is_dir():
        captures = _captures_in(path)
        if not captures:  # as `open_inputs` does
            below = sorted(each for each in path.iterdir() if each.is_dir())
            captures = [name for each in below for name in _captures_in(each)]
        if not captures:
            raise NotACapture(f"{text} is a folder without captures")
        return captures
    if _MAGIC & set(text) and not path.exists():
        files = [name for name in sorted(glob.glob(text, recursive=True)) if Path(name).is_file()]  # noqa: PTH207
        captures = _captures(files)
        if not captures:
            raise NotACapture(f"{text} matches no captures")
        return captures
    if not opening.is_regular(text):
        raise NotACapture(f"{text} is not a regular file: tables need input that can be read twice")
    stream, head, _ = opening.open_stream(text, open_anywhere(text, 0))
    stream.close()
    opening.format_of(head, 0, text)
    return [text]


def absolute(name: str) -> str:
    """Return a name that is valid in another working directory, such as a worker's."""
    return name if "://" in name else str(Path(name).absolute())


def _captures_in(path: Path) -> list[str]:
    return _captures(sorted(str(file) for file in path.iterdir() if file.is_file()))


def _captures(names: list[str]) -> list[str]:
    out = []
    for name in names:
        try:
            stream, head, _ = opening.open_stream(name, open_anywhere(name, 0))
        except NotACapture:
            continue
        stream.close()
        if opening.is_capture(head) or is_log(head):
            out.append(name)
    return out


def _remote(uri: str) -> list[str]:
    from pyarrow import fs

    front, path, query = _parts(uri)
    fixed = path
    if _MAGIC & set(path):
        parts = path.split("/")
        plain = next(index for index, part in enumerate(parts) if _MAGIC & set(part))
        fixed = "/".join(parts[:plain])
    try:
        system, base = _connected(f"{front}{fixed}{query}")
        info = system.get_file_info(base)
        if info.type == fs.FileType.File:
            return [uri]
        if info.type == fs.FileType.NotFound:
            raise NotACapture(f"{uri}: no such file or folder")
        selector = fs.FileSelector(base, recursive=fixed != path)
        files = sorted(file.path for file in system.get_file_info(selector) if file.is_file)
    except (OSError, ValueError) as error:
        raise _unreadable(uri, error) from None
    # Paths of a file system begin like the path of the URI, or have the bucket before it.
    bucket = base.removesuffix(fixed)
    names = [file.removeprefix(bucket).lstrip("/") for file in files]
    if fixed != path:
        names = [name for name in names if _fits(name, path)]
    out = _captures([f"{front}{name}{query}" for name in names])
    if not out:
        raise NotACapture(f"{uri} matches no captures")
    return out


def _fits(name: str, pattern: str) -> bool:
    ours, theirs = name.split("/"), pattern.split("/")
    if "**" in theirs:
        return fnmatch(name, pattern.replace("**/", "*"))
    return len(ours) == len(theirs) and all(map(fnmatch, ours, theirs))
