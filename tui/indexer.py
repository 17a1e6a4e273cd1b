"""The reading process of the terminal UI: reads the inputs and hands over, ten times a second, what
its session has grown by. Knows nothing of screens.

Started by `tui.feed` as a program of its own, so that parsing never shares an interpreter with the
keyboard. Messages go through a pipe, each a size and a pickle; a second pipe brings commands.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from analyzer.offline import Capture
    from captures.spool import Spool

SIZE: Final = struct.Struct(">Q")
FIRST: Final = 0.02
"""Seconds until the first rows are handed over."""
TICK: Final = 0.1
GRACE: Final = 0.3
"""Seconds without a new exchange after which a stopped reader counts as waiting for input."""
STOP: Final = b"s"


class Indexer:
    """Reads in the main thread; another one hands over."""

    def __init__(self, options: dict[str, Any]) -> None:
        from analyzer.session import Session
        from analyzer.session_deltas import Growth

        self._results: int = options["results"]
        self._commands: int = options["commands"]
        self.spool = _spool(options)
        self._limit: int = options.get("limit", 0)
        self.capture = _opened(options, self.spool)
        self.session = Session(self.capture.context, self.capture.source.read)
        self._growth = Growth(self.session)
        self._texts: list[str] = []
        self._lock = threading.Lock()
        self._pipe = threading.Lock()
        """Held from taking a batch until it is written: batches go out whole and in order."""
        self._ended = False
        self.stopped = False

    def run(self) -> None:
        """Read all, until the end or until told to stop."""
        from analyzer import rows

        source = self.capture.source
        self._send({"kind": "opened", "names": source.names, "size": source.size})
        for target in (self._hand_over, self._listen):
            threading.Thread(target=target, daemon=True).start()
        names = self.capture.context.names
        for exchange in self.capture.exchanges():
            row = rows.row_of(exchange, names)
            text = rows.result(row)
            with self._lock:
                if self._ended:
                    return
                self.session.add(exchange, row)
                self._texts.append(text)
            if self.stopped:
                break
        self.end(rest=self.stopped)

    def end(self, *, rest: bool) -> None:
        """Hand over what is left, with what there is to say. `rest`: also what is in flight."""
        with self._pipe:
            for message in self._last(rest):
                self._send(message)

    def _last(self, rest: bool) -> list[dict[str, Any]]:
        from analyzer import rows
        from analyzer.commands.remarks import nothing_found, remarks

        with self._lock:
            if self._ended:
                return []
            self._ended = True
            if rest:
                for exchange in self.capture.in_flight():
                    row = rows.row_of(exchange, self.capture.context.names)
                    self.session.add(exchange, row)
                    self._texts.append(rows.result(row))
            batch = self._batch()
            damage = [str(each) for each in self.capture.source.statistics.damage]
            if self.capture.damage is not None and str(self.capture.damage) not in damage:
                damage.append(str(self.capture.damage))
            said = list(remarks(self.capture, verbose=False))
            if not len(self.session):
                said.insert(0, nothing_found(self.capture))
        done = {"kind": "done", "damage": damage, "remarks": said, "stopped": self.stopped}
        return [batch, done]

    def _batch(self) -> dict[str, Any]:
        texts, self._texts = self._texts, []
        source = self.capture.source
        return {
            "kind": "rows",
            "delta": self._growth.take(self._limit),
            "texts": texts,
            "read": source.statistics.captured_bytes,
            "spool": self.spool.state(),
            "kept": source.kept(),
        }

    def _hand_over(self) -> None:
        wait = FIRST
        while True:
            time.sleep(wait)
            with self._pipe:
                with self._lock:
                    if self._ended:
                        return
                    batch = self._batch()
                self._send(batch)
            if batch["texts"]:
                wait = TICK

    def _send(self, message: dict[str, Any]) -> None:
        data = pickle.dumps(message, protocol=5)
        view = memoryview(SIZE.pack(len(data)) + data)
        try:
            while view:
                view = view[os.write(self._results, view) :]
        except OSError:
            os._exit(0)  # the UI is gone

    def _listen(self) -> None:
        """Wait for commands; the end of the pipe is the end of the UI."""
        while True:
            command = os.read(self._commands, 1)
            if not command:
                os._exit(0)
            if command == STOP and not self.stopped:
                self.stopped = True
                before = -1
                while before != len(self.session):
                    before = len(self.session)
                    time.sleep(GRACE)
                # The main thread waits for packets that may never come.
                self.end(rest=True)
                os._exit(0)


def _spool(options: dict[str, Any]) -> Spool:
    from captures.spool import Spool

    # One object for a descriptor: the first that goes would close it for the other.
    if not options.get("output"):
        return Spool(descriptor=options["spool"])
    from captures.tee import Tee

    return Tee(options["output"], descriptor=options["spool"])


def _opened(options: dict[str, Any], spool: Spool) -> Capture:
    from analyzer.offline import Capture, open_capture

    ports, legs = options["ports"], options["legs"]
    if options.get("interface"):
        from captures.live import open_interface

        source = open_interface(options["interface"], options["capture_filter"], spool=spool)
        return Capture(source, decode_as=ports, legs=legs)
    return open_capture(options["inputs"], decode_as=ports, legs=legs, spool=spool)


def main() -> None:
    """Run with the options in the first argument; the last message says how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = json.loads(sys.argv[1])
    try:
        Indexer(options).run()
    except Exception as error:
        from analyzer.commands.failures import explain

        found = explain(error)
        text = f"the reader failed: {error!r}" if found is None else found.text
        message = {"kind": "failed", "text": text, "code": 1 if found is None else found.code}
        data = pickle.dumps(message, protocol=5)
        try:
            os.write(options["results"], SIZE.pack(len(data)) + data)
        except OSError:
            pass
    finally:
        os._exit(0)  # a thread may wait for a pipe


if __name__ == "__main__":
    main()
