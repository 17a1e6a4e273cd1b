"""Rows that several processes read, put together: what a worker of a pool does for the reading
process, what it tells of a block, and how that is taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import renamed, result
from kafkascope.analyzer.payloads.model import is_too_much
from kafkascope.analyzer.pool.jobs import LARGE, jobs_for
from kafkascope.analyzer.pool.messages import Alone, Work
from kafkascope.analyzer.session.deltas import Growth
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.spans import within
from kafkascope.analyzer.topics import nameless as is_nameless
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.growing import being_written
from kafkascope.captures.inputs.opening import open_at, open_stream
from kafkascope.captures.inputs.spool import NotKept
from kafkascope.captures.model import Closed

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import Capture
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.payloads.gathered import Gathered, Said
    from kafkascope.analyzer.pool.gathering import Gathering
    from kafkascope.analyzer.pool.messages import BlockReport
    from kafkascope.analyzer.pool.processes import Pool
    from kafkascope.analyzer.session.deltas import Delta
    from kafkascope.captures.model import Opened

BEGINNING: Final = 1 << 18
"""Bytes of the input that may be read before workers are started."""

End = tuple[int, int | None, str, int]
"""Connection, side, how, when."""
Call = tuple[int, str, tuple[Any, ...]]
"""Moment, method of `Gathered`, arguments."""


class PartOfBlock(NamedTuple):
    """What a worker tells of a block."""

    delta: Delta
    texts: list[str]
    nameless: dict[int, str | Row]
    """By index of the text: what stands in it for the one topic, whose name others may know; of
    several topics, the row."""
    ends: list[tuple[int, End]]
    """With moments."""
    said: list[Call]
    """What was said about schemas."""
    journals: list[tuple[str | bytes, bool]]
    """Topics, and whether they are those of a registry."""


class Part:
    """A worker's share of the rows."""

    def __init__(self) -> None:
        self._session = Session(Context(), _nothing)
        self._growth = Growth(self._session, forget=True)
        self._exchanges: list[Exchange] = []
        self._rows: list[Row] = []
        self._ends: list[tuple[int, End]] = []
        self._moment: Callable[[], int] = int
        self._seen: SeenSchemas | None = None
        self._said = Heard()
        self._journals = 0

    def begin(self, capture: Capture, moment: Callable[[], int]) -> None:
        """Take what tells the moment."""
        self._moment = moment

    def listen(self, capture: Capture, moment: Callable[[], int]) -> None:
        """The same, and take note of the schemas in a capture."""
        from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas

        self._moment = self._said.moment = moment
        self._seen = SeenSchemas(capture.context.names, self._said)
        capture.context.http = self._seen

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take an exchange. Raises `Alone`."""
        if exchange.connection.decrypted:
            raise Alone  # bytes that no file has are kept by who reads them
        self._rows.append(row)
        self._exchanges.append(exchange)
        if self._seen is not None:
            self._seen.exchange(exchange)

    def saw(self, event: Opened | Closed) -> None:
        """Take the beginning or end of a connection."""
        if isinstance(event, Closed) and event.how in ("fin", "rst"):
            end = event.connection.number, event.direction, event.how, event.time_ns
            self._ends.append((self._moment(), end))

    def told(self) -> PartOfBlock:
        """Return what is new since the last call."""
        exchanges, self._exchanges = self._exchanges, []
        rows, self._rows = self._rows, []
        ends, self._ends = self._ends, []
        self._session.extend(exchanges, rows)
        nameless: dict[int, str | Row] = {
            index: row.topics[0] if len(row.topics) == 1 else row
            for index, row in enumerate(rows)
            if row.topics and any(map(is_nameless, row.topics))
        }
        journals: list[tuple[str | bytes, bool]] = []
        if self._seen is not None:
            journals = list(islice(self._seen.journals.items(), self._journals, None))
            self._journals += len(journals)
        delta, texts = self._growth.take(), [result(row) for row in rows]
        return PartOfBlock(delta, texts, nameless, ends, self._said.taken(), journals)


class Heard:
    """Stands in for `Gathered`: remembers what is said, for another process."""

    def __init__(self) -> None:
        self._said: list[Call] = []
        self.moment: Callable[[], int] = int

    def add(self, place: str, origin: str, said: Said) -> None:
        """Remember what somebody said of a schema."""
        self._said.append((self.moment(), "add", (place, origin, said)))

    def leave_out(self, origin: str, data: bytes) -> None:
        """Remember what is left out."""
        if is_too_much(data):
            self._said.append((self.moment(), "leave_out", (origin, data)))

    def taken(self) -> list[Call]:
        """Return what is new since the last call."""
        said, self._said = self._said, []
        return said


def work_of(*, schemas: bool) -> Work:
    """Return what each worker does. `schemas`: whether it looks for schemas."""
    part = Part()
    begins = part.listen if schemas else part.begin
    return Work(adds=[part.add], saws=[part.saw], begins=begins, block=part.told, whole=False)


def may_share(options: dict[str, Any], capture: Capture) -> bool:
    """Return whether workers may read an open capture, if it is divided."""
    source, wanted = capture.source, options.get("jobs", 0)
    if wanted == 1 or (source.size < LARGE and not wanted) or being_written(source.names[-1]):
        return False
    return not any(map(_is_compressed, source.names))  # their bytes are kept by who reads them


def started(
    options: dict[str, Any], capture: Capture, inherited: Sequence[int], *, schemas: bool
) -> Pool | None:
    """Start workers on an open capture where they may read it, and are worth it. `inherited`: what
    they must not keep open."""
    source = capture.source
    jobs = jobs_for(source, options.get("jobs", 0))
    if not jobs:
        return None
    from kafkascope.analyzer.exchanges.offline import Capture
    from kafkascope.analyzer.pool.processes import Pool

    def opened() -> Capture:
        for descriptor in inherited:
            os.close(descriptor)
        again = Source(source.names)
        again.size = source.size
        return Capture(again, decode_as=within(options["ports"]), legs=options["legs"])

    try:
        return Pool(jobs, source.names, opened, work_of(schemas=schemas))
    except Alone:
        return None


class _Enough(Exception):
    """The beginning of an input was read."""


def beginning(capture: Capture, options: dict[str, Any], count: int) -> list[Exchange]:
    """Return the first exchanges of an input, `count` at most, as far as a piece of it tells: they
    are shown while workers start."""
    from kafkascope.analyzer.exchanges.offline import Capture

    left = BEGINNING

    class Piece:
        def __init__(self, name: str) -> None:
            self._stream = open_at(name, 0)
            self.close = self._stream.close
            self.peek = self._stream.peek

        def readinto(self, buffer: memoryview, /) -> int | None:
            nonlocal left
            if not left:
                raise _Enough
            size = self._stream.readinto(buffer[:left]) or 0
            left -= size
            return size

    source = Source(capture.source.names)
    source.opener = lambda _, name: Piece(name)
    found: list[Exchange] = []
    with Capture(source, decode_as=within(options["ports"]), legs=options["legs"]) as first:
        first.context.whole, first.context.names = False, capture.context.names
        with suppress(_Enough):
            found += islice(first.exchanges(), count)
    return found


def _is_compressed(name: str) -> bool:
    stream, _, compressed = open_stream(name)
    stream.close()
    return compressed


class Parts:
    """Grows a session by the parts of all workers."""

    def __init__(self, session: Session, gathering: Gathering, schemas: Gathered | None) -> None:
        from kafkascope.analyzer.session.merging import Merging

        session.context.names = gathering.names
        self._merging = Merging(session, gathering.workers)
        self._told = session.rows_told
        """How many of the next rows are there already."""
        self._gathering = gathering
        self._schemas = schemas
        self._journals: dict[str | bytes, bool] = {}
        self.ends: list[End] = []
        """All ends of connections so far."""

    def take(self, told: Sequence[BlockReport]) -> list[str]:
        """Add the rows of a block; return their texts. Raises `Alone`."""
        gathering = self._gathering
        parts: list[PartOfBlock] = [each.block for each in told]
        said = sorted((one for each in parts for one in each.said), key=itemgetter(0))
        said = [(moment, name, self._named(words)) for moment, name, words in said]
        placed = gathering.place(told)
        order = placed.order[self._told :]
        self._told -= len(placed.order) - len(order)
        for each in parts:
            for topic, known in each.journals:
                if self._journals.setdefault(topic, known) != known:
                    raise Alone
        for _, name, words in said:
            if self._named(words) != words:
                raise Alone  # a topic got its name in this block, before or after that
            getattr(self._schemas, name)(*words)
        self._merging.add(
            [each.delta for each in parts],
            order,
            placed.number,
            lambda number: gathering.rank(0, number),
        )
        ends = [one for each in parts for one in each.ends]
        self.ends += [
            (gathering.rank(0, number), side, how, when)
            for _, (number, side, how, when) in sorted(ends, key=itemgetter(0))
        ]
        names = gathering.names
        texts: list[str] = []
        for each in parts:
            for index, stands in each.nameless.items():
                if isinstance(stands, str):
                    each.texts[index] = each.texts[index].replace(stands, names.late(stands))
                else:
                    each.texts[index] = result(renamed(stands, names))
            texts += each.texts
        return [texts[index] for index in order.tolist()]

    def _named(self, words: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what is said of a schema with the name of its topic, where that is known by
        now."""
        *texts, what = words
        topic = texts[-1].removeprefix("topic ")
        name = self._gathering.names.late(topic) if is_nameless(topic) else topic
        return (*(text.replace(topic, name, 1) for text in texts), what)


def _nothing(file: int, at: int, size: int) -> bytes:
    raise NotKept("bytes not kept")
