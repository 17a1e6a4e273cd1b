"""Request logs of brokers to exchanges: the only module that joins texts and logged connections.

Files of several brokers, and rotated ones, are merged by the times of their lines. A line is
written when its request is complete, so exchanges begin in another order: they are numbered after
a window (`LogReader.settled`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from heapq import merge
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkascope.analyzer.conversation.logged import LoggedConnections, LoggedLine
from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.logs.joining import TOGETHER
from kafkascope.analyzer.requestlog.containers import LineReader
from kafkascope.analyzer.requestlog.model import NO_RESPONSES, Unparsed
from kafkascope.analyzer.requestlog.parsing import parse
from kafkascope.analyzer.requestlog.times import QUARTER_HOUR, LogClock
from kafkascope.analyzer.text import plural
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.inputs.opening import open_stream, spoken
from kafkascope.times import SECOND, zone_named

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.requestlog.model import Completed, LogLine
    from kafkascope.captures.inputs.files import Source

Entry: TypeAlias = "tuple[LogLine, Completed]"

# How long a request may take and still get its number by its begin: members wait for a rebalance as
# long as `max.poll.interval.ms`, 5 minutes.
WINDOW_NS: Final = 600_000_000_000
HOUR: Final = 3600 * SECOND


class LogReader:
    """Reads the texts of a source."""

    def __init__(
        self,
        source: Source,
        context: Context,
        zone: str = "",
        first_file: int = 0,
    ) -> None:
        """`zone`: name of that of times without one; empty: that of the line, or of this machine.
        `first_file`: index that the first input has in the context."""
        self.connections = LoggedConnections(context)
        self.lines = 0
        """Completed requests, each once."""
        self.copies = 0
        """Lines that an earlier input held as well."""
        self.unparsed: Counter[str] = Counter()
        """Lines that could not be read, by reason."""
        self.local = False
        """Whether times were read in this machine's zone."""
        self.ahead_ns: int | None = None
        """How far they are ahead of a capture with the same exchanges; None without one."""
        self.without_responses = False
        """Whether lines have no responses at all."""
        self.examples: list[str] = []
        self._source, self._first_file = source, first_file
        self._zone = zone_named(zone) if zone else None
        self._latest_ns = 0
        self._seen: dict[tuple[object, ...], list[tuple[int, set[int]]]] = {}
        """Time and inputs of each line of late."""

    @property
    def settled_ns(self) -> int:
        """Time before which no exchange begins that is still to come."""
        return max(0, self._latest_ns - WINDOW_NS)

    def exchanges(self, files: list[int]) -> Iterator[list[LoggedLine]]:
        """Yield the exchanges of some inputs as they are complete, empty lists where nothing comes
        for a while."""
        if len(files) == 1:
            for entries in self._entries(files[0]):
                yield [self._taken(files[0], entry) for entry in entries]
            return
        some: list[LoggedLine] = []
        for file, entry in self._merged(files):
            if not self._is_copy(file, entry[1]):
                some.append(self._taken(file, entry))
            if len(some) >= TOGETHER:
                yield some
                some = []
        yield some

    def remarks(self) -> Iterator[str]:
        """Yield sentences about what could not be read, and how."""
        if self.unparsed:
            count = sum(self.unparsed.values())
            reasons = ", ".join(f"{n} {reason}" for reason, n in self.unparsed.most_common())
            first = "; ".join(self.examples)
            yield f"{plural(count, 'line')} of request logs not read: {reasons} ({first})"
        if self.copies:
            yield f"{plural(self.copies, 'line')} in several inputs, read once"
        apart_ns = round((self.ahead_ns or 0) / QUARTER_HOUR) * QUARTER_HOUR
        if apart_ns:
            side = "ahead of" if apart_ns > 0 else "behind"
            yield (
                f"times of request logs are {abs(apart_ns) / HOUR:g} h {side} those of the "
                "capture: set --time-zone to the zone of the broker"
            )
        elif self.local and self.ahead_ns is None:
            yield "request logs name no time zone: read in this machine's (set --time-zone)"

    def left_out(self) -> str:
        """Return the sentence about what findings cannot be about."""
        lacking = (
            "connects and closes, logins, TLS, packets and sizes on the wire, contents of records"
        )
        if self.without_responses:
            lacking += "; before 1.0 responses, and with them errors and offsets"
        return f"request logs do not show {lacking}: no finding is about these (docs/requestlog.md)"

    def _taken(self, file: int, entry: Entry) -> LoggedLine:
        self.lines += 1
        self._latest_ns = max(self._latest_ns, entry[1].written_ns)
        self.without_responses |= entry[1].response.gap == NO_RESPONSES
        return self.connections.take(self._first_file + file, *entry)

    def _is_copy(self, file: int, completed: Completed) -> bool:
        # A broker that logs to a file and to standard output may have two patterns: one of them
        # with whole seconds, or with microseconds.
        about = (
            *(completed.connection, completed.correlation_id),
            *(completed.api_key, completed.total_ns),
        )
        written_ns, before = completed.written_ns, self._seen.get(about, [])
        for time_ns, files in before:
            if file not in files and written_ns - time_ns < SECOND:
                files.add(file)
                self.copies += 1
                return True
        recent = [each for each in before if written_ns - each[0] < SECOND]
        self._seen[about] = [*recent, (written_ns, {file})]
        if len(self._seen) > LIMITS.remembered_lines:
            del self._seen[next(iter(self._seen))]
        return False

    def _entries(self, file: int) -> Iterator[Iterator[Entry]]:
        """Yield the completed requests of an input, those of a block at a time. Each is parsed when
        it is due: the bodies of a block are a hundred thousand objects."""
        reader, clock = LineReader(), LogClock(self._zone)
        for data in self._source.text(file):
            yield self._parsed(file, clock, reader.feed(data))
        yield self._parsed(file, clock, reader.finish())
        self.local = self.local or clock.source == "machine"

    def _parsed(
        self, file: int, clock: LogClock, lines: list[LogLine | Unparsed]
    ) -> Iterator[Entry]:
        for line in lines:
            found = line if isinstance(line, Unparsed) else parse(line, clock)
            if isinstance(found, Unparsed):
                self._note(file, found)
            elif not isinstance(line, Unparsed):
                yield line, found

    def _note(self, file: int, line: Unparsed) -> None:
        self.unparsed[line.reason] += 1
        if len(self.examples) < LIMITS.named_lines:
            self.examples.append(f"line {line.number} of {spoken(self._source.names[file])}")

    def _merged(self, files: list[int]) -> Iterator[tuple[int, Entry]]:
        """Yield the completed requests of some inputs in the order of their times."""
        for _, file, entry in merge(*map(self._timed, files), key=itemgetter(0, 1)):
            if entry is not None:
                yield file, entry

    def _timed(self, file: int) -> Iterator[tuple[int, int, Entry | None]]:
        """Yield the completed requests of an input with their times; before them that of the first
        one, so that the input is opened when this is due: rotated files are many."""
        yield self._first_ns(file), file, None
        for entry in chain.from_iterable(self._entries(file)):
            yield entry[1].written_ns, file, entry

    def _first_ns(self, file: int) -> int:
        """Return the time of the first line of an input; 0 where that is unknown."""
        with suppress(CaptureError):
            stream, head, _ = open_stream(self._source.names[file])
            stream.close()
            clock = LogClock(self._zone)
            for line in LineReader().feed(head):
                if not isinstance(line, Unparsed):
                    found = parse(line, clock)
                    if not isinstance(found, Unparsed):
                        return found.written_ns
        return 0
