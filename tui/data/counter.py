"""The counting process of the terminal UI: reads the inputs once more, for the statistics alone,
and hands their states over. `tui.data.numbers` starts it when a screen first needs numbers, so that
the list of exchanges never waits for them. A file that is still being written is followed, as in
the list.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import time
from typing import Any, Final

from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.exchanges.seen_schemas import seen_in
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import accumulators
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.analyzer.reading.schemas import payloads_for
from kafkascope.analyzer.spans import within
from kafkascope.analyzer.statistics.feed import Feed
from kafkascope.captures.inputs.growing import Pace
from kafkascope.captures.inputs.opening import is_regular
from kafkascope.tui.data.pipes import send

# Seconds until the first states are handed over.
FIRST: Final = 0.15
LEAST: Final = 0.5
# The next states are handed over at the earliest after this many times as long as that took.
SHARE: Final = 10
# Exchanges between two checks of the clock.
TICK: Final = 64


def count(options: dict[str, Any], results: int) -> None:
    """Count all matching the filter, and hand states over from time to time."""
    wanted = compile_filter(options["filter"])
    how = {
        "decode_as": within(options["ports"]),
        "legs": options["legs"],
        "keylog": options["keylog"],
    }
    capture = open_capture(options["inputs"], zone=options["zone"], **how)
    capture.live = options["grows"]
    schemas = SchemaOptions(*options["schemas"])
    payloads = payloads_for(schemas, lambda: seen_in(options["inputs"], **how), quiet=True)
    counted: dict[str, Any] = {**accumulators(payloads)}
    if not options["filter"]:
        watchers = [each.saw for each in counted.values() if hasattr(each, "saw")]

        def watch(event: Any) -> None:
            for watcher in watchers:
                watcher(event)

        capture.watch = watch
    capture.named = counted["cluster"].named
    feed = Feed(counted.values())
    names = capture.context.names
    states = States(results, feed, counted, capture, _followed(capture))
    for seen, exchange in enumerate(capture.exchanges()):
        row = row_of(exchange, names)
        if wanted(row, exchange):
            feed.add(row, exchange)
        states.new = True
        if not seen % TICK:
            states.offer()
    states.send(done=True)


def _followed(capture: OpenInput) -> Pace:
    """Return what waits at the end of files that are still being written."""
    names = capture.source.names
    pace = Pace(len(names) - 1)
    if all(map(is_regular, names)):
        capture.source.opener = pace.open
    return pace


class States:
    """Hands the accumulators over, within limits."""

    def __init__(
        self, results: int, feed: Feed, counted: dict[str, Any], capture: OpenInput, pace: Pace
    ) -> None:
        self._results, self._feed, self._counted = results, feed, counted
        self._source, self._pace = capture.source, pace
        self._due = time.monotonic() + FIRST
        self._followed = False
        """Whether the last states say that the file is followed."""
        self.new = True
        """Whether something was counted since."""
        pace.resting = self.offer

    def offer(self) -> None:
        """Hand states over, if it is time and there is something new."""
        begun = time.monotonic()
        if begun < self._due or not (self.new or self._pace.following > self._followed):
            return
        self.send(done=False)
        ended = time.monotonic()
        self._due = ended + max(LEAST, SHARE * (ended - begun))

    def send(self, *, done: bool) -> None:
        """Hand states over, with how much of the input was counted."""
        self._feed.settle()
        states = {
            name: pickle.dumps(each.dump(), protocol=5) for name, each in self._counted.items()
        }
        read, size = self._source.statistics.captured_bytes, self._source.size
        self.new, self._followed = False, self._pace.following
        send(
            self._results,
            {
                "states": states,
                "done": done,
                "following": self._pace.following,
                "share": 100 * read // size if 0 < read < size else None,
            },
        )


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = json.loads(sys.argv[1])
    os.nice(5)  # the list of exchanges comes first
    try:
        count(options, options["results"])
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
