"""The reading process of the terminal UI: reads the inputs and hands over, ten times a second, what
its session has grown by. Knows nothing of screens.

`tui.data.feed` starts it as a program of its own, so that parsing never shares an interpreter with
the keyboard. Messages go through a pipe, each a size and a pickle; a second pipe brings commands.

Bodies are read short (`Context.whole`): what a screen shows of a message, it reads again.
"""

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
    from kafkascope.analyzer.payloads.model import Schema
    from kafkascope.captures.inputs.growing import Pace
    from kafkascope.captures.inputs.spool import Spool
    from kafkascope.captures.model import Closed, Opened

# Seconds until the first rows are handed over.
FIRST: Final = 0.02
TICK: Final = 0.1
# Seconds without a new exchange after which a stopped reader counts as waiting for input.
GRACE: Final = 0.3
# Exchanges that go into the columns together, from how many bytes of the input at most.
TOGETHER: Final = 256
HELD: Final = 1 << 22
# What a connection takes in both processes, beyond its bytes in the pipe.
CONNECTION_BYTES: Final = 1_500
ENOUGH: Final = (
    "there is more: the list holds the first {:,} exchanges, the other screens count all; "
    "`kafkascope cut` chooses those for a smaller capture"
)
# New objects after which garbage is collected. Messages make hardly any cycles; the default, 700,
# costs a fifth of the time.
GC_THRESHOLD: Final = 100_000


class Indexer:
    """Reads in the main thread; two other threads hand over and take commands."""

    def __init__(self, options: dict[str, Any]) -> None:
        from kafkascope.analyzer.session.deltas import Growth
        from kafkascope.analyzer.session.session import Session

        self._results: int = options["results"]
        self._commands: int = options["commands"]
        self.spool = _spool(options)
        self._limit: int = options.get("limit", 0)
        self._most: int = options.get("most", 0)
        """Bytes that may be handed over, of input with an end; 0: any number."""
        self._sent = 0
        self._enough = False
        """Whether reading ended because the UI has as much as it may keep."""
        self.capture = _opened(options, self.spool)
        self._plaintext = self.capture.plaintext(options["plaintext"])
        self.pace: Pace | None = None
        """What follows files that are still being written."""
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
        """Schemas that were seen, where the UI has not been told yet."""
        self._schemas_seen = 0
        self._texts: list[str] = []
        self._waiting: deque[Item] = deque()
        """Exchanges on the way to the columns."""
        self._ends: deque[tuple[int, int | None, str, int]] = deque()
        """(connection, side, how, when) of ends of connections: for captures that are exported."""
        self.capture.watch = self._watch
        self._lock = threading.Lock()
        self._pipe = threading.Lock()
        """Held from taking a batch until it is written: batches go out whole and in order."""
        self._ended = False
        self.stopped = False
        self._damage = -1
        """How much damage there was when reading was stopped, which adds some; -1: it was not."""

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
        """Read until the end, or until told to stop."""
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
        waiting, statistics, held = self._waiting, self.capture.source.statistics, 0
        for items in self.capture.batches():
            waiting.extend(items)
            self._look_for_schemas()
            if len(waiting) >= TOGETHER or statistics.captured_bytes - held > HELD:
                self._put()
                held = statistics.captured_bytes
            if self.stopped and self.pace is None:
                break
        self._put()

    def _look_for_schemas(self) -> None:
        """Keep the schemas that came, for the next batch. Called only by the reader of bodies,
        which owns the collected schemas."""
        if self._seen is not None and self._seen.changes != self._schemas_seen:
            new = self._seen.since(self._schemas_seen)
            self._schemas_seen = self._seen.changes
            self._schemas = [*(self._schemas or ()), *new]

    def _put(self) -> None:
        with self._lock:
            some = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if some and not self._ended:
                self._texts += self.session.extend(some)

    def _stop_reading(self) -> None:
        """Let the reader end at the next block."""
        assert self.pace is not None
        self._damage = len(self.capture.source.statistics.damage)
        self.pace.stopped = True
        self.capture.source.upto = self.pace.begun

    # --- the end ----------------------------------------------------------------------------

    def end(self, *, rest: bool) -> None:
        """Hand over what is left, with remarks. `rest`: also requests in flight."""
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
            found = list(capture.source.statistics.damage)
            if self._damage >= 0:
                found = found[: self._damage]
            elif capture.damage is not None and capture.damage not in found:
                found.append(capture.damage)
            said = [*remarks(capture, verbose=False)]
            if self._enough:
                said.insert(0, ENOUGH.format(self.session.rows_told))
        damage = [str(each) for each in found]
        done = {"kind": "done", "damage": damage, "remarks": said, "stopped": self.stopped}
        return [batch, done]

    # --- handing over -----------------------------------------------------------------------

    def _batch(self) -> dict[str, Any]:
        from kafkascope.analyzer.reading.remarks import nothing_found

        texts, self._texts = self._texts, []
        schemas, self._schemas = self._schemas, None
        source, told = self.capture.source, self.session.rows_told
        return {
            "kind": "rows",
            "delta": self._growth.take(self._limit),
            "told": told,
            "empty": "" if told else nothing_found(self.capture, so_far=not self._ended),
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
        wait = FIRST
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
            if self._sent > self._most > 0 and not self.stopped:
                self._enough = self.stopped = True
                if self.pace is not None:
                    self._stop_reading()
            if batch["told"]:
                wait = TICK

    def fail(self, text: str, code: int) -> None:
        """Tell why nothing more comes, not in the middle of what another thread hands over."""
        with self._pipe:
            self._send(_failure(text, code))

    def _send(self, message: dict[str, Any]) -> None:
        self._sent += send(self._results, message)

    def _listen(self) -> None:
        """Wait for commands; the end of the pipe is the end of the UI."""
        while True:
            command = os.read(self._commands, 1)
            if not command:
                os._exit(0)
            if command != STOP:
                continue
            first, self.stopped = not self.stopped, True
            if not first:
                continue
            if self.pace is not None:
                self._stop_reading()
            else:
                before = -1
                while before != self.session.rows_told:
                    before = self.session.rows_told
                    time.sleep(GRACE)
                # The main thread waits for packets that may never come.
                self.end(rest=True)
                os._exit(0)


def _failure(text: str, code: int) -> dict[str, Any]:
    return {"kind": "failed", "text": text, "code": code}


def _spool(options: dict[str, Any]) -> Spool:
    from kafkascope.captures.inputs.spool import Spool

    # One object for a descriptor: the first that goes would close it for the other.
    if not options.get("output"):
        return Spool(descriptor=options["spool"])
    from kafkascope.captures.inputs.private import PrivateFile
    from kafkascope.captures.inputs.spool import Tee

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
    """Run with the options in the first argument; the last message says how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    options = json.loads(sys.argv[1])
    indexer = None
    try:
        indexer = Indexer(options)
        indexer.run()
    except Exception as error:
        from kafkascope.analyzer.commands.failures import explain

        found = explain(error)
        text = f"the reader failed: internal error ({error})" if found is None else found.text
        code = 1 if found is None else found.code
        if indexer is not None:
            indexer.fail(text, code)
        else:
            send(options["results"], _failure(text, code))
    finally:
        os._exit(0)  # a thread may wait for a pipe


if __name__ == "__main__":
    main()
