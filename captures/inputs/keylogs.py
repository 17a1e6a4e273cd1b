"""Reads key logs from files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkascope.captures.inputs.opening import unreadable

if TYPE_CHECKING:
    from kafkascope.captures.tls.keylog import KeyLog

PIECE: Final = 1 << 20


def read_key_logs(paths: Iterable[str | os.PathLike[str]]) -> KeyLog | None:
    """Return what the files hold; None without any. Raises `NotACapture` or `NotAllowed` where one
    cannot be read."""
    log: KeyLog | None = None
    for path in paths:
        if log is None:
            from kafkascope.captures.tls.keylog import KeyLog

            log = KeyLog()
        try:
            with Path(path).open("rb") as file:
                while data := file.read(PIECE):
                    log.add(data)
        except OSError as error:
            raise unreadable(os.fspath(path), error) from None
        log.finish()
    return log
