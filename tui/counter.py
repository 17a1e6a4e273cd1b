"""The counting process of the terminal UI: reads the inputs once more, for the statistics alone,
and hands their states over. Started by `tui.numbers` when a screen first wants numbers, so that the
list of exchanges never waits for them.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import time
from typing import Any, Final

from analyzer.spans import within
from tui.indexer import send

FIRST: Final = 0.15
"""Seconds until the first states are handed over."""
LEAST: Final = 0.5
SHARE: Final = 10
"""So many times longer than handing over takes, the next one is away at least."""
TICK: Final = 64
"""Exchanges between two looks at the clock."""


def count(options: dict[str, Any], results: int) -> None:
    """Count all that the filter wants, and hand over from time to time."""
    from analyzer import rows
    from analyzer.filter import compile_filter
    from analyzer.findings import accumulators
    from analyzer.offline import open_capture

    wanted = compile_filter(options["filter"])
    ports = within(options["ports"])
    capture = open_capture(options["inputs"], decode_as=ports, legs=options["legs"])
    counted: dict[str, Any] = {**accumulators()}
    if not options["filter"]:
        watchers = [each.saw for each in counted.values() if hasattr(each, "saw")]

        def watch(event: Any) -> None:
            for watcher in watchers:
                watcher(event)

        capture.watch = watch
    adds = [each.add for each in counted.values()]
    names = capture.context.names
    due = time.monotonic() + FIRST
    for seen, exchange in enumerate(capture.exchanges()):
        row = rows.row_of(exchange, names)
        if wanted(row, exchange):
            for add in adds:
                add(row, exchange)
        if not seen % TICK and time.monotonic() > due:
            begun = time.monotonic()
            _send(results, counted, done=False)
            spent = time.monotonic() - begun
            due = time.monotonic() + max(LEAST, SHARE * spent)
    _send(results, counted, done=True)


def _send(results: int, counted: dict[str, Any], *, done: bool) -> None:
    states = {name: pickle.dumps(each.dump(), protocol=5) for name, each in counted.items()}
    send(results, {"states": states, "done": done})


def main() -> None:
    """Run with the options in the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = json.loads(sys.argv[1])
    os.nice(5)  # the list of exchanges comes first
    try:
        count(options, options["results"])
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
