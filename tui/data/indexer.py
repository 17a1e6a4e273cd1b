"""The reading process of the terminal UI: reads the inputs and sends, ten times a second, the rows
that its session has gained. Knows nothing of screens.

`tui.data.feed` starts it as a program of its own, so that parsing never shares an interpreter with
the keyboard. Messages go through a pipe, each a size and a pickle; commands come through a second
one. Only columns are sent: a screen that shows a message reads it again.
"""

# Three threads, because reading blocks on live input:
#
#   main      _read: exchanges -> _waiting -> (_put) columns of the session
#   hand over _hand_over: every 0.1 s _put, and send the delta of the session
#   listen    _listen: the command to stop; the end of its pipe ends the process
#
# `_lock` guards the session and `_ended`. `_pipe` is held from taking a delta until it is written,
# so that deltas are sent whole and in order.

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.spans import within
from kafkascope.tui.data.pipes import STOP, send

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import OpenInput
    from kafkascope.analyzer.exchanges.pairs import Item
    from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
    from kafkascope.captures.inputs.growing import Pace
    from kafkascope.captures.inputs.spool import Spool
    from kafkascope.captures.model import Closed, Opened
    from kafkascope.schemas.model import Schema

# Seconds between two sends until there are rows, so that a small file is listed at once; and later.
FIRST_INTERVAL: Final = 0.02
INTERVAL: Final = 0.1
# Seconds without a new exchange after which a stopped reader counts as waiting for input.
IDLE: Final = 0.3
# Exchanges go into the columns when this many wait, or after this many bytes of input, because
# large messages hold memory.
BATCH_EXCHANGES: Final = 256
BATCH_BYTES: Final = 1 << 22
# Memory of a connection in both processes, beyond its bytes in the pipe.
CONNECTION_BYTES: Final = 1_500
LIST_FULL: Final = (
    "there is more: the list holds the first {:,} exchanges, the other screens count all; "
    "`kafkascope cut` chooses those for a smaller capture"
)
# New objects after which garbage is collected. Messages make hardly any cycles; the default, 700,
# costs a fifth of the time.
GC_THRESHOLD: Final = 100_000


class Indexer:
    """Reads in the main thread; two other threads send rows and take commands."""

    def __init__(self, options: dict[str, Any]) -> None:
        from kafkascope.analyzer.session.deltas import Growth
        from kafkascope.analyzer.session.session import Session

        self._results: int = options["results"]
        self._commands: int = options["commands"]
        self.spool = _spool(options)
        self._limit: int = options.get("limit", 0)
        self._max_sent: int = options.get("most", 0)
        """Bytes that may be sent of input with an end; 0: any number."""
        self._sent = 0
        self._full = False
        """Whether reading ended because the list is full."""
        self.capture = _opened(options, self.spool)
        self._plaintext = self.capture.plaintext(options["plaintext"])
        self.pace: Pace | None = None
        """Follows files that are still being written; None for other inputs."""
        self._follow(options)
        self.session = Session(
            self.capture.context, self.capture.source.read, plaintext=self.capture.plaintext
        )
        self._growth = Growth(self.session, forget=not self._limit)
        self._seen: SeenSchemas | None = None
        if options.get("schemas"):
            from kafkascope.analyzer.exchanges.seen_schemas import listen

            self._seen = listen(self.capture)
        self._schemas: list[Schema] | None = None
        """Schemas that have not been sent yet."""
        self._schemas_seen = 0
        self._texts: list[str] = []
        self._waiting: deque[Item] = deque()
        """Exchanges that are not in the columns yet."""
        self._ends: deque[tuple[int, int | None, str, int]] = deque()
        """Ends of connections for exported captures: (connection, direction, how, time)."""
        self.capture.watch = self._watch
        self._lock = threading.Lock()
        self._pipe = threading.Lock()
        self._ended = False
        self.stopped = False
        self._damage = -1
        """Count of damaged places when reading was stopped, because the stop itself looks like a
        truncated file; -1: not stopped."""

    def _follow(self, options: dict[str, Any]) -> None:
        """Follow the last input while it is being written."""
        from kafkascope.captures.inputs.growing import Pace
        from kafkascope.captures.inputs.opening import is_regular

        source = self.capture.source
        if options.get("interface") or not all(map(is_regular, source.names)):
            return
        if source.order is not None:
            return  # several files at once
        self.pace = Pace(len(source.names) - 1)
        self.pace.impatient = bool(options["keylog"])
        source.opener = self.pace.open

    def _watch(self, event: Opened | Closed) -> None:
        from kafkascope.captures.model import Closed

        if isinstance(event, Closed) and event.how in ("fin", "rst"):
            self._ends.append((event.connection.number, event.direction, event.how, event.time_ns))

    def run(self) -> None:
        """Read until the end of the input, or until the stop command."""
        source = self.capture.source
        self._send(
            {
                "kind": "opened",
                "names": source.names,
                "order": source.order,
                "size": source.size,
                "plaintext": self._plaintext.capacity,
            }
        )
        for target in (self._hand_over, self._listen):
            threading.Thread(target=target, daemon=True).start()
        self._read()
        self.end(rest=self.stopped and self.pace is None)

    # --- reading ----------------------------------------------------------------------------

    def _read(self) -> None:
        waiting, statistics, put = self._waiting, self.capture.source.statistics, 0
        for items in self.capture.batches():
            waiting.extend(items)
            self._look_for_schemas()
            read = statistics.captured_bytes
            if len(waiting) >= BATCH_EXCHANGES or read - put > BATCH_BYTES:
                self._put()
                put = read
            if self.stopped and self.pace is None:
                break
        self._put()

    def _look_for_schemas(self) -> None:
        """Take new schemas for the next batch. Only the main thread calls this: it adds schemas
        while it reads bodies."""
        if self._seen is not None and self._seen.changes != self._schemas_seen:
            new = self._seen.since(self._schemas_seen)
            self._schemas_seen = self._seen.changes
            self._schemas = [*(self._schemas or ()), *new]

    def _put(self) -> None:
        with self._lock:
            # The main thread may append meanwhile: iterating and then clearing would lose some.
            items = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if items and not self._ended:
                self._texts += self.session.extend(items)

    def _stop_reading(self) -> None:
        """Make the reader end at the next block."""
        assert self.pace is not None
        self._damage = len(self.capture.source.statistics.damage)
        self.pace.stopped = True
        self.capture.source.upto = self.pace.begun

    # --- the end ----------------------------------------------------------------------------

    def end(self, *, rest: bool) -> None:
        """Send the last rows and the remarks on the capture. `rest`: also requests in flight."""
        with self._pipe:
            for message in self._last(rest):
                self._send(message)

    def _last(self, rest: bool) -> list[dict[str, Any]]:
        from kafkascope.analyzer.reading.remarks import remarks

        if rest:
            self._waiting.extend(self.capture.in_flight())
        self._put()
        self._look_for_schemas()
        capture = self.capture
        with self._lock:
            if self._ended:
                return []
            self._ended = True
            batch = self._batch()
            places = list(capture.source.statistics.damage)
            if self._damage >= 0:
                places = places[: self._damage]
            elif capture.damage is not None and capture.damage not in places:
                places.append(capture.damage)
            texts = [*remarks(capture, verbose=False)]
            if self._full:
                texts.insert(0, LIST_FULL.format(self.session.rows_appended))
        damage = list(map(str, places))
        done = {"kind": "done", "damage": damage, "remarks": texts, "stopped": self.stopped}
        return [batch, done]

    # --- handing over -----------------------------------------------------------------------

    def _batch(self) -> dict[str, Any]:
        from kafkascope.analyzer.reading.remarks import nothing_found

        texts, self._texts = self._texts, []
        schemas, self._schemas = self._schemas, None
        source, rows = self.capture.source, self.session.rows_appended
        return {
            "kind": "rows",
            "delta": self._growth.take(self._limit),
            "count": rows,
            "empty": "" if rows else nothing_found(self.capture, so_far=not self._ended),
            "texts": texts,
            "ends": [self._ends.popleft() for _ in range(len(self._ends))],
            "read": source.statistics.captured_bytes,
            "spool": self.spool.state(),
            "plaintext": self._plaintext.state(),
            "kept": source.kept(),
            "following": self.pace is not None and self.pace.following,
            "schemas": schemas,
        }

    def _hand_over(self) -> None:
        wait = FIRST_INTERVAL
        while True:
            time.sleep(wait)
            with self._pipe:
                self._put()
                with self._lock:
                    if self._ended:
                        return
                    batch = self._batch()
                self._send(batch)
            self._sent += CONNECTION_BYTES * len(batch["delta"].get("connections", ()))
            if self._sent > self._max_sent > 0 and not self.stopped:
                self._full = self.stopped = True
                if self.pace is not None:
                    self._stop_reading()
            if batch["count"]:
                wait = INTERVAL

    def fail(self, text: str, code: int) -> None:
        """Send the reason of a failure, after a batch that another thread may be sending."""
        with self._pipe:
            self._send(_failure(text, code))

    def _send(self, message: dict[str, Any]) -> None:
        self._sent += send(self._results, message)

    def _listen(self) -> None:
        """Take commands; the pipe ends with the UI, and this process with it."""
        while True:
            command = os.read(self._commands, 1)
            if not command:
                os._exit(0)
            if command != STOP:
                continue
            if self.stopped:
                continue
            self.stopped = True
            if self.pace is not None:
                self._stop_reading()
            else:
                before = -1
                while before != self.session.rows_appended:
                    before = self.session.rows_appended
                    time.sleep(IDLE)
                # Not by the main thread: it may wait for packets that never come.
                self.end(rest=True)
                os._exit(0)


def _failure(text: str, code: int) -> dict[str, Any]:
    return {"kind": "failed", "text": text, "code": code}


def _spool(options: dict[str, Any]) -> Spool:
    from kafkascope.captures.inputs.spool import Spool

    # Only one object may own the descriptor: the first of two would close it for the other.
    if not options.get("output"):
        return Spool(descriptor=options["spool"])
    from kafkascope.captures.inputs.spool import Tee
    from kafkascope.private import PrivateFile

    copy = PrivateFile(options["output"], buffering=0).published()
    return Tee(copy, descriptor=options["spool"])


def _opened(options: dict[str, Any], spool: Spool) -> OpenInput:
    from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
    from kafkascope.captures.inputs.keylogs import follow_key_logs

    ports, legs, keylog = within(options["ports"]), options["legs"], options["keylog"]
    if options.get("interface"):
        from kafkascope.captures.live import open_interface

        source = open_interface(options["interface"], options["capture_filter"], spool=spool)
        log = follow_key_logs(keylog)
        return OpenInput(source, decode_as=ports, legs=legs, log=log, live=True)
    how: dict[str, Any] = {"decode_as": ports, "legs": legs, "keylog": keylog}
    how["zone"] = options.get("zone", "")
    return open_capture(options["inputs"], spool=spool, grows=options.get("grows", False), **how)


def main() -> None:
    """Run with the options in the first argument, which are JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    options = json.loads(sys.argv[1])
    indexer = None
    try:
        indexer = Indexer(options)
        indexer.run()
    except Exception as error:
        from kafkascope.analyzer.commands.failures import explain

        failure = explain(error)
        text = f"the reader failed: internal error ({error})" if failure is None else failure.text
        code = 1 if failure is None else failure.code
        if indexer is not None:
            indexer.fail(text, code)
        else:
            send(options["results"], _failure(text, code))
    finally:
        os._exit(0)  # a thread may wait for a pipe


if __name__ == "__main__":
    main()
