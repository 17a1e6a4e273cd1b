"""Messages are decoded beside the keyboard: one thread, the newest wish, results by number."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from kafkascope.captures.errors import CaptureError
from kafkascope.dissectors.errors import DissectError

PATIENCE: Final = 0.5
"""Seconds after which another wish does not wait for the one at hand."""

Make = Callable[[], Any]
Done = Callable[[int, Any, str], object]
"""(number of the wish, result, sentence why there is none). Called in the thread."""


class Decoder:
    """Wishes that came meanwhile are dropped, but for the last one."""

    def __init__(self, done: Done) -> None:
        self._done = done
        self._lock = threading.Lock()
        self._wish: tuple[int, Make] | None = None
        self._began = 0.0
        """When the thread at hand took its wish; 0: there is none."""

    def want(self, number: int, make: Make) -> None:
        """Make something soon."""
        with self._lock:
            self._wish = number, make
            if self._began and time.monotonic() - self._began < PATIENCE:
                return
            self._began = time.monotonic()
        # A daemon: what takes long must not keep the program from ending.
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                wish, self._wish = self._wish, None
                if wish is None:
                    self._began = 0.0
                    return
                self._began = time.monotonic()
            number, make = wish
            try:
                made, why = make(), ""
            except (CaptureError, DissectError, OSError) as error:
                made, why = None, str(error)
            except Exception as error:  # the outermost guard of the thread: it tells
                made, why = None, f"cannot be shown: {error!r}"
            self._done(number, made, why)
