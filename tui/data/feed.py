"""Starts the reading process, takes its batches into the store, and stops it."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.spans import spans
from kafkascope.schemas.known import IncomingSchemas
from kafkascope.tui.data.pipes import STOP, messages, start
from kafkascope.tui.limits import LIMITS, ScreenLimits

if TYPE_CHECKING:
    from kafkascope.captures.inputs.files import Source
    from kafkascope.captures.inputs.spool import Spool
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.tui.data.store import Store

# Bytes from which a column is not on the heap.
APART: Final = 1 << 17
# Bytes of a live capture that may arrive between two batches.
MARGIN: Final = 64 << 20
# Rows that are kept of input without end; then the oldest quarter goes.
LIVE_ROWS: Final = 1_000_000
# Batches in hand; more of them stay in the pipe, and the reader waits.
QUEUE: Final = 8

OFF: Final = "--no-schemas"
# Bytes for the places of frames of endless input: each takes 37, and 22 for each packet.
PLACES: Final = 1 << 29


class Feed:
    """A reading process and what it has told. Make it before the UI starts: it reads while Textual
    loads."""

    def __init__(
        self,
        inputs: Sequence[str],
        *,
        ports: Iterable[int] = (),
        legs: str = "client",
        stdin: int | None = None,
        interface: str = "",
        capture_filter: str = "",
        output: str | None = None,
        keylog: Sequence[str] = (),
        zone: str = "",
        limit: int = LIVE_ROWS,
        payloads: Callable[[], Payloads | None] = lambda: None,
        schema_words: Sequence[str] = (),
        limits: ScreenLimits = LIMITS,
    ) -> None:
        """`stdin`: the descriptor of what "-" means, when it is not descriptor 0. `interface`: to
        capture there, with a BPF filter; `output`: a file for what is read without end.
        `keylog`: paths of key logs. `zone`: of request logs. `limit`: rows that are kept of input
        without end.
        `payloads`: gives what decodes keys and values, asked in threads. `schema_words`: options
        that say the same on a command line."""
        from tempfile import TemporaryFile

        from kafkascope.captures.inputs.growing import being_written

        self.keylog, self.zone = tuple(keylog), zone
        self.schema_words = tuple(schema_words)
        self.schemas = IncomingSchemas()
        """Those that the reading process has seen in the input."""
        self._make_payloads = payloads
        self._payloads: tuple[Payloads | None] | None = None
        """Decoder of keys and values, once it is needed."""
        self._making = threading.Lock()

        self._spool_file = TemporaryFile(buffering=0)  # noqa: SIM115
        self._plaintext_file = TemporaryFile(buffering=0)  # noqa: SIM115
        their_commands, self._commands = os.pipe()
        self.grows = bool(inputs) and being_written(inputs[-1])
        """Whether the input was being written at the start: its exchanges are numbered as they
        come."""
        kept = limit if interface or "-" in inputs else 0
        options: dict[str, Any] = {
            "inputs": list(inputs),
            "ports": spans(ports),
            "legs": legs,
            "commands": their_commands,
            "spool": self._spool_file.fileno(),
            "plaintext": self._plaintext_file.fileno(),
            "interface": interface,
            "capture_filter": capture_filter,
            "output": output,
            "keylog": list(keylog),
            "zone": zone,
            "limit": kept,
            "most": 0 if kept else limits.listed_bytes,
            "schemas": self.decodes,
            "grows": self.grows,
        }
        self._ring = bool(kept)
        self._process, self._results = start(
            "kafkascope.tui.data.indexer",
            options,
            *(their_commands, options["spool"], options["plaintext"]),
            stdin=subprocess.DEVNULL if "-" not in inputs else stdin,
        )
        os.close(their_commands)
        self._queue: queue.Queue[bytes | None] = queue.Queue(QUEUE)
        self._closing = False
        threading.Thread(target=self._receive, daemon=True).start()
        self._store: Store | None = None
        self._places: Spool | None = None
        self._plaintext: Spool | None = None
        """What came out of TLS, from when the reader has opened the input."""
        self._source: Any = None
        """The input once more, from when the reader has opened it."""

    @property
    def decodes(self) -> bool:
        return OFF not in self.schema_words

    def payloads(self) -> Payloads | None:
        """Return the decoder of keys and values; None where decoding is off. It requests schemas
        while it decodes: for threads."""
        with self._making:
            if self._payloads is None:
                made = self._make_payloads()
                if made is not None:
                    made.known.grows(self.schemas)
                self._payloads = (made,)
            return self._payloads[0]

    @property
    def store(self) -> Store:
        """Return the rows read so far."""
        if self._store is None:
            # Not before the reader was started: it reads while this process loads.
            from kafkascope.captures.inputs.spool import UNBOUNDED, Spool
            from kafkascope.tui.data.store import Store

            # On disk: the places of a million frames would be half of this process.
            self._places = Spool(PLACES if self._ring else UNBOUNDED)
            self._store = Store(
                lambda *place: self._opened.read(*place),
                None,
                lambda numbers: self._opened.find(numbers),
                self._places,
                lambda: cast("Spool", self._plaintext),
            )
            self._store.progress.ring = self._ring
        return self._store

    @property
    def _opened(self) -> Source:
        from kafkascope.captures.inputs.spool import NotKept

        if self._source is None:
            raise NotKept("bytes not kept")
        return cast("Source", self._source)

    def _receive(self) -> None:
        for data in messages(self._results):
            self._queue.put(data)
            if self._closing:
                break
        self._queue.put(None)

    def poll(self, seconds: float) -> bool:
        """Take in what has arrived, for `seconds` at most; return whether anything has."""
        until = time.monotonic() + seconds
        found = False
        while True:
            try:
                data = self._queue.get_nowait()
            except queue.Empty:
                return found
            found = True
            if data is None:
                self._end()
                return found
            self._take(pickle.loads(data))
            if time.monotonic() > until:
                return found

    def _take(self, message: dict[str, Any]) -> None:
        from kafkascope.analyzer.session.deltas import apply
        from kafkascope.captures.inputs.files import Source
        from kafkascope.captures.inputs.spool import Spool

        progress = self.store.progress
        match message["kind"]:
            case "opened":
                large_apart(APART)
                spool = Spool(descriptor=os.dup(self._spool_file.fileno()))
                self._source = Source(message["names"], spool, order=message["order"])
                descriptor = os.dup(self._plaintext_file.fileno())
                self._plaintext = Spool(message["plaintext"], descriptor=descriptor)
                progress.size = message["size"]
            case "rows":
                self._source.spool.follow(message["spool"], MARGIN)
                self._source.follow(message["kept"])
                assert self._plaintext is not None
                self._plaintext.follow(message["plaintext"], MARGIN)
                with self.store.dropping(message["delta"].get("drop", 0)):
                    apply(message["delta"], self.store.session)
                self.store.texts.extend(message["texts"])
                self.store.ends.extend(message["ends"])
                progress.read = message["read"]
                progress.size = max(progress.size, progress.read) if progress.size else 0
                progress.following = message["following"]
                progress.empty = message["empty"]
                progress.took(message["count"])
                if message["schemas"] is not None:
                    self.schemas.take(message["schemas"])
            case "done":
                progress.done = True
                progress.following = False
                progress.stopped = message["stopped"]
                progress.said, progress.remarks = message["damage"], message["remarks"]
                if message["damage"]:
                    progress.code = 4
            case "failed":
                progress.done, progress.following = True, False
                progress.failure, progress.code = message["text"], message["code"]

    def _end(self) -> None:
        progress = self.store.progress
        if not progress.done:
            code = self._process.wait()
            progress.done, progress.following, progress.code = True, False, 4
            progress.failure = f"the reader ended early (exit code {code}): rows are missing"

    def stop(self) -> None:
        """Let the reader stop; what was read stays."""
        try:
            os.write(self._commands, STOP)
        except OSError:
            pass

    def close(self) -> None:
        self._closing = True
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for _ in range(QUEUE + 1):  # lets the receiving thread end
            try:
                self._queue.get_nowait()
            except queue.Empty:
                break
        try:
            os.close(self._commands)
        except OSError:
            pass
        if self._source is not None:
            self._source.close()
        for spool in (self._places, self._plaintext):
            if spool is not None:
                spool.close()
        self._spool_file.close()
        self._plaintext_file.close()
