"""Decodes messages in a thread, so that keys never wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from kafkascope.captures.errors import CaptureError
from kafkascope.dissectors.errors import DissectError

ONE: Final = threading.Lock()
"""Held while a key or value is decoded by its schema: who looks for one may have to read the
capture. Others wait, or they would not find it."""
# Seconds after which another request does not wait for the one at hand.
PATIENCE: Final = 0.5

Make = Callable[[], Any]
Done = Callable[[int, Any, str], object]
"""(number of the request, result, sentence why there is none). Called in the thread."""


class Decoder:
    """Runs one request at a time; of those that came meanwhile only the last one counts."""

    def __init__(self, done: Done) -> None:
        self._done = done
        self._lock = threading.Lock()
        self._request: tuple[int, Make] | None = None
        self._began = 0.0
        """When the thread took the request at hand; 0: there is no thread."""

    def want(self, number: int, make: Make) -> None:
        """Call `make` in the thread, unless another request comes first."""
        with self._lock:
            self._request = number, make
            if self._began and time.monotonic() - self._began < PATIENCE:
                return
            self._began = time.monotonic()
        # A daemon: what takes long must not keep the program from ending.
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                request, self._request = self._request, None
                if request is None:
                    self._began = 0.0
                    return
                self._began = time.monotonic()
            number, make = request
            try:
                made, why = make(), ""
            except (CaptureError, DissectError, OSError) as error:
                made, why = None, str(error)
            except Exception as error:  # the outermost guard of the thread: it tells
                made, why = None, f"cannot be shown: internal error ({error})"
            self._done(number, made, why)
