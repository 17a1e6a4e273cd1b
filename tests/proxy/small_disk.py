"""A disk that is full when a test says so."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from kafkascope.proxy.recording import direct, sinks


class SmallDisk:
    """A disk that takes so many bytes of all files together."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.room = 1 << 40
        self.errno = errno.ENOSPC
        self._writev, self._pwrite, self._pwritev = os.writev, os.pwrite, os.pwritev
        self._truncate = os.ftruncate
        patch.setattr(sinks.os, "writev", lambda fd, parts: self._take(parts, fd, self._writev))
        patch.setattr(direct.os, "pwrite", self._at)
        patch.setattr(direct.os, "pwritev", self._many_at)
        patch.setattr(sinks.os, "ftruncate", self._cut)

    def _some(self, parts: Any) -> bytes:
        data = b"".join(bytes(part) for part in parts)[: self.room]
        if not data:
            raise OSError(self.errno, os.strerror(self.errno))
        self.room -= len(data)
        return data

    def _take(self, parts: Any, descriptor: int, write: Callable[..., int]) -> int:
        return write(descriptor, [self._some(parts)])

    def _at(self, descriptor: int, data: Any, at: int) -> int:
        return self._pwrite(descriptor, self._some([data]), at)

    def _many_at(self, descriptor: int, parts: Any, at: int) -> int:
        return self._pwrite(descriptor, self._some(parts), at)

    def _cut(self, descriptor: int, size: int) -> None:
        self.room += os.fstat(descriptor).st_size - size
        self._truncate(descriptor, size)
