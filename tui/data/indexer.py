"""The reading process of the terminal UI: reads the inputs and hands over, ten times a second, what
its session has grown by. Knows nothing of screens.

`tui.data.feed` starts it as a program of its own, so that parsing never shares an interpreter with
the keyboard. Messages go through a pipe, each a size and a pickle; a second pipe brings commands.

Files are read twice: first for headers alone, so that rows come soon, then in the same way with
bodies, in a thread that only runs while the first reader has nothing to do. Pipes, interfaces and
what is decrypted with a key log are read once, with bodies.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import struct
import sys
import threading
import time
from array import array
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.spans import within

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import Capture
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.payloads.model import Schema
    from kafkascope.captures.inputs.growing import Pace
    from kafkascope.captures.inputs.spool import Spool
    from kafkascope.captures.model import Closed, Opened

SIZE: Final = struct.Struct(">Q")
FIRST: Final = 0.02
"""Seconds until the first rows are handed over."""
TICK: Final = 0.1
GRACE: Final = 0.3
"""Seconds without a new exchange after which a stopped reader counts as waiting for input."""
STOP: Final = b"s"
TOGETHER: Final = 256
"""Exchanges that go into the columns together, from how many bytes of the input at most."""
HELD: Final = 1 << 22
GC_THRESHOLD: Final = 100_000
"""New objects after which garbage is collected. Messages make hardly any cycles; the default, 700,
costs a fifth of the time."""
CHANGED: Final = "the input is another one than before: summaries are missing from exchange {} on"


class Indexer:
    """Reads headers in the main thread, bodies in another; two more hand over and take commands."""

    def __init__(self, options: dict[str, Any]) -> None:
        from kafkascope.analyzer.session.deltas import Growth
        from kafkascope.analyzer.session.session import Session

        self._results: int = options["results"]
        self._commands: int = options["commands"]
        self.spool = _spool(options)
        self._limit: int = options.get("limit", 0)
        self.capture = _opened(options, self.spool)
        self._plaintext = self.capture.plaintext(options["plaintext"])
        self.second: Capture | None = None
        """The same inputs for bodies, where these are read later."""
        self.pace: Pace | None = None
        """What follows files that are still being written."""
        if self._again(options):
            self.capture.context.bodies = False
        whole = self.second or self.capture
        self.session = Session(
            whole.context, self.capture.source.read, plaintext=self.capture.plaintext
        )
        self._growth = Growth(self.session, forget=not self._limit)
        self._seen: SeenSchemas | None = None
        if options.get("schemas"):
            from kafkascope.analyzer.exchanges.seen_schemas import listen

            self._seen = listen(whole)
        self._schemas: list[Schema] | None = None
        """Schemas that were seen, where the UI has not been told yet."""
        self._schemas_seen = 0
        self._texts: list[str] = []
        self._numbers = array("Q")
        """Numbers of all exchanges, where bodies come later: these have to be of the same ones."""
        self._waiting: deque[Exchange] = deque()
        """Exchanges on the way to the columns."""
        self._full: list[Exchange] = []
        """Exchanges with bodies on the way to the columns."""
        self._filled = 0
        """How many rows have bodies."""
        self._ends: deque[tuple[int, int | None, str, int]] = deque()
        """(connection, side, how, when) of ends of connections: for captures that are exported."""
        self.capture.watch = self._watch
        self._lock = threading.Lock()
        self._pipe = threading.Lock()
        """Held from taking a batch until it is written: batches go out whole and in order."""
        self._ended = False
        self.stopped = False
        self._indexed = False
        """Whether all headers were read."""
        self._enough = False
        """Whether no more bodies are wanted."""
        self._damage = -1
        """How much damage there was when reading was stopped, which adds some; -1: it was not."""
        self._said: list[str] = []
        self._error: BaseException | None = None

    def _again(self, options: dict[str, Any]) -> bool:
        """Follow inputs that can be read twice; prepare the second reader, and return whether there
        is one."""
        from kafkascope.analyzer.exchanges.offline import Capture
        from kafkascope.captures import Source
        from kafkascope.captures.inputs.growing import Pace
        from kafkascope.captures.inputs.opening import is_regular

        names = self.capture.source.names
        if options.get("interface") or not all(map(is_regular, names)):
            return False
        if self.capture.source.order is not None:
            return False  # several files at once: bodies are read with the headers
        self.pace = Pace(len(names) - 1)
        self.capture.source.opener = self.pace.first
        if options["keylog"]:
            self.pace.impatient = True
            return False  # decrypting once with bodies is faster than twice
        source = Source(names)
        source.opener = self.pace.second
        self.second = Capture(source, decode_as=within(options["ports"]), legs=options["legs"])
        return True

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
        if self.second is None or self.pace is None:
            self._read()
            self.end(rest=self.stopped)
            return
        filling = threading.Thread(target=self._fill_guarded, daemon=True)
        filling.start()
        try:
            self._read()
        finally:
            self._indexed = True
            self.pace.through()
        filling.join()
        if self._error is not None:
            raise self._error
        self.end(rest=False)

    # --- reading ----------------------------------------------------------------------------

    def _read(self) -> None:
        """Read headers, and bodies, too, where they are not read later."""
        waiting, statistics, held = self._waiting, self.capture.source.statistics, 0
        later = self.second is not None
        for exchange in self.capture.exchanges():
            waiting.append(exchange)
            if not later:
                self._look_for_schemas()
            if len(waiting) >= TOGETHER or statistics.captured_bytes - held > HELD:
                self._put()
                held = statistics.captured_bytes
            if self.stopped and not later:
                break
        self._put()

    def _look_for_schemas(self) -> None:
        """Keep the schemas that came, for the next batch. Called by who reads bodies, as nobody
        else may look at what is being collected."""
        if self._seen is not None and self._seen.changes != self._schemas_seen:
            new = self._seen.since(self._schemas_seen)
            self._schemas_seen = self._seen.changes
            self._schemas = [*(self._schemas or ()), *new]

    def _put(self) -> None:
        """Put waiting exchanges into the columns."""
        with self._lock:
            some = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not some or self._ended:
                return
            if self.second is None:
                made = self._made(some)
                self.session.extend(some, made)
                self.session.fill(some, made)
            else:
                self.session.extend(some)
                self._numbers.extend([exchange.number for exchange in some])

    def _made(self, exchanges: list[Exchange]) -> list[Row]:
        from kafkascope.analyzer.exchanges.rows import result, row_of

        names = self.session.context.names
        made = [row_of(exchange, names) for exchange in exchanges]
        self._texts += [result(row) for row in made]
        return made

    def _fill_guarded(self) -> None:
        try:
            self._fill_all()
        except BaseException as error:  # it is raised again in the main thread
            self._error = error
            self._stop_reading()

    def _fill_all(self) -> None:
        """Read the bodies of all exchanges whose headers were read."""
        assert self.second is not None
        assert self.pace is not None
        self.pace.pausing = self._fill
        some, statistics, held = self._full, self.second.source.statistics, 0
        for exchange in self.second.exchanges():
            some.append(exchange)
            self._look_for_schemas()
            if len(some) >= TOGETHER or statistics.captured_bytes - held > HELD:
                self._fill()
                held = statistics.captured_bytes
            if self._enough:
                return
        self._fill()
        if self._filled < len(self._numbers) and not self._enough:
            self._said.append(CHANGED.format(self._filled + 1))

    def _fill(self) -> None:
        """Put bodies into the next rows, unless these are other exchanges."""
        begin, some = self._filled, self._full
        if not some or self._enough:
            return
        self._put()  # the first reader is always ahead
        if self._numbers[begin : begin + len(some)].tolist() != [each.number for each in some]:
            self._said.append(CHANGED.format(begin + 1))
            self._enough = True
            return
        with self._lock:
            self.session.fill(some, self._made(some))
        self._filled += len(some)
        some.clear()

    def _stop_reading(self) -> None:
        """Let the first reader end at the next block, and the second one at the same."""
        assert self.pace is not None
        assert self.second is not None
        self._damage = len(self.capture.source.statistics.damage)
        self.pace.stopped = True
        for each in (self.capture, self.second):
            each.source.upto = self.pace.begun

    # --- the end ----------------------------------------------------------------------------

    def end(self, *, rest: bool) -> None:
        """Hand over what is left, with remarks. `rest`: also requests in flight."""
        with self._pipe:
            for message in self._last(rest):
                self._send(message)

    def _last(self, rest: bool) -> list[dict[str, Any]]:
        from kafkascope.analyzer.reading.remarks import nothing_found, remarks

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
            said = [*self._said, *remarks(capture, verbose=False)]
            if not self.session.rows_told:
                said.insert(0, nothing_found(capture))
        damage = [str(each) for each in found]
        done = {"kind": "done", "damage": damage, "remarks": said, "stopped": self.stopped}
        return [batch, done]

    # --- handing over -----------------------------------------------------------------------

    def _batch(self) -> dict[str, Any]:
        texts, self._texts = self._texts, []
        schemas, self._schemas = self._schemas, None
        source, told = self.capture.source, self.session.rows_told
        return {
            "kind": "rows",
            "delta": self._growth.take(self._limit),
            "told": told,
            "texts": texts,
            "ends": [self._ends.popleft() for _ in range(len(self._ends))],
            "read": source.statistics.captured_bytes,
            "spool": self.spool.state(),
            "plaintext": self._plaintext.state(),
            "kept": source.kept(),
            "following": self.pace is not None and self.pace.following,
            "indexed": self._indexed,
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
            if batch["told"]:
                wait = TICK

    def fail(self, text: str, code: int) -> None:
        """Tell why nothing more comes, not in the middle of what another thread hands over."""
        with self._pipe:
            self._send(_failure(text, code))

    def _send(self, message: dict[str, Any]) -> None:
        send(self._results, message)

    def _listen(self) -> None:
        """Wait for commands; the end of the pipe is the end of the UI."""
        while True:
            command = os.read(self._commands, 1)
            if not command:
                os._exit(0)
            if command != STOP:
                continue
            first, self.stopped = not self.stopped, True
            if self.second is not None:
                # Once more ends the second reader, too.
                if first and not self._indexed:
                    self._stop_reading()
                else:
                    self._enough = True
            elif first:
                before = -1
                while before != self.session.rows_told:
                    before = self.session.rows_told
                    time.sleep(GRACE)
                # The main thread waits for packets that may never come.
                self.end(rest=True)
                os._exit(0)


def _failure(text: str, code: int) -> dict[str, Any]:
    return {"kind": "failed", "text": text, "code": code}


def send(results: int, message: dict[str, Any]) -> None:
    """Write a message to the UI, in as many pieces as its pipe takes."""
    data = pickle.dumps(message, protocol=5)
    view = memoryview(SIZE.pack(len(data)) + data)
    try:
        while view:
            view = view[os.write(results, view) :]
    except OSError:
        os._exit(0)  # the UI is gone


def messages(results: int) -> Iterator[bytes]:
    """Yield the pickles that `send` wrote, until the other process ends, be it in the middle."""
    with os.fdopen(results, "rb") as pipe:
        while len(head := pipe.read(SIZE.size)) == SIZE.size:
            size = SIZE.unpack(head)[0]
            data = pipe.read(size)
            if len(data) < size:
                return
            yield data


def _spool(options: dict[str, Any]) -> Spool:
    from kafkascope.captures.inputs.spool import Spool

    # One object for a descriptor: the first that goes would close it for the other.
    if not options.get("output"):
        return Spool(descriptor=options["spool"])
    from kafkascope.captures.inputs.private import PrivateFile
    from kafkascope.captures.inputs.tee import Tee

    copy = PrivateFile(options["output"], buffering=0).published()
    return Tee(copy, descriptor=options["spool"])


def _opened(options: dict[str, Any], spool: Spool) -> Capture:
    from kafkascope.analyzer.exchanges.offline import Capture, open_capture
    from kafkascope.captures.inputs.growing import being_written
    from kafkascope.captures.inputs.keylogs import follow_key_logs

    ports, legs, keylog = within(options["ports"]), options["legs"], options["keylog"]
    if options.get("interface"):
        from kafkascope.captures.live import open_interface

        source = open_interface(options["interface"], options["capture_filter"], spool=spool)
        return Capture(source, decode_as=ports, legs=legs, log=follow_key_logs(keylog))
    inputs = options["inputs"]
    grows = being_written(inputs[-1])
    return open_capture(inputs, decode_as=ports, legs=legs, spool=spool, keylog=keylog, grows=grows)


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
        text = f"the reader failed: {error!r}" if found is None else found.text
        code = 1 if found is None else found.code
        if indexer is not None:
            indexer.fail(text, code)
        else:
            send(options["results"], _failure(text, code))
    finally:
        os._exit(0)  # a thread may wait for a pipe


if __name__ == "__main__":
    main()
